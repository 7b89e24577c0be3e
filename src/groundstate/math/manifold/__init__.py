"""Maps: affinities and memberships, divergence and forces, scaling, dimension, how good a map is."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.graphs.paths import geodesic_distances as geodesic_distances
    from groundstate.math.manifold.affinities import affinities as affinities
    from groundstate.math.manifold.affinities import conditional as conditional
    from groundstate.math.manifold.dimension import intrinsic_dimension as intrinsic_dimension
    from groundstate.math.manifold.divergence import kl_divergence as kl_divergence
    from groundstate.math.manifold.divergence import kl_gradient as kl_gradient
    from groundstate.math.manifold.divergence import map_similarities as map_similarities
    from groundstate.math.manifold.fuzzy import fuzzy_graph as fuzzy_graph
    from groundstate.math.manifold.fuzzy import membership_curve as membership_curve
    from groundstate.math.manifold.fuzzy import memberships as memberships
    from groundstate.math.manifold.quality import continuity as continuity
    from groundstate.math.manifold.quality import neighbor_recall as neighbor_recall
    from groundstate.math.manifold.quality import residual_variance as residual_variance
    from groundstate.math.manifold.quality import stress1 as stress1
    from groundstate.math.manifold.quality import trustworthiness as trustworthiness
    from groundstate.math.manifold.scaling import classical_scaling as classical_scaling
    from groundstate.math.manifold.scaling import double_centred as double_centred
    from groundstate.math.neighbors.graph import neighbors_graph as neighbors_graph
    from groundstate.math.neighbors.pairwise import pairwise as pairwise

lazy(__name__)
