"""Layer 0: what a run is, how it is stored, loaded and verified."""
