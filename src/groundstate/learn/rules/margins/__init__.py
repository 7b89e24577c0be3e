"""Margins: the target must win by a distance, over classes, pairs of them and sequences."""
