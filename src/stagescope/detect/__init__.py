"""Stages and events found in recorded curves."""
