"""Graphs as sparse matrices: shortest paths."""

from groundstate.math.graphs.paths import connect, geodesic_distances

__all__ = ["connect", "geodesic_distances"]
