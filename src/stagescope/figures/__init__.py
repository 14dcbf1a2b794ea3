"""Layer 7: the papers' figures, from nothing: numbers first, then ink."""
