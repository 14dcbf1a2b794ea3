"""What is said of a run from its frames, and how it is kept; the rule of replay."""
