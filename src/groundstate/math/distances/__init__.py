"""Distances between rows: metrics and dissimilarities by name."""
