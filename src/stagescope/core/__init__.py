"""Small modules that everything may use; they import each other and nothing else of this package."""
