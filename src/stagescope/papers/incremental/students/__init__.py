"""Students of a lagged chain: positional heads, content heads, the transformer."""
