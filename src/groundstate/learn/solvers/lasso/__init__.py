"""Coordinate descent for L1 and elastic-net penalties, along paths and in folds."""
