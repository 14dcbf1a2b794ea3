"""Inputs on which claims are tried: those that a paper is about, and nulls, on which a claim is false by construction."""
