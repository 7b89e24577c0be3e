"""Near rows: the k nearest, those within a radius, all pairs, and graphs of them."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.neighbors.graph import neighbors_graph as neighbors_graph
    from groundstate.math.neighbors.pairwise import pairwise as pairwise

lazy(__name__)
