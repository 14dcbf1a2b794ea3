"""Runs drawn by seed on which the claims of each paper are tried: inputs the paper is about, and nulls that must fail."""
