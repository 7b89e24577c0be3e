"""Probabilities that mean what they say, and where to cut them."""
