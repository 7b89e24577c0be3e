"""Rows that do not fit: outliers by their energy."""
