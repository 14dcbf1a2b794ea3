"""Inputs and nulls of every paper: runs drawn by seed, on which its claims are tried."""
