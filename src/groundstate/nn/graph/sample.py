r"""A part of a large graph around some nodes: at most so many neighbours of each, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.weight_line.hashing_torch import mix64_torch
from groundstate.nn.graph.edges import Edges


def sample_edges(edges: Edges, nodes: Tensor, fanout: int, word: Tensor) -> Tensor:
    """Numbers of at most ``fanout`` edges that come to each of the nodes, drawn by a keyed hash.

    >>> star = Edges.of(torch.tensor([[1, 2, 3, 0], [0, 0, 0, 1]]), 4)
    >>> len(sample_edges(star, torch.tensor([0, 1]), 2, torch.tensor(7)))
    3
    """
    first, size = edges.offsets[nodes], edges.degree[nodes]
    owner = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), size)
    start = size.cumsum(0) - size
    place = torch.arange(len(owner), device=nodes.device) - start[owner]
    number = first[owner] + place
    drawn = mix64_torch(number ^ word)
    by_draw = torch.argsort(drawn, stable=True)
    order = by_draw[torch.argsort(owner[by_draw], stable=True)]  # by node, then by draw
    return number[order[place < fanout]]


class NeighborSampler(nn.Module):
    """The surroundings of some nodes, other ones in every pass.

    What is drawn depends on the stream and the number of passes alone, both buffers: a resumed run
    draws what the uninterrupted one would have.

    Parameters
    ----------
    fanouts : neighbours of a node at each step, the nearest first
    generator : of the stream; None is a fixed seed
    """

    stream: Tensor
    count: Tensor

    def __init__(
        self, fanouts: Sequence[int] = (10, 10), *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        source = generator or torch.Generator().manual_seed(0)
        self.fanouts = tuple(fanouts)
        stream = torch.randint(2**62, (), generator=source, device=source.device)
        self.register_buffer("stream", stream.cpu())
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def config(self) -> dict[str, Any]:
        return {"fanouts": list(self.fanouts)}

    def forward(self, edges: Edges, index: Tensor) -> tuple[Tensor, Edges, Tensor]:
        """Nodes of the part ``(n,)``, its edges, and where ``index`` stands in it."""
        self.count += 1
        kept, frontier = [], torch.unique(index)
        seen = frontier
        for step, fanout in enumerate(self.fanouts):
            word = mix64_torch(self.stream ^ mix64_torch(self.count * 64 + step))
            chosen = sample_edges(edges, frontier, fanout, word)
            kept.append(chosen)
            sources = torch.unique(edges.source[chosen])
            frontier = sources[~torch.isin(sources, seen)]
            seen = torch.unique(torch.cat((seen, frontier)))
        number = torch.unique(torch.cat(kept))  # in the order of targets
        ends = torch.searchsorted(seen, torch.stack((edges.source[number], edges.target[number])))
        return seen, Edges.of(ends, len(seen)), torch.searchsorted(seen, index)
