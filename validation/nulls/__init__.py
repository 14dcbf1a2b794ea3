"""Inputs and nulls of the claims of every paper, drawn by seed."""
