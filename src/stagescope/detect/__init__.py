"""Layer 5: stages and events found in recorded curves."""
