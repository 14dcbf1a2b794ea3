"""What a page, a figure and a notebook can show, as data."""
