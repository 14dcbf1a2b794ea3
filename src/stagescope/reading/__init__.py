"""Layer 7: how to read a run: its stages, claims and ladder, by what the run says it is."""
