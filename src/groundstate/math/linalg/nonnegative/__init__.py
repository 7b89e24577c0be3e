"""Factors without negative entries: codes of rows, and steps of both factors."""
