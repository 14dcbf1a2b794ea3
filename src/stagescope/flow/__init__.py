"""Layer 4: what moves parameters, and what is kept of the motion."""
