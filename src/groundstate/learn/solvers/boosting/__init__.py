"""Boosting: sums of small trees or other members, one added at a time."""
