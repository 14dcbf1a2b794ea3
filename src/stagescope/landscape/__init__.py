"""Layer 5: the neighbourhood of a point: spectra, critical points, linearisation, the ladder."""
