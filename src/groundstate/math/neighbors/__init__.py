"""Near rows: the k nearest, those within a radius, all pairs, and graphs of them."""

from groundstate.math.neighbors.graph import neighbors_graph
from groundstate.math.neighbors.pairwise import pairwise

__all__ = ["neighbors_graph", "pairwise"]
