r"""Boosted trees grown on a device: rows, histograms and cuts stay there.

Growth is best-first, one split after the other, but a device wants many at once. So the children of
all leaves that may still be split are prepared together, and the splits are then taken in order of
their gain until one is reached that was not prepared: the tree is that of `histogram_tree`, in
about as many rounds as it is deep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import mix64
from groundstate.energy.trees.nodes import Tree, TreeNodes
from groundstate.learn.solvers.boosting.histogram.device_cuts import (
    CODE,
    COLUMN,
    GAIN,
    LEFT_G,
    LEFT_W,
    SEEN,
    SIDE,
    best_cuts,
)
from groundstate.learn.solvers.boosting.histogram.device_fill import fill
from groundstate.learn.solvers.boosting.histogram.device_rows import (
    device_codes,
    partition,
    quantised,
    step_of,
)
from groundstate.learn.solvers.boosting.histogram.grower import Limits, Weighing
from groundstate.learn.solvers.trees.bins_numba import Bins

_LEFT, _RIGHT = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)


@dataclass
class _Node:
    lo: int
    hi: int
    total: tuple[float, float, float]  # G, H, weight
    path: np.uint64  # identity of the node, for random columns
    depth: int = 0
    box: tuple[float, float] = (-math.inf, math.inf)
    alive: tuple[int, ...] = ()  # interaction groups
    hist: Tensor | None = None
    cut: Any = None  # the best cut, None for a leaf
    gain: float = 0.0
    children: list[_Node] = field(default_factory=list)
    number: int = 0
    split: bool = False

    @property
    def size(self) -> int:
        return self.hi - self.lo


class DeviceGrower:
    """Grows trees on one table of numeric columns that stands on a device.

    Parameters
    ----------
    x : (n, d)
    bins : of its columns
    weight : (n,) or None; rows of weight zero are left out, but `add` reaches them
    limits : of a tree
    """

    def __init__(self, x: Tensor, bins: Bins, weight: Tensor | None, limits: Limits) -> None:
        self.x, self.bins, self.limits = x, bins, limits
        self.n, self.d = x.shape
        own = None if weight is None else weight.cpu().numpy()
        w = Weighing.of(own, self.n)
        self.weighing = w
        self.weight = None if w.weight is None else torch.from_numpy(w.weight).to(x.device)
        self.live = torch.from_numpy(w.live).to(x.device)
        self.codes = device_codes(x, bins)
        self.n_bins = torch.from_numpy(bins.n_bins).to(x.device)
        self.rules = (limits.l2 * w.scale, limits.min_weight, limits.min_hessian)
        signs = limits.rising
        self.signs = None if signs is None else torch.tensor(signs, device=x.device)
        self.rows = self.live
        self.columns = self.d if limits.columns >= 1 else max(1, int(limits.columns * self.d))
        self.pairs = torch.zeros((self.n, 2), dtype=torch.int64, device=x.device)
        self.units = (1.0, 1.0, 1.0, 1)

    def grow(
        self, g: Tensor, h: Tensor, seed: int, live: NDArray[np.int32] | None = None
    ) -> tuple[Tree, list[tuple[int, int, int]]]:
        """A tree of leaf values −G/(H+λ), and for each leaf (node, lo, hi) in ``self.rows``.

        ``live`` are the rows that it sees, all of positive weight by default.
        """
        w = self.weighing
        own = 1.0 if self.weight is None else self.weight
        if live is not None:
            keep = torch.zeros(self.n, dtype=g.dtype, device=g.device)
            keep[torch.from_numpy(live).to(g.device).long()] = 1.0
            g, h = g * keep, h * keep
        sums = torch.stack([(g * own).abs().sum(), (h * own).sum()]).tolist()
        step_g, step_h = step_of(sums[0], 60), step_of(sums[1], 61 - w.bits)
        self.pairs[:, 0] = quantised(g, self.weight, step_g)
        count = torch.round((g.new_ones(self.n) * own) / w.unit).long()
        self.pairs[:, 1] = (quantised(h, self.weight, step_h) << w.bits) + count
        self.units = (step_g, step_h, w.unit, w.bits)
        self.rows = self.live.clone() if live is None else torch.from_numpy(live).to(g.device)
        mask = (1 << w.bits) - 1
        g_all, p_all = self.pairs[self.rows.long()].sum(0).tolist()
        total = (g_all * step_g, (p_all >> w.bits) * step_h, (p_all & mask) * w.unit)
        groups = () if self.limits.together is None else tuple(range(len(self.limits.together)))
        root = _Node(0, len(self.rows), total, np.uint64(seed), alive=groups)
        root.hist = self._fill([root])[0]
        self._evaluate([root])
        nodes = self._take(root)
        return self._tree(nodes, h)

    def _take(self, root: _Node) -> list[_Node]:
        """Split leaves in the order of their gain; all nodes, numbered."""
        limit = self.limits.max_leaves
        nodes, pending, leaves = [root], [root] if root.cut is not None else [], 1
        while pending and (limit is None or leaves < limit):
            pick = len(pending) - 1
            if limit is not None:
                pick = 0
                for k in range(1, len(pending)):
                    if pending[k].gain > pending[pick].gain * (1 + 1e-11):
                        pick = k
            v = pending[pick]
            if not v.children:
                ranked = sorted(pending, key=lambda u: -u.gain)
                ahead = ranked if limit is None else ranked[: limit - leaves]
                self._make([u for u in ahead if not u.children])
            pending.pop(pick)
            leaves += 1
            v.split = True
            for child in v.children:
                child.number = len(nodes)
                nodes.append(child)
            left, right = v.children
            order = (right, left) if left.size <= right.size else (left, right)
            pending += [u for u in order if u.cut is not None]
        return nodes

    def _make(self, parents: list[_Node]) -> None:
        """Give all these nodes their children, with histograms and cuts."""
        spans = [(v.lo, v.hi) for v in parents]
        cuts = [(int(v.cut[COLUMN]), int(v.cut[CODE]), bool(v.cut[SIDE])) for v in parents]
        middles = partition(self.codes, self.rows, spans, cuts)
        small = []
        for v, middle in zip(parents, middles):
            v.children = self._children(v, middle)
            small.append(min(v.children, key=lambda u: u.size))
        hists = self._fill(small)
        for v, near, hist in zip(parents, small, hists):
            far = v.children[1] if near is v.children[0] else v.children[0]
            assert v.hist is not None
            near.hist, far.hist, v.hist = hist, v.hist - hist, None
        self._evaluate([child for v in parents for child in v.children])

    def _children(self, v: _Node, middle: int) -> list[_Node]:
        j = int(v.cut[COLUMN])
        left: Any = tuple(v.cut[LEFT_G : LEFT_W + 1].tolist())
        right: Any = tuple(a - b for a, b in zip(v.total, left))
        alive = v.alive
        if self.limits.together is not None:
            alive = tuple(k for k in v.alive if j in self.limits.together[k])
        boxes = [v.box, v.box]
        sign = 0 if self.limits.rising is None else self.limits.rising[j]
        if sign:
            middle_value = (self._value(left, v.box) + self._value(right, v.box)) / 2
            below, above = (v.box[0], middle_value), (middle_value, v.box[1])
            boxes = [below, above] if sign > 0 else [above, below]
        spans = ((v.lo, middle), (middle, v.hi))
        return [
            _Node(lo, hi, total, mix64(np.array([v.path ^ word]))[0], v.depth + 1, box, alive)
            for (lo, hi), total, word, box in zip(spans, (left, right), (_LEFT, _RIGHT), boxes)
        ]

    def _value(self, total: tuple[float, float, float], box: tuple[float, float]) -> float:
        return min(max(-total[0] / (total[1] + self.rules[0]), box[0]), box[1])

    def _fill(self, nodes: list[_Node]) -> Tensor:
        spans = [(v.lo, v.hi) for v in nodes]
        return fill(self.codes, self.rows, self.pairs, spans)[:, : self.d]

    def _evaluate(self, nodes: list[_Node]) -> None:
        """Find the best cut of every node that may have one."""
        depth = self.limits.max_depth
        open_ = [v for v in nodes if depth is None or v.depth < depth]
        open_ = [v for v in open_ if v.total[2] >= 2 * self.rules[1]]
        if not open_:
            return
        device = self.x.device
        hist = torch.stack([v.hist for v in open_])  # type: ignore[misc]
        total, box = [v.total for v in open_], [v.box for v in open_]
        allowed = None
        if self.columns < self.d or self.limits.together is not None:
            allowed = torch.from_numpy(np.stack([self._allowed(v) for v in open_])).to(device)
        found = best_cuts(
            hist, total, self.n_bins, self.units, self.rules, allowed, self.signs, box
        ).cpu().numpy()  # fmt: skip
        for v, cut in zip(open_, found):
            value = self._value(v.total, v.box)
            own = -(v.total[0] * value + 0.5 * (v.total[1] + self.rules[0]) * value * value)
            if cut[GAIN] > own + 1e-10 * abs(own):
                v.cut, v.gain = cut, float(cut[GAIN] - own)

    def _allowed(self, v: _Node) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Columns that a node may cut: those of its live interaction groups, some at random."""
        allowed = np.ones(self.d, bool)
        if self.limits.together is not None:
            live = frozenset().union(*(self.limits.together[k] for k in v.alive))
            allowed = np.array([j in live for j in range(self.d)])
        if self.columns < self.d:
            j = np.arange(1, self.d + 1, dtype=np.uint64)
            key = mix64(v.path ^ mix64(j)) >> np.uint64(1)
            order = np.lexsort((np.arange(self.d), key, ~allowed))
            allowed[order[self.columns :]] = False
        return allowed

    def _tree(self, nodes: list[_Node], h: Tensor) -> tuple[Tree, list[tuple[int, int, int]]]:
        size = len(nodes)
        inner = [v for v in nodes if v.split]
        feature, threshold = np.full(size, -1), np.zeros(size)
        left, right = np.full(size, -1), np.full(size, -1)
        nan_left, gain = np.zeros(size, bool), np.zeros(size)
        for v in inner:
            k, j, code = v.number, int(v.cut[COLUMN]), int(v.cut[CODE])
            edges = self.bins.edges[j]
            feature[k], gain[k] = j, v.gain
            threshold[k] = edges[code] if code < len(edges) else math.inf
            left[k], right[k] = (child.number for child in v.children)
            one, other = v.children
            # NaN that was not seen in training goes to the larger side
            nan_left[k] = v.cut[SIDE] > 0 if v.cut[SEEN] else one.total[2] >= other.total[2]
        ends = sorted((v for v in nodes if not v.split), key=lambda v: v.lo)
        value = np.zeros((size, 1))
        sums = self._sums(ends, h)
        for v, (a, b) in zip(ends, sums):
            b += self.rules[0]
            value[v.number, 0] = min(max(-a / b if b > 0 else 0.0, v.box[0]), v.box[1])
        tree = Tree(
            feature, threshold, left, right, nan_left, value,
            np.array([v.total[2] for v in nodes]), gain,
            np.array([v.size for v in nodes], np.int64), {},
        )  # fmt: skip
        ends.sort(key=lambda v: v.number)
        return tree, [(v.number, v.lo, v.hi) for v in ends]

    def _sums(self, ends: list[_Node], h: Tensor) -> list[tuple[float, float]]:
        """Sums of g and h over leaves: whole numbers, so that no order of additions matters."""
        own = h if self.weight is None else h * self.weight
        step = step_of(float(own.sum()), 60)
        # one row per sum: a scan along the last axis is far faster than one across it
        both = torch.stack([self.pairs[:, 0], quantised(h, self.weight, step)])  # (2, n)
        running = both[:, self.rows.long()].cumsum(1)
        at = torch.tensor([v.hi - 1 for v in ends], device=self.x.device)
        upto = running[:, at].T.tolist()
        before = [[0, 0], *upto[:-1]]
        units = (self.units[0], step)
        return [((b[0] - a[0]) * units[0], (b[1] - a[1]) * units[1]) for a, b in zip(before, upto)]

    def add(self, tree: Tree, spans: list[tuple[int, int, int]], out: Tensor) -> None:
        """Add the tree's values to ``out`` (n,), also for rows of weight zero."""
        ordered = sorted(spans, key=lambda s: s[1])
        device = self.x.device
        value = torch.from_numpy(tree.value[[s[0] for s in ordered], 0]).to(device)
        size = torch.tensor([s[2] - s[1] for s in ordered], device=device)
        rows = self.rows.long()
        out[rows] += torch.repeat_interleave(value, size)
        if len(rows) < self.n:
            unseen = torch.ones(self.n, dtype=torch.bool, device=device)
            unseen[rows] = False
            rest = torch.nonzero(unseen)[:, 0]
            nodes = TreeNodes().to(device, torch.float64)
            nodes.set([replace(tree, column=-1)])
            out[rest] += nodes(self.x[rest].double(), 1)[:, 0]
