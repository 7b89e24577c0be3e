"""Representations learned by contrast: views of a row, labels, pictures and texts."""
