"""Synthetic tables: columns of any kind in front of a generator."""
