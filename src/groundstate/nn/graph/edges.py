r"""Who is connected to whom, ready for sums over neighbours.

Edges stand in the order of their targets, so that what comes to a node is a segment: sums have the
same bits on every run and device, forwards and (by the order of sources) backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from groundstate.compute.foreign.torch import sparse_rows
from groundstate.compute.rows import Graphs, sum_items
from groundstate.errors import DataError, ShapeError, Unsupported

Made = TypeVar("Made")
AGGREGATES = ("sum", "mean", "max", "std")


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of a graph, or of several side by side.

    Parameters
    ----------
    source, target : int64 ``(E,)``, in the order of targets
    nodes : N
    order : where each edge stood in what was given, ``(E,)``

    Examples
    --------
    >>> path = Edges.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    >>> path.propagate(torch.tensor([[1.0], [2.0], [4.0]])).tolist()
    [[2.0], [5.0], [2.0]]
    """

    source: Tensor
    target: Tensor
    nodes: int
    order: Tensor
    _made: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, edge_index: Tensor, nodes: int) -> Edges:
        """From sources and targets ``(2, E)``; edges are sorted, connectivity is kept."""
        if edge_index.ndim != 2 or len(edge_index) != 2:
            raise ShapeError(f"edge_index must be (2, edges), got {tuple(edge_index.shape)}")
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
            raise DataError(
                f"edges name nodes {int(edge_index.min())} to {int(edge_index.max())}, the graph "
                f"has {nodes}, 0 to {nodes - 1}"
            )
        return cls._ordered(edge_index.long(), nodes)

    @classmethod
    def _ordered(cls, edge_index: Tensor, nodes: int) -> Edges:
        source, target = edge_index
        order = torch.argsort(target * max(nodes, 1) + source, stable=True)
        return cls(source[order], target[order], nodes, order)

    @classmethod
    def of_graphs(cls, graphs: Graphs) -> Edges:
        """Of a batch of graphs, whose edges are in order already; made once for each batch."""
        compiling = torch.compiler.is_compiling()  # nothing of a traced graph can be kept
        made = None if compiling else _kept.get(graphs)
        if made is None:
            source, target = graphs.edge_index
            order = torch.arange(len(source), device=source.device)
            n = len(graphs.nodes.values)
            made = cls(source.contiguous(), target.contiguous(), n, order)
            if not compiling:
                _kept[graphs] = made
        return made

    @property
    def edge_index(self) -> Tensor:
        """Sources and targets, ``(2, E)``, in the order of targets."""
        return torch.stack((self.source, self.target))

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """What ``make`` gives, made the first time it is asked for."""
        if (
            name not in self._made
        ):  # a plain dict: torch.compile cannot trace a cached_property's lock
            self._made[name] = make()
        made: Made = self._made[name]
        return made

    @property
    def offsets(self) -> Tensor:
        """Where the edges to each node begin, ``(N + 1,)``."""
        return self.once("offsets", lambda: _offsets(self.target, self.nodes))

    @property
    def _by_source(self) -> tuple[Tensor, Tensor, Tensor]:
        """The edges in the order of their sources, their targets, and where those of each node begin."""

        def make() -> tuple[Tensor, Tensor, Tensor]:
            order = torch.argsort(self.source, stable=True)
            return order, self.target[order], _offsets(self.source[order], self.nodes)

        return self.once("by_source", make)

    @property
    def degree(self) -> Tensor:
        """Edges that come to each node, ``(N,)``."""
        return self.offsets.diff()

    @property
    def looped(self) -> tuple[Edges, Tensor]:
        """With one edge from every node to itself, and for each edge its old number: −1 for a new
        one, −2 for a loop that was there and carries nothing any more (the number of edges does not
        depend on their values, so that nothing waits for a device)."""

        def make() -> tuple[Edges, Tensor]:
            own = torch.arange(self.nodes, device=self.source.device)
            made = Edges._ordered(torch.cat((self.edge_index, own.expand(2, -1)), 1), self.nodes)
            old = torch.arange(len(self.source), device=own.device)
            old = torch.where(self.source == self.target, -2, old)
            return made, torch.cat((old, torch.full_like(own, -1)))[made.order]

        return self.once("looped", make)

    # --- sums over neighbours ------------------------------------------------------------

    def from_source(self, x: Tensor) -> Tensor:
        """What the source of each edge has, ``(E, ...)`` of ``(N, ...)``."""
        self._of_nodes(x)
        if torch.compiler.is_compiling():
            return x.index_select(0, self.source)
        order, _, offsets = self._by_source
        out: Tensor = _Gather.apply(x, self.source, order, offsets)
        return out

    def from_target(self, x: Tensor) -> Tensor:
        """What the target of each edge has, ``(E, ...)`` of ``(N, ...)``."""
        self._of_nodes(x)
        if torch.compiler.is_compiling():
            return x.index_select(0, self.target)
        out: Tensor = _Gather.apply(x, self.target, None, self.offsets)
        return out

    def aggregate(self, messages: Tensor, how: str = "sum") -> Tensor:
        r"""What comes to each node, ``(N, ...)`` of messages ``(E, ...)``: their sum, mean, max or
        standard deviation; 0 where nothing comes."""
        if len(messages) != len(self.source):
            raise ShapeError(f"{len(self.source)} edges carry a message each, got {len(messages)}")
        if how not in AGGREGATES:
            raise Unsupported(f"aggregate {how!r} is not known; use one of {', '.join(AGGREGATES)}")
        if how == "sum":
            return sum_items(messages, self.offsets)
        if how == "max":
            found = torch.segment_reduce(
                messages, "max", offsets=self.offsets, axis=0, unsafe=True, initial=-torch.inf
            )
            return found.where(found > -torch.inf, 0.0)
        size = self.degree.clamp(min=1).to(messages.dtype)
        size = size.reshape(-1, *[1] * (messages.ndim - 1))
        mean = sum_items(messages, self.offsets) / size
        if how == "mean":
            return mean
        spread = sum_items((messages - self.from_target(mean)).square(), self.offsets) / size
        return (spread + 1e-12).sqrt().where(spread > 0, 0.0)

    def propagate(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        r""":math:`y_v = \sum_{u\to v} w_{uv} x_u`, one sparse product, ``(N, F)`` of ``(N, F)``."""
        self._of_nodes(x)
        if torch.compiler.is_compiling():  # it differentiates and fuses plain operations itself
            sent = x.index_select(0, self.source)
            return sum_items(sent if weight is None else weight[:, None] * sent, self.offsets)
        out: Tensor = _Propagate.apply(x, weight, self)
        return out

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax of the scores ``(E, ...)`` of the edges that come to the same node."""
        top = torch.segment_reduce(
            scores.detach(), "max", offsets=self.offsets, axis=0, unsafe=True, initial=-torch.inf
        )
        e = (scores - top.index_select(0, self.target)).exp()
        return e / self.from_target(sum_items(e, self.offsets))

    def matrix(self, weight: Tensor, *, transposed: bool = False) -> Tensor:
        """The weights as a sparse matrix ``(N, N)``, rows targets, or rows sources."""
        if not transposed:
            return sparse_rows(self.offsets, self.source, weight, self.nodes)
        order, target, offsets = self._by_source
        return sparse_rows(offsets, target, weight[order], self.nodes)

    def product(self, weight: Tensor | None, x: Tensor, *, transposed: bool = False) -> Tensor:
        """That matrix times x ``(N, F)``; without weights each edge counts one."""
        if not x.is_cuda:
            one = x.new_ones(len(self.source)) if weight is None else weight
            return self.matrix(one, transposed=transposed) @ x
        # cuSPARSE adds in an order that may change from run to run; bags are summed one edge after
        # the other, and nothing of size edges × features is made
        index, offsets = self.source, self.offsets
        if transposed:
            order, index, offsets = self._by_source
            weight = None if weight is None else weight.index_select(0, order)
        if weight is not None:
            weight = weight.to(x.dtype)
        return embedding_bag(
            index, x, offsets, mode="sum", per_sample_weights=weight, include_last_offset=True
        )

    def _of_nodes(self, x: Tensor) -> None:
        if len(x) != self.nodes:
            raise ShapeError(f"the graph has {self.nodes} nodes, got features {tuple(x.shape)}")


_kept: WeakKeyDictionary[Graphs, Edges] = WeakKeyDictionary()


def _offsets(sorted_index: Tensor, n: int) -> Tensor:
    return torch.searchsorted(sorted_index, torch.arange(n + 1, device=sorted_index.device))


class _Gather(torch.autograd.Function):
    """x[index], whose gradient is a sum over segments: no race between additions."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, order: Tensor | None, offsets: Tensor
    ) -> Tensor:
        ctx.save_for_backward(order, offsets)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        order, offsets = ctx.saved_tensors
        return (
            sum_items(grad if order is None else grad.index_select(0, order), offsets),
            None,
            None,
            None,
        )


class _Propagate(torch.autograd.Function):
    """A sparse product by targets forwards, by sources backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, edges: Edges) -> Tensor:
        ctx.edges = edges
        wanted = weight is not None and weight.requires_grad
        ctx.save_for_backward(x if wanted else None, weight)
        return edges.product(weight, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        edges, (wants_x, wants_weight, _) = ctx.edges, ctx.needs_input_grad
        grad = grad.contiguous()
        to_x = edges.product(weight, grad, transposed=True) if wants_x else None
        to_weight = None
        if wants_weight:  # of each edge alone: gᵥ·xᵤ, nothing of size edges × features
            pattern = edges.matrix(torch.zeros_like(weight))
            to_weight = torch.sparse.sampled_addmm(pattern, grad, x.T, beta=0.0).values()
        return to_x, to_weight, None
