"""Networks whose rows are nodes of one graph, or pairs of its nodes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.spaces import NodeSpace, Space
from groundstate.models.base import Plan
from groundstate.models.rows.network_roles import RowNetworkClassifier
from groundstate.nn.graph.networks import GNN

SOME = 1024  # rows of a step in graphs of which a step sees a part


class InGraph(RowNetworkClassifier):
    """Labels of rows that all see one graph: a pass over it answers for every row.

    Parameters
    ----------
    batch_size : int or "auto"
        "auto" takes all rows in a step, as every step walks the whole graph, and 1024 in graphs of more
        than 100,000 nodes.
    """

    network_kind: ClassVar[str] = "graph"
    level: ClassVar[str]  # of the head: "node" or "edge"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }
    _large: bool

    def _build(self, X: Any, y: Any, weight: Any) -> Plan:
        self._large = not X.of_one_shape
        return super()._build(X, y, weight)

    def _rows_of_a_step(self, total: float) -> float:
        if self.batch_size != "auto":
            return super()._rows_of_a_step(total)
        return SOME if self._large else total

    def _space(self, X: Any) -> Space:
        edges = X.graph.edge_features
        own = 0 if edges is None else edges.item_shape[0]
        return NodeSpace(X.graph.nodes.item_shape[0], own, pairs=self.level == "edge")

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        space: Any = self._space(X)
        return {
            **super()._sizes(X, y), "in_features": space.node_features,
            "edge_features": space.edge_features, "level": self.level,
        }  # fmt: skip

    def _made(self, X: Any, y: Any) -> nn.Module:
        net = super()._made(X, y)
        if isinstance(net, GNN):
            net.to(X.graph.device, X.graph.nodes.values.dtype).fit_scale(X.graph)
        return net

    def _class_table(self, x: Any) -> Tensor:
        return self.energy_.table("y", x=x)  # one pass over the graph answers for all rows
