"""Layer 7: one module per paper."""
