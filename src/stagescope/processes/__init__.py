"""Layer 1: where tokens come from."""
