"""Spaces whose rows differ in size: ragged sequences, token sequences, texts, graphs, trajectories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.rows import (
    GraphNodes,
    Graphs,
    Objects,
    Ragged,
    Rows,
    Texts,
    Tokens,
    Trajectories,
    sum_items,
)
from groundstate.compute.rows.ragged import offsets_of
from groundstate.energy.spaces.arrays import Finite, Real
from groundstate.energy.spaces.base import Space
from groundstate.errors import DataError

_LONGEST = 5  # items of a drawn row


class ContainerSpace(Space):
    """A space of rows without a common shape; its values cannot be listed."""

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def size(self) -> float:
        return math.inf

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        raise self._not_listable()

    def expected(self) -> str:
        return f"hold {self.noun}"

    @property
    def noun(self) -> str:
        """What rows of this space are called."""
        return "rows"


def _of_all(items: Tensor, row: Ragged) -> Tensor:
    """Which rows have no item that is wrong."""
    return sum_items((~items).to(torch.float64), row.offsets) == 0


@dataclass(frozen=True)
class RaggedOf(ContainerSpace):
    """Sequences of any length of items of another space.

    >>> RaggedOf(Real(low=0.0)).contains(Ragged.of([[1.0], [2.0, -1.0], []])).tolist()
    [True, False, True]
    """

    item: Space

    @property
    def is_real(self) -> bool:
        return self.item.is_real

    @property
    def noun(self) -> str:
        return f"sequences of items of shape {self.item.shape}"

    def dtype(self, floating: torch.dtype) -> torch.dtype:
        return self.item.dtype(floating)

    def fits(self, v: Rows) -> bool:
        return isinstance(v, Ragged) and v.item_shape == self.item.shape

    def contains(self, v: Rows) -> Tensor:
        if not isinstance(v, Ragged):
            raise DataError(f"{self!r} holds sequences, got {self.describe(v)}")
        return _of_all(self.item.contains(v.values), v)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Ragged:
        lengths = torch.randint(0, _LONGEST + 1, (n,), generator=generator, device=device)
        offsets = offsets_of(lengths)
        total = int(offsets[-1])
        items = self.item.draw(total, generator=generator, device=device, dtype=dtype)
        assert isinstance(items, Tensor)
        return Ragged(items, offsets)


@dataclass(frozen=True)
class TokenSequence(ContainerSpace):
    """Sequences of token numbers ``0..vocabulary-1``.

    >>> rows = Tokens.of(Ragged.of([[0, 1], [2]]))
    >>> TokenSequence(2).contains(rows).tolist()
    [True, False]
    """

    vocabulary: int

    @property
    def noun(self) -> str:
        return f"token sequences of a vocabulary of {self.vocabulary}"

    def dtype(self, floating: torch.dtype) -> torch.dtype:
        return torch.int64

    def fits(self, v: Rows) -> bool:
        return isinstance(v, Tokens)

    def contains(self, v: Rows) -> Tensor:
        if not isinstance(v, Tokens):
            raise DataError(f"{self!r} holds token sequences, got {self.describe(v)}")
        return RaggedOf(Finite(self.vocabulary)).contains(v.tokens)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tokens:
        items = RaggedOf(Finite(self.vocabulary))
        return Tokens.of(items.draw(n, generator=generator, device=device))


@dataclass(frozen=True)
class TextSpace(ContainerSpace):
    """Texts as they are, before any tokens."""

    @property
    def noun(self) -> str:
        return "texts"

    def dtype(self, floating: torch.dtype) -> torch.dtype:
        return torch.uint8

    def fits(self, v: Rows) -> bool:
        return isinstance(v, Texts)

    def contains(self, v: Rows) -> Tensor:
        return torch.full((self.count(v),), isinstance(v, Texts), device=v.device)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Texts:
        letters = RaggedOf(Finite(26)).draw(n, generator=generator, device=device)
        return Texts((letters.values + 97).to(torch.uint8), letters.offsets)


@dataclass(frozen=True)
class GraphSpace(ContainerSpace):
    """Graphs whose nodes have so many real features, and their edges so many (0: none).

    >>> GraphSpace(1).contains(Graphs.of([([[1.0]], []), ([[float("nan")]], [])])).tolist()
    [True, False]
    """

    node_features: int
    edge_features: int = 0
    graph_features: int = 0

    @property
    def noun(self) -> str:
        more = f" and {self.edge_features} edge features" if self.edge_features else ""
        more += f" and {self.graph_features} graph features" if self.graph_features else ""
        return f"graphs with {self.node_features} node features{more}"

    @classmethod
    def of(cls, v: Graphs) -> GraphSpace:
        """The space of some graphs."""
        edges = 0 if v.edge_features is None else v.edge_features.item_shape[0]
        whole = 0 if v.graph_features is None else v.graph_features.shape[1]
        return cls(v.nodes.item_shape[0], edges, whole)

    def fits(self, v: Rows) -> bool:
        return isinstance(v, Graphs) and GraphSpace.of(v) == self

    def contains(self, v: Rows) -> Tensor:
        if not isinstance(v, Graphs):
            raise DataError(f"{self!r} holds graphs, got {self.describe(v)}")
        good = RaggedOf(Real(self.node_features)).contains(v.nodes)
        sizes = v.nodes.lengths[v.edges.row][:, None]
        ends = ((v.edges.values >= 0) & (v.edges.values < sizes)).all(1)
        good = good & _of_all(ends, v.edges)
        if v.edge_features is not None:
            good = good & RaggedOf(Real(self.edge_features)).contains(v.edge_features)
        if v.graph_features is not None:
            good = good & Real(self.graph_features).contains(v.graph_features)
        return good

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Graphs:
        sizes = torch.randint(1, _LONGEST, (n,), generator=generator, device=device)
        many = torch.randint(0, _LONGEST, (n,), generator=generator, device=device)
        real = {"generator": generator, "device": device, "dtype": dtype}
        nodes = Ragged(Real(self.node_features).draw(int(sizes.sum()), **real), offsets_of(sizes))
        total = int(many.sum())
        u = torch.rand(total, 2, generator=generator, device=device, dtype=torch.float64)
        ends = (u * sizes.repeat_interleave(many)[:, None]).long()
        row = torch.arange(n, device=device).repeat_interleave(many)
        order = torch.argsort((row * _LONGEST + ends[:, 1]) * _LONGEST + ends[:, 0], stable=True)
        edges = Ragged(ends[order], offsets_of(many))
        own = whole = None
        if self.edge_features:
            own = Ragged(Real(self.edge_features).draw(total, **real), edges.offsets)
        if self.graph_features:
            whole = Real(self.graph_features).draw(n, **real)
        return Graphs(nodes, edges, own, whole)


@dataclass(frozen=True)
class NodeSpace(ContainerSpace):
    """Nodes of a graph, or with ``pairs`` pairs of its nodes, with features as in ``GraphSpace``.

    >>> NodeSpace(1).draw(3).index.shape
    torch.Size([3])
    """

    node_features: int
    edge_features: int = 0
    pairs: bool = False

    @property
    def noun(self) -> str:
        what = "pairs of nodes" if self.pairs else "nodes"
        return f"{what} of {GraphSpace(self.node_features, self.edge_features).noun}"

    def fits(self, v: Rows) -> bool:
        if not isinstance(v, GraphNodes) or (v.index.ndim == 2) != self.pairs:
            return False
        return GraphSpace(self.node_features, self.edge_features).fits(v.graph)

    def contains(self, v: Rows) -> Tensor:
        if not isinstance(v, GraphNodes):
            raise DataError(f"{self!r} holds nodes of a graph, got {self.describe(v)}")
        good = GraphSpace(self.node_features, self.edge_features).contains(v.graph)
        return good.expand(len(v))

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> GraphNodes:
        nodes, edges = max(n, 2), 3 * max(n, 2)  # enough for rows of different content
        real = {"generator": generator, "device": device, "dtype": dtype}
        ends = torch.randint(nodes, (edges, 2), generator=generator, device=device)
        own = Real(self.edge_features).draw(edges, **real) if self.edge_features else None
        graph = Graphs.of([(Real(self.node_features).draw(nodes, **real), ends, own)])
        size = (n, 2) if self.pairs else (n,)
        index = torch.randint(nodes, size, generator=generator, device=device)
        return GraphNodes(graph, index)


@dataclass(frozen=True)
class Trajectory(ContainerSpace):
    """Trajectories: spaces of an observation, of an action and of a reward; None where absent."""

    observation: Space
    action: Space | None = None
    reward: Space | None = None

    @property
    def noun(self) -> str:
        return f"trajectories of {', '.join(self.columns)}"

    @property
    def columns(self) -> Mapping[str, Space]:
        """The space of each part that is there."""
        parts = {"observations": self.observation, "actions": self.action, "rewards": self.reward}
        return {name: space for name, space in parts.items() if space is not None}

    def fits(self, v: Rows) -> bool:
        if not isinstance(v, Trajectories):
            return False
        parts = v.parts()
        return parts.keys() == self.columns.keys() and all(
            RaggedOf(space).fits(parts[name]) for name, space in self.columns.items()
        )

    def contains(self, v: Rows) -> Tensor:
        if not isinstance(v, Trajectories):
            raise DataError(f"{self!r} holds trajectories, got {self.describe(v)}")
        parts = v.parts()
        found = [RaggedOf(s).contains(parts[name]) for name, s in self.columns.items()]
        return torch.stack(found).all(0)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Trajectories:
        lengths = torch.randint(1, _LONGEST, (n,), generator=generator, device=device)
        offsets = offsets_of(lengths)
        parts: dict[str, Any] = {}
        for name, space in self.columns.items():
            items = space.draw(int(offsets[-1]), generator=generator, device=device, dtype=dtype)
            assert isinstance(items, Tensor)
            parts[name] = Ragged(items, offsets)
        return Trajectories(**parts)


@dataclass(frozen=True)
class ObjectSpace(ContainerSpace):
    """Sets of boxes of ``1..classes`` in pictures of one size, with masks of that size or without.

    >>> found = Objects.of([([[0, 0, 4, 4]], [1]), ([[0, 0, 4, 4]], [3])])
    >>> ObjectSpace(2, 8, 8).contains(found).tolist()
    [True, False]
    """

    classes: int
    height: int
    width: int
    masks: bool = False

    @property
    def noun(self) -> str:
        return f"sets of boxes{' with masks' if self.masks else ''} of {self.classes} classes"

    def fits(self, v: Rows) -> bool:
        if not isinstance(v, Objects) or (v.masks is None and self.masks):
            return False
        return not self.masks or _masks_of(v).item_shape == (self.height, self.width)

    def contains(self, v: Rows) -> Tensor:
        if not isinstance(v, Objects):
            raise DataError(f"{self!r} holds sets of boxes, got {self.describe(v)}")
        boxes, labels = v.boxes.values, v.labels.values
        good = (boxes[:, 2:] > boxes[:, :2]).all(1) & (labels >= 1) & (labels <= self.classes)
        return _of_all(good, v.boxes)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Objects:
        real = {"generator": generator, "device": device}
        lengths = torch.randint(0, _LONGEST, (n,), **real)
        offsets, m = offsets_of(lengths), int(lengths.sum())
        size = torch.tensor([self.width, self.height], device=device, dtype=dtype)
        sides = (0.25 + 0.5 * torch.rand(m, 2, dtype=dtype, **real)) * size
        start = torch.rand(m, 2, dtype=dtype, **real) * (size - sides)
        boxes = torch.cat([start, start + sides], 1)
        labels = torch.randint(1, self.classes + 1, (m,), **real)
        masks = None
        if self.masks:
            masks = Ragged(box_masks(boxes, self.height, self.width), offsets)
        return Objects(Ragged(boxes, offsets), Ragged(labels, offsets), masks)


def _masks_of(v: Objects) -> Ragged:
    assert v.masks is not None
    return v.masks


def box_masks(boxes: Tensor, height: int, width: int) -> Tensor:
    """Masks of the pixels whose centres are inside boxes, uint8 ``(m, height, width)``.

    >>> box_masks(torch.tensor([[1.0, 0.0, 3.0, 1.0]]), 2, 4).tolist()
    [[[0, 1, 1, 0], [0, 0, 0, 0]]]
    """
    y = torch.arange(height, device=boxes.device) + 0.5
    x = torch.arange(width, device=boxes.device) + 0.5
    rows = (y >= boxes[:, 1:2]) & (y < boxes[:, 3:4])  # (m, H)
    columns = (x >= boxes[:, :1]) & (x < boxes[:, 2:3])  # (m, W)
    return (rows[:, :, None] & columns[:, None]).to(torch.uint8)
