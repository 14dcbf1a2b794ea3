"""Incremental learning of sparse attention patterns (arXiv 2602.19143): one lag group at a time, by competing heads."""
