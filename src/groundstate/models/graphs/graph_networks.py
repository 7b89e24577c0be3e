"""Labels and values of whole graphs."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from torch import Tensor, nn

from groundstate.energy.spaces import GraphSpace, Space
from groundstate.models.graphs.targets import held_targets
from groundstate.models.rows.network import RowNetwork
from groundstate.nn.graph.networks import GNN


class GraphRowNetwork(RowNetwork):
    """Networks whose rows are graphs; they may hold their own targets."""

    rows: ClassVar[str] = "graph"
    _weight: Tensor | None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from graphs ``X`` and one target ``y`` for each; without y, those they hold."""
        return super().fit(X, held_targets(X) if y is None else y, sample_weight)

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        super()._learn_preparation(X, y, weight)
        self._weight = weight

    def _made(self, X: Any, y: Any) -> nn.Module:
        net, weight = super()._made(X, y), self.__dict__.pop("_weight")
        if isinstance(net, GNN):
            own = None if weight is None else weight[X.nodes.row]
            net.to(X.device, X.nodes.values.dtype).fit_scale(X, own)
        return net

    def _space(self, X: Any) -> Space:
        return GraphSpace.of(X)

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        space = GraphSpace.of(X)
        return {
            **super()._sizes(X, y), "in_features": space.node_features,
            "edge_features": space.edge_features, "graph_features": space.graph_features,
            "level": "graph",
        }  # fmt: skip
