"""A classifier of graphs by one round of messages."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import torch

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.spaces import GraphSpace
from groundstate.models.rows.classifier import RowClassifier
from groundstate.nn.graph.message_sum import MessageSum
from groundstate.registry import models


@models.register(family="graphs", task="classification", role="classifier", auto=False, shortlist=2)
class MessageSumGraphClassifier(RowClassifier):
    r"""Labels of graphs: nodes add up what their neighbours send, the mean node is read out.

    .. math:: h_v = \mathrm{relu}\Bigl(A x_v + B\sum_{u \to v} [x_u, x_{uv}] + b\Bigr), \qquad
              e(x, y) = -C_y\,\frac1{|V|}\sum_v h_v - c_y

    X is a list of networkx graphs (node features in the attribute ``x``, else degrees), of sparse
    adjacency matrices, or of pairs ``(node features, edges)`` with edges ``(source, target)``; a
    third part holds edge features. The numbering of the nodes does not matter. Learning lowers the
    cross-entropy plus :math:`\tfrac\alpha2` times the squared weights.

    Parameters
    ----------
    hidden_size : int, default=32
        Size of h.

    Examples
    --------
    >>> import networkx as nx
    >>> from groundstate import MessageSumGraphClassifier
    >>> X = [nx.cycle_graph(n) for n in range(3, 9)] + [nx.star_graph(n) for n in range(3, 9)]
    >>> y = ["cycle"] * 6 + ["star"] * 6
    >>> model = MessageSumGraphClassifier(random_state=0)
    >>> model.fit(X, y).predict([nx.cycle_graph(20), nx.star_graph(10)]).tolist()
    ['cycle', 'star']
    """

    rows: ClassVar[str] = "graph"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_size": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        hidden_size: int = 32,
        *,
        alpha: float = 0.0001,
        learning_rate_init: float = 0.05,
        batch_size: int = 64,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_iter_no_change: float = 10,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _energy(self, X: Any, k: int, generator: torch.Generator) -> Energy:
        nodes = X.nodes.item_shape[0]
        edges = 0 if X.edge_features is None else X.edge_features.item_shape[0]
        net = MessageSum(nodes, edges, self.hidden_size, k, generator=generator)
        return NetClassEnergy(GraphSpace(nodes, edges), k, net)
