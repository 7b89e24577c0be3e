"""Planes and polygons."""
