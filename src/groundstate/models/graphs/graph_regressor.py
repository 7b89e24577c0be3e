"""Values of graphs."""

from __future__ import annotations

from typing import Any

from groundstate.models.graphs.graph_networks import GraphRowNetwork
from groundstate.models.rows.network_roles import RowNetworkRegressor
from groundstate.registry import models


@models.register(family="graphs", task="regression", role="regressor", auto=False, shortlist=1)
class GraphRegressor(GraphRowNetwork, RowNetworkRegressor):
    r"""Values of graphs: messages between nodes, then what all nodes of a graph have together.

    .. math:: e(G, y) = \tfrac12\|y - (\mu + s\,f_\theta(G))\|^2

    with mean μ and scale s of the targets. X is as for ``GraphClassifier``. Learning lowers the mean
    energy.

    Parameters
    ----------
    network : str, module, class or function, default="sage"
        "gcn", "sage", "gat", "gin", "graph_mlp", or a module from ``Graphs`` to values.

    Examples
    --------
    >>> import networkx as nx
    >>> from groundstate import GraphRegressor
    >>> X = [nx.gnp_random_graph(10, 0.1 + 0.02 * i, seed=i) for i in range(40)]
    >>> y = [g.number_of_edges() for g in X]
    >>> GraphRegressor(val_fraction=0, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        network: Any = "sage",
        network_params: dict[str, Any] | None = None,
        *,
        max_epochs: int = 200,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 0.01,
        weight_decay: float = 1e-4,
        val_fraction: float = 0.1,
        patience: int | None = 30,
        schedule: Any = None,
        clip_norm: float | None = None,
        precision: str = "32",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {**super()._sizes(X, y), "pool": "sum"}  # values of a graph often grow with it
