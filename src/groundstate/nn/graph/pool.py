r"""From edges to nodes, from nodes to edges, from nodes to graphs: gather, then aggregate."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.rows import mean_items, sum_items
from groundstate.errors import Unsupported
from groundstate.nn.graph.edges import Edges

REDUCES = ("sum", "mean", "max")


def pool(features: Tensor, index: Tensor, size: int, reduce: str = "sum") -> Tensor:
    r""":math:`\rho`: the features of each group together, ``(size, F)``; ``index`` names the group.

    >>> pool(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1, 0, 1]), 3).tolist()
    [[2.0], [5.0], [0.0]]
    """
    order = torch.argsort(index, stable=True)
    ends = torch.arange(size + 1, device=index.device)
    return _reduced(features[order], torch.searchsorted(index[order], ends), reduce)


def edge_to_node(e: Tensor, edges: Edges, reduce: str = "sum") -> Tensor:
    """What the edges that come to a node have, together, ``(N, F)`` of ``(E, F)``."""
    return _reduced(e, edges.offsets, reduce)


def node_to_edge(x: Tensor, edges: Edges, reduce: str = "sum") -> Tensor:
    """What the two ends of each edge have, together, ``(E, F)`` of ``(N, F)``."""
    ends = torch.stack((edges.from_source(x), edges.from_target(x)))
    if reduce not in REDUCES:
        raise Unsupported(f"reduce {reduce!r} is not known; use one of {', '.join(REDUCES)}")
    return ends.amax(0) if reduce == "max" else getattr(ends, reduce)(0)


def global_pool(x: Tensor, offsets: Tensor, reduce: str = "sum") -> Tensor:
    """What all nodes of each graph have, together, ``(G, F)``; ``offsets`` says where they begin.

    >>> global_pool(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 2, 3])).tolist()
    [[3.0], [4.0]]
    """
    return _reduced(x, offsets, reduce)


def _reduced(values: Tensor, offsets: Tensor, reduce: str) -> Tensor:
    if reduce == "sum":
        return sum_items(values, offsets)
    if reduce == "mean":
        return mean_items(values, offsets)
    if reduce != "max":
        raise Unsupported(f"reduce {reduce!r} is not known; use one of {', '.join(REDUCES)}")
    found = torch.segment_reduce(
        values, "max", offsets=offsets, axis=0, unsafe=True, initial=-torch.inf
    )
    return found.where(found > -torch.inf, 0.0)
