"""Phase diagrams of a sweep, as figures and as a page."""
