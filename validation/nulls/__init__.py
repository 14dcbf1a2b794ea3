"""Inputs drawn by seed to calibrate the claims of each paper, and nulls on which the claims are false by construction."""
