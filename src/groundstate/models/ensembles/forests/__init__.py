"""Forests: random trees, extremely random trees."""
