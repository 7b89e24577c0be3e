r"""One round of messages between the nodes of a graph, then a linear map of their mean."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Graphs, mean_items, sum_items
from groundstate.nn.blocks.initialise import init_, linear


class MessageSum(nn.Module):
    r"""Nodes add up what their neighbours send; the mean node of a graph is read out.

    .. math:: h_v = \mathrm{relu}\Bigl(A x_v + B \sum_{u \to v} [x_u, x_{uv}] + b\Bigr), \qquad
              f(G) = C\,\frac1{|V|}\sum_{v} h_v + c

    Parameters
    ----------
    node_features, edge_features : features of a node, and of an edge (0: none)
    hidden : size of h
    outputs : size of f
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> graphs = Graphs.of([(torch.ones(3, 2), [(0, 1), (1, 2)]), (torch.ones(1, 2), [])])
    >>> MessageSum(2, 0, 8, 3)(graphs).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        node_features: int,
        edge_features: int,
        hidden: int,
        outputs: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.sizes = node_features, edge_features, hidden, outputs
        self.own = linear(node_features, hidden)
        self.sent = linear(node_features + edge_features, hidden, bias=False)
        self.read = linear(hidden, outputs)
        init_(self, "he", generator)

    def config(self) -> dict[str, Any]:
        names = ("node_features", "edge_features", "hidden", "outputs")
        return dict(zip(names, self.sizes, strict=True))

    def forward(self, x: Graphs) -> Tensor:
        nodes = x.nodes.values
        source, target = x.edge_index
        sent = nodes[source]
        if x.edge_features is not None:
            sent = torch.cat([sent, x.edge_features.values], 1)
        # edges stand in the order of their targets: sums of segments have the same bits every time
        numbers = torch.arange(len(nodes) + 1, device=nodes.device)
        came = sum_items(sent, torch.searchsorted(target.contiguous(), numbers))
        h = torch.relu(self.own(nodes) + self.sent(came))
        out: Tensor = self.read(mean_items(h, x.nodes.offsets))
        return out
