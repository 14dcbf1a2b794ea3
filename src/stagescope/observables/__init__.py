"""Layer 5: pure functions of a run."""
