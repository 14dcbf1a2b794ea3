"""Layer 5: the neighbourhood of a point: spectra, and later critical points and the ladder."""
