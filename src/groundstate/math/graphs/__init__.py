"""Graphs: shortest paths, directed graphs without cycles, and sums over graphs of factors."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.graphs.beliefs import Beliefs as Beliefs
    from groundstate.math.graphs.beliefs import belief_propagation as belief_propagation
    from groundstate.math.graphs.beliefs import mean_field as mean_field
    from groundstate.math.graphs.dags import ancestors as ancestors
    from groundstate.math.graphs.dags import is_d_separated as is_d_separated
    from groundstate.math.graphs.dags import markov_blanket as markov_blanket
    from groundstate.math.graphs.dags import moral_graph as moral_graph
    from groundstate.math.graphs.dags import topological_order as topological_order
    from groundstate.math.graphs.elimination import elimination_order as elimination_order
    from groundstate.math.graphs.factor_graph import (
        FactorGraphDistribution as FactorGraphDistribution,
    )
    from groundstate.math.graphs.paths import connect as connect
    from groundstate.math.graphs.paths import geodesic_distances as geodesic_distances

lazy(__name__)
