"""Layers and blocks: rows in, rows out."""
