"""What is said of a run from its frames: the rule of replay."""
