"""Labels of graphs."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.models.graphs.graph_networks import GraphRowNetwork
from groundstate.models.rows.network_roles import RowNetworkClassifier
from groundstate.registry import models


@models.register(family="graphs", task="classification", role="classifier", auto=False, shortlist=1)
class GraphClassifier(GraphRowNetwork, RowNetworkClassifier):
    r"""Labels of graphs: messages between nodes, then what all nodes of a graph have together.

    .. math:: e(G, y) = -f_\theta(G)_y,\qquad p(y\mid G) = \operatorname{softmax}(f_\theta(G))_y

    X is a list of ``groundstate.data.Graph``, of networkx graphs (node features in the attribute
    ``x``, else degrees), of sparse adjacency matrices, or of ``(node features, edges)``; or a folder
    in the format of the TU collection. The numbering of the nodes does not matter. Learning lowers
    the cross-entropy; several labels, y of shape ``(n, k)`` with zeros and ones, have a sigmoid each.

    Parameters
    ----------
    network : str, module, class or function, default="gin"
        "gcn", "sage", "gat", "gin", "graph_mlp", or a module from ``Graphs`` to scores.

    Examples
    --------
    >>> import networkx as nx
    >>> from groundstate import GraphClassifier
    >>> X = [nx.cycle_graph(n) for n in range(3, 19)] + [nx.star_graph(n) for n in range(3, 19)]
    >>> y = ["cycle"] * 16 + ["star"] * 16
    >>> model = GraphClassifier(max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict([nx.cycle_graph(25), nx.star_graph(7)]).tolist()
    ['cycle', 'star']
    """

    _multi_output: ClassVar[bool] = True

    def __init__(
        self,
        network: Any = "gin",
        network_params: dict[str, Any] | None = None,
        *,
        max_epochs: int = 200,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 0.003,
        weight_decay: float = 1e-4,
        val_fraction: float = 0.1,
        patience: int | None = 30,
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
