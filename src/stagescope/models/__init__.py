"""Layer 2: parameters and what they do to a context."""
