"""Scan and snap on real text."""
