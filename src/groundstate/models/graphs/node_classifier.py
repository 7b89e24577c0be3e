"""Labels of the nodes of a graph."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from groundstate.compute.rows import Rows, count
from groundstate.errors import DataError, ShapeError
from groundstate.models.arrays import unwrap
from groundstate.models.graphs.in_graph import InGraph
from groundstate.models.graphs.targets import held_targets, labelled
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="graphs", task="classification", role="classifier", auto=False, shortlist=1)
class NodeClassifier(InGraph):
    r"""Labels of the nodes of a graph, from features, neighbours and the labels of some.

    .. math:: e(G, v, y) = -f_\theta(G, v)_y,\qquad
              p(y\mid G, v) = \operatorname{softmax}(f_\theta(G, v))_y

    All nodes send messages; the cross-entropy is taken over those that have a label (−1, None or an
    empty text is none). ``predict`` answers for every node of the graph it is given, the same one or
    another. In graphs of more than 100,000 nodes a training step looks at some neighbours of the
    nodes of its batch. A row is a node; two nodes are the same row where no message passing tells
    them apart, so the numbering of the nodes does not matter.

    X is a ``groundstate.data.Graph``, a networkx graph (features in the node attribute ``x``, else
    degrees), a sparse adjacency matrix, or ``(node features, edges)`` with edges (source, target).
    Without y the labels are those that the ``Graph`` holds.

    Parameters
    ----------
    network : str, module, class or function, default="gcn"
        "gcn", "sage", "gat", "gin", "graph_mlp", or a module from ``GraphNodes`` to scores.

    Attributes
    ----------
    classes_ : (n_classes,) array of labels

    Examples
    --------
    >>> import networkx as nx
    >>> from groundstate import NodeClassifier
    >>> club = nx.karate_club_graph()
    >>> graph = nx.to_scipy_sparse_array(club, weight=None)
    >>> side = [club.nodes[v]["club"] for v in club]
    >>> some = [s if v in (0, 1, 2, 33, 32, 31) else None for v, s in enumerate(side)]
    >>> eye = np.eye(34)
    >>> model = NodeClassifier(random_state=0).fit((eye, np.argwhere(graph.toarray())), some)
    >>> model.score((eye, np.argwhere(graph.toarray())), side) > 0.85
    True
    """

    rows: ClassVar[str] = "node"
    level: ClassVar[str] = "node"
    traits = Traits(compared_with={"features alone": {"network": "graph_mlp"}})
    _known_rows: NDArray[np.bool_]

    def __init__(
        self,
        network: Any = "gcn",
        network_params: dict[str, Any] | None = None,
        *,
        max_epochs: int = 200,
        batch_size: Any = "auto",
        optimizer: Any = "adamw",
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        val_fraction: float = 0.0,
        patience: int | None = None,
        schedule: Any = None,
        clip_norm: float | None = None,
        precision: str = "32",
        compile: bool | str = False,
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the labels ``y`` of the nodes of a graph ``X``; −1 or None is no label."""
        return super().fit(X, held_targets(X) if y is None else y, sample_weight)

    def _row_target(self, y: Any, rows: Rows) -> tuple[Any, dict[str, Any]]:
        y = unwrap(y)[0]
        if len(y) != count(rows):
            raise ShapeError(
                f"the graph has {count(rows)} nodes, y has {len(y)}; give one label to each node, -1 "
                "or None where there is none"
            )
        known = labelled(y)
        if not known.any():
            raise DataError("no node has a label; give some of them one")
        values = [v for v, k in zip(y, known, strict=True) if k]
        codes, attributes = self._target(np.asarray(values))
        full = np.zeros(len(y), np.int64)
        full[known] = codes
        self._known_rows = known
        return full, attributes

    def _row_weight(self, y: Any, weight: NDArray[Any] | None) -> NDArray[Any] | None:
        known = self.__dict__.pop("_known_rows")
        if known.all():
            return super()._row_weight(y, weight)
        own = super()._row_weight(y[known], None if weight is None else weight[known])
        full = np.zeros(len(y))
        full[known] = 1.0 if own is None else own
        return full

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on the nodes that have a label."""
        y = held_targets(X) if y is None else y
        known = labelled(unwrap(y)[0])
        predicted = np.asarray(self.predict(X))[known]
        truth = np.asarray([v for v, k in zip(y, known, strict=True) if k])
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(truth, predicted, sample_weight=weight))
