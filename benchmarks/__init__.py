"""Ratios against a stated baseline, side by side in one run; each script ends with one JSON line."""
