"""The regression models of incremental learning: the exact flow, the mirror flow, the sampled transformer."""
