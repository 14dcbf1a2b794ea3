"""Fields and objectives: the seam between a model and everything that moves or analyses it."""
