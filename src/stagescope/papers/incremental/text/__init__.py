"""Incremental learning on real text."""
