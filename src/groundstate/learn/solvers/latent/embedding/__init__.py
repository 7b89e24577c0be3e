"""Laying out maps: coordinates from distances, paths and neighbours."""
