"""Maps: affinities and memberships, divergence and forces, scaling, dimension, how good a map is."""

from groundstate.math.graphs.paths import geodesic_distances
from groundstate.math.manifold.affinities import affinities, conditional
from groundstate.math.manifold.dimension import intrinsic_dimension
from groundstate.math.manifold.divergence import kl_divergence, kl_gradient, map_similarities
from groundstate.math.manifold.fuzzy import fuzzy_graph, membership_curve, memberships
from groundstate.math.manifold.quality import (
    continuity,
    neighbor_recall,
    residual_variance,
    stress1,
    trustworthiness,
)
from groundstate.math.manifold.scaling import classical_scaling, double_centred
from groundstate.math.neighbors.graph import neighbors_graph
from groundstate.math.neighbors.pairwise import pairwise

__all__ = [
    "affinities",
    "classical_scaling",
    "conditional",
    "continuity",
    "double_centred",
    "fuzzy_graph",
    "geodesic_distances",
    "intrinsic_dimension",
    "kl_divergence",
    "kl_gradient",
    "map_similarities",
    "membership_curve",
    "memberships",
    "neighbor_recall",
    "neighbors_graph",
    "pairwise",
    "residual_variance",
    "stress1",
    "trustworthiness",
]
