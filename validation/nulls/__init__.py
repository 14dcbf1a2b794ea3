"""Runs drawn by seed on which the claims of each paper are tried: inputs the paper is about, and nulls, on which they are false."""
