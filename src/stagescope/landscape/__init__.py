"""The neighbourhood of a point: spectra, critical points, linearisation, the ladder."""
