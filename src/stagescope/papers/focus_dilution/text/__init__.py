"""Focus and dilution on real text."""
