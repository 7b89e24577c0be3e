"""Graphs: shortest paths, directed graphs without cycles, and sums over graphs of factors."""

from groundstate.math.graphs.beliefs import Beliefs, belief_propagation, mean_field
from groundstate.math.graphs.dags import (
    ancestors,
    is_d_separated,
    markov_blanket,
    moral_graph,
    topological_order,
)
from groundstate.math.graphs.elimination import elimination_order
from groundstate.math.graphs.factor_graph import FactorGraphDistribution
from groundstate.math.graphs.paths import connect, geodesic_distances

__all__ = [
    "Beliefs", "FactorGraphDistribution", "ancestors", "belief_propagation", "connect",
    "elimination_order", "geodesic_distances", "is_d_separated", "markov_blanket", "mean_field",
    "moral_graph", "topological_order",
]  # fmt: skip
