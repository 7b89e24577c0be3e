"""Piecewise linear networks: written down by hand, collapsed, and their linear regions."""
