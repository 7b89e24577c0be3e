"""Batches of a population: each member's cuts of its own weight line, found once where shared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows import check_same_length, hash_together, home
from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.batches import Batches, stack_batches
from groundstate.compute.weight_line.line import WeightLine

Fed = tuple[Tensor | None, Tensor | None, Tensor | None]


class PopulationFeed:
    """Gives the steps of an epoch as ``(rows, weight, mask)``.

    Members with equal weights and equal keys see the same batches, so orders are found for the
    distinct pairs only. ``rows`` is None (all rows), ``(B,)`` for all members or ``(P, B)``;
    ``weight`` goes with it, None where every row counts one; ``mask`` ``(P,)`` says who takes part
    where some members have fewer batches.

    With ``merge`` a step of all rows sees equal rows as one, in the order of their content.

    Attributes
    ----------
    shared : whether all members see the same rows with the same weights
    steps : batches of an epoch, of the member with most
    own_steps : list of int, batches of an epoch of each member
    even : whether all members have the same weight, hence as many steps
    padded : whether rows of no weight may stand in batches
    totals : list of float, weight of each member
    """

    def __init__(
        self,
        data: Mapping[str, Tensor],
        weights: Sequence[Tensor | None],
        keys: Sequence[Key],
        batch_size: int | None,
        dtype: torch.dtype,
        merge: bool = False,
    ) -> None:
        self.device = home(data)
        self.dtype = dtype
        self.n = check_same_length(data)
        rows = [None if w is None else w.detach().double().cpu().numpy() for w in weights]
        marks = [b"" if r is None else r.tobytes() for r in rows]
        line_of = {mark: i for i, mark in enumerate(dict.fromkeys(marks))}
        first = {mark: marks.index(mark) for mark in line_of}
        pairs = [(line_of[mark], key) for mark, key in zip(marks, keys, strict=True)]
        self.pairs = list(dict.fromkeys(pairs))
        where = {pair: i for i, pair in enumerate(self.pairs)}
        self.order = torch.tensor([where[pair] for pair in pairs], device=self.device)  # (P,)
        sums = {m: float(self.n) if m == b"" else float(rows[first[m]].sum()) for m in line_of}  # type: ignore[union-attr]
        self.totals = [sums[mark] for mark in marks]
        self.size, self.padded = batch_size, False
        whole = batch_size is None or batch_size >= max(self.totals)
        self.lines: list[WeightLine] | None = None
        self.live: list[Tensor | None] = []
        self.rows: Tensor | None = None
        self.own_steps = [1] * len(marks)
        if whole and merge:
            self._merged(hash_together(data), [rows[i] for i in first.values()],
                         [line_of[mark] for mark in marks])  # fmt: skip
            return
        if whole:
            self.shared, self.steps, self.even = len(line_of) == 1, 1, True
            stacked = [rows[i] for i in first.values()]
            self.weight = self._whole(stacked, [line_of[mark] for mark in marks])
            return
        self.shared = len(self.pairs) == 1
        hashes = hash_together(data)
        self.lines = []
        for i in first.values():
            row = rows[i]
            # rows of no weight are in no batch: without them a fold is a plain permutation
            held = None if row is None or (row > 0).all() else np.flatnonzero(row)
            self.live.append(None if held is None else torch.from_numpy(held).to(self.device))
            part = slice(None) if held is None else held
            self.lines.append(WeightLine(hashes[part], None if row is None else row[part]))
        assert batch_size is not None
        counts = [math.ceil(line.total / batch_size - 1e-9) for line in self.lines]
        self.own_steps = [counts[line_of[mark]] for mark in marks]
        self.steps = max(counts)
        self.even = len({line.total for line in self.lines}) == 1
        self.sliced = self.even and all(line.slices(batch_size) for line in self.lines)
        alone = self.shared and self.device.type != "cuda"
        self.padded = not self.sliced and not alone

    def _merged(self, hashes: Any, weights: list[Any], line: list[int]) -> None:
        """All rows in one step as a single fit sees them: equal ones merged, in order of content."""
        found = [distinct_rows(hashes, row) for row in weights]
        sizes = {len(index) for index, _ in found}
        self.shared, self.steps, self.even = len(found) == 1, 1, True
        self.padded = len(sizes) > 1
        index = torch.zeros(len(found), max(sizes), dtype=torch.int64)
        weight = torch.zeros(len(found), max(sizes), dtype=self.dtype)
        for i, (own, sums) in enumerate(found):
            index[i, : len(own)] = torch.from_numpy(own)
            weight[i, : len(own)] = torch.from_numpy(sums)
        which: Any = 0 if self.shared else line
        self.rows = index.to(self.device)[which]
        plain = bool((weight == 1).all())
        self.weight = None if plain else weight.to(self.device)[which]

    def _whole(self, rows: list[Any], line: list[int]) -> Tensor | None:
        if all(row is None for row in rows):
            return None
        full = [np.ones(self.n) if row is None else row for row in rows]
        stacked = torch.from_numpy(np.stack(full)).to(self.device, self.dtype)
        return stacked[0] if len(full) == 1 else stacked[line]

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[Fed]:
        """The steps of an epoch from number ``skip`` on."""
        if self.lines is None:
            if skip == 0:
                yield self.rows, self.weight, None
            return
        pairs = [(line, key.fold("epoch", epoch)) for line, key in self.pairs]
        if self.sliced:
            yield from self._slices(pairs, skip)
            return
        cuts = [self._batches(line, key) for line, key in pairs]
        rows, weights = stack_batches(cuts)  # (K, S, B)
        weights = weights.to(self.dtype)
        for k in range(skip, len(rows)):
            sizes = [c.sizes[k] if k < len(c.sizes) else 0 for c in cuts]
            # batches of one shape are recorded once
            width = rows.shape[2] if self.device.type == "cuda" else max(sizes)
            index, weight = rows[k, :, :width], weights[k, :, :width]
            if self.shared:
                yield index[0], weight[0], None
                continue
            mask = (weight.sum(1) > 0)[self.order] if min(sizes) == 0 else None
            yield index[self.order], weight[self.order], mask

    def _slices(self, pairs: list[tuple[int, Key]], skip: int) -> Iterator[Fed]:
        """Batches that are slices of permutations; those of one line are found in one go."""
        assert self.lines is not None and self.size is not None
        n = round(self.lines[0].total)
        stacked = torch.empty(len(pairs), n, dtype=torch.int64, device=self.device)  # (S, n)
        for i, (line, live) in enumerate(zip(self.lines, self.live, strict=True)):
            which = [s for s, (own, _) in enumerate(pairs) if own == i]
            found = line.orders([pairs[s][1] for s in which], self.device)
            stacked[which] = found if live is None else live[found]
        rows = stacked[0] if self.shared else stacked
        if not self.shared and len(self.order) > len(pairs):
            rows = stacked[self.order]  # (P, n)
        for at in range(skip * self.size, n, self.size):
            yield rows[..., at : at + self.size], None, None

    def _batches(self, line: int, key: Key) -> Batches:
        assert self.lines is not None and self.size is not None
        cut = self.lines[line].batches(key, self.size, self.device)
        live = self.live[line]
        return cut if live is None else Batches(live[cut.rows], cut.weights, cut.sizes)
