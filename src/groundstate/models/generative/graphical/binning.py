"""Level numbers of every column, so that a table of any columns is discrete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import DataError

F64 = NDArray[np.float64]
DISTINCT = 20  # different values up to which whole numbers are levels as they are
TINY = 1e-30  # of a uniform draw


@dataclass(frozen=True, eq=False)
class Binning:
    """The levels of every column: categories, few whole numbers, or bins of equal frequency.

    The code of a number is its place, ``level + part of the bin``: whole numbers where values are
    levels themselves. Between them decoding interpolates. A number beyond those that were learned belongs
    to the last bin on its side, with a code below 0 or above the number of bins: of a bin with m rows a
    share :math:`t = 1/(m + 1)` of the probability falls off beyond it, :math:`e^{-a/s}` at the distance a,
    so that the density integrates to 1 over all numbers.

    Attributes
    ----------
    levels : number of levels of categories, 0 for numbers, ``(d,)``
    binned : which columns are cut into bins, ``(d,)``
    points : values or cuts of all columns of numbers one after the other
    starts : where those of each column begin, ``(d + 1,)``
    tails : share of the first and of the last bin that lies beyond it, ``(d, 2)``; None for none

    Examples
    --------
    >>> X = torch.tensor([[0.0, 7.0], [1.0, 3.0], [1.0, 3.0]])
    >>> code = Binning.learned(X, {0: 2}, n_bins=4)
    >>> code.encode(X).tolist(), code.coded_levels
    ([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], [2, 2])
    """

    levels: NDArray[np.int64]
    binned: NDArray[np.bool_]
    points: F64
    starts: NDArray[np.int64]
    tails: F64 | None = None

    is_spread = False
    log_scale = 0.0

    @classmethod
    def learned(
        cls, X: Tensor, levels: Mapping[int, int], n_bins: int, weight: Tensor | None = None
    ) -> Binning:
        """Learn it from training rows ``(n, d)``; NaN are missing."""
        rows = X.detach().cpu().double().numpy()
        w = np.ones(len(rows)) if weight is None else weight.cpu().double().numpy()
        d = rows.shape[1]
        counts = np.array([levels.get(j, 0) for j in range(d)], np.int64)
        binned, parts, starts, tails = np.zeros(d, bool), [], [0], np.zeros((d, 2))
        for j in range(d):
            points = np.empty(0)
            if not counts[j]:
                here = ~np.isnan(rows[:, j]) & (w > 0)
                values, place = np.unique(rows[here, j], return_inverse=True)
                if not len(values):
                    raise DataError(f"column {j} has no value at all; drop it")
                points = values
                levelled = len(values) <= DISTINCT and bool((values == np.rint(values)).all())
                if len(values) > 1 and not levelled:
                    share = np.cumsum(np.bincount(place, w[here])) / w[here].sum()
                    inner = np.searchsorted(share, np.arange(1, n_bins) / n_bins - 1e-12)
                    cuts = (values[inner] + values[np.minimum(inner + 1, len(values) - 1)]) / 2
                    points = np.unique(np.concatenate([values[:1], cuts, values[-1:]]))
                    binned[j] = True
                    inside = (values <= points[1], values >= points[-2])
                    tails[j] = [1 / (1 + w[here] @ own[place]) for own in inside]
            parts.append(points)
            starts.append(starts[-1] + len(points))
        return cls(counts, binned, np.concatenate(parts), np.array(starts, np.int64), tails)

    @property
    def size(self) -> int:
        """Length of a coded row."""
        return len(self.levels)

    @property
    def widths(self) -> list[int]:
        return [1] * self.size

    @property
    def cells(self) -> F64:
        return np.zeros(self.size)

    @property
    def coded_levels(self) -> list[int]:
        """Number of levels of each column."""
        return [
            int(k) if k else int(b - a - cut)
            for k, cut, a, b in zip(
                self.levels, self.binned, self.starts, self.starts[1:], strict=False
            )
        ]

    def spread(self, mask: Tensor) -> Tensor:
        return mask

    def values(self, j: int) -> F64:
        """What the levels of a column stand for: values, or the middles of bins."""
        points = self.points[self.starts[j] : self.starts[j + 1]]
        if self.levels[j]:
            return np.arange(self.levels[j], dtype=np.float64)
        return np.asarray((points[1:] + points[:-1]) / 2 if self.binned[j] else points)

    def _points(self, j: int, like: Tensor) -> Tensor:
        return torch.from_numpy(self.points[self.starts[j] : self.starts[j + 1]]).to(like)

    def encode(self, x: Tensor, exact: bool = True) -> Tensor:
        """Codes ``(B, d)``; NaN stay.

        Parameters
        ----------
        exact : refuse numbers that are no level; otherwise they lie between levels
        """
        out = x.clone()
        for j in range(self.size):
            if self.levels[j]:
                continue
            p, v = self._points(j, x), x[:, j].contiguous()
            top = max(len(p) - 2, 0)
            k = (torch.searchsorted(p, v, right=True) - 1).clamp(0, top)
            high = p[(k + 1).clamp_max(len(p) - 1)]
            part = torch.where(high > p[k], (v - p[k]) / (high - p[k]), torch.zeros_like(v))
            code = k + part.clamp(0, 1)
            if self.binned[j]:
                last = torch.nextafter(code.new_tensor(len(p) - 1.0), code.new_tensor(0.0))
                code = torch.minimum(code, last)
                for side, reach in enumerate(self._reach(j)):
                    if reach:
                        beyond = v - p[-1] if side else v - p[0]
                        out_there = beyond > 0 if side else beyond < 0
                        end = float(len(p) - 1) if side else 0.0
                        code = torch.where(out_there, end + beyond / reach, code)
            elif exact:
                foreign = ~torch.isnan(v) & (self._at(p, code.round()) != v)
                if bool(foreign.any()):
                    raise DataError(
                        f"column {j} holds {float(v[foreign][0])!r}, which was not seen in fit; the "
                        f"values are {', '.join(f'{u:g}' for u in p[:10].tolist())}"
                    )
                code = torch.where(torch.isnan(v), v, code.round())
            out[:, j] = torch.where(torch.isnan(v), v, code)
        return out

    @staticmethod
    def _at(points: Tensor, code: Tensor) -> Tensor:
        return points[torch.nan_to_num(code).long().clamp(0, len(points) - 1)]

    def decode(self, x: Tensor) -> Tensor:
        """Rows ``(B, d)`` of codes."""
        out = x.clone()
        for j in range(self.size):
            if self.levels[j]:
                out[:, j] = x[:, j].round().clamp(0, int(self.levels[j]) - 1)
                continue
            p = self._points(j, x)
            k = x[:, j].floor().clamp(0, max(len(p) - 2, 0))
            low, high = self._at(p, k), self._at(p, k + 1)
            part = (x[:, j] - k).clamp(0, 1)
            whole = part == 0  # values come back to the bit
            out[:, j] = torch.where(
                whole, low, torch.where(part == 1, high, low + part * (high - low))
            )
            if self.binned[j]:
                below, above = self._reach(j)
                far = (x[:, j] - (len(p) - 1)).clamp_min(0) * above + x[:, j].clamp_max(0) * below
                out[:, j] = out[:, j] + far
        return out

    def _tails(self, j: int) -> tuple[float, float]:
        """Shares of the first and the last bin beyond them."""
        if self.tails is None or not self.binned[j]:
            return 0.0, 0.0
        return float(self.tails[j, 0]), float(self.tails[j, 1])

    def _reach(self, j: int) -> tuple[float, float]:
        """Mean distances beyond the first and the last point, 0 without tails: as those of an exponential
        distribution whose m-th part reaches over the bin."""
        p = self.points[self.starts[j] : self.starts[j + 1]]
        low, high = self._tails(j)
        return (
            (p[1] - p[0]) / -np.log(low) if low else 0.0,
            (p[-1] - p[-2]) / -np.log(high) if high else 0.0,
        )

    def log_width(self, x: Tensor) -> Tensor:
        """Log of how much of a number one unit of its code is, summed over columns, ``(B,)``."""
        total = x.new_zeros(len(x))
        for j in np.flatnonzero(self.binned):
            own = x[:, j]
            width = self._points(int(j), x).diff().log()
            here = width[torch.nan_to_num(own).long().clamp(0, len(width) - 1)]
            for far, reach in zip(self._beyond(int(j), own), self._reach(int(j)), strict=True):
                if reach:
                    here = torch.where(far > 0, np.log(reach), here)
            total = total + torch.where(torch.isnan(own), 0.0, here)
        return total

    def fall(self, x: Tensor) -> Tensor:
        """Minus the log density of codes given their levels, ``(B,)``: 0 but in the outer bins."""
        total = x.new_zeros(len(x))
        for j in np.flatnonzero(self.binned):
            own, top = x[:, j], self._top(int(j))
            there = own < 1, own >= top
            beyond = self._beyond(int(j), own)
            shares, inner = self._tails(int(j)), torch.ones_like(own)
            for near, tail in zip(there, shares, strict=True):
                inner = torch.where(near, inner - tail, inner)
            here = -inner.log()
            for far, tail in zip(beyond, shares, strict=True):
                if tail:
                    here = torch.where(far > 0, far - np.log(tail), here)
            total = total + torch.where(torch.isnan(own), 0.0, here)
        return total

    def _beyond(self, j: int, code: Tensor) -> tuple[Tensor, Tensor]:
        """How far codes lie below the first and above the last bin, in mean distances."""
        return -code, code - (self._top(j) + 1)

    def level(self, x: Tensor) -> Tensor:
        """Level numbers of codes: the bin without the place in it."""
        cut = torch.from_numpy(self.binned).to(x.device)
        top = torch.tensor([max(k - 1, 0) for k in self.coded_levels], device=x.device).to(x)
        return torch.where(cut, torch.minimum(x.floor().clamp_min(0), top), x)

    def inside(self, level: Tensor, generator: torch.Generator | None) -> Tensor:
        """Places in the bins of level numbers: drawn, or the middle without a generator."""
        cut = torch.from_numpy(self.binned).to(level.device)
        if generator is None:
            return torch.where(cut, level + 0.5, level)
        drawn = torch.rand(level.shape, generator=generator, device=generator.device)
        u, out = drawn.to(level), level.clone()
        for j in np.flatnonzero(self.binned):
            k, own = level[:, j], u[:, j]
            low, high = self._tails(int(j))
            first, last = (k == 0).to(own) * low, (k == self._top(int(j))).to(own) * high
            place = k + (own - first) / (1 - first - last)
            if low:
                place = torch.where(own < first, (own / low).clamp_min(TINY).log(), place)
            if high:
                far = -((1 - own) / high).clamp_min(TINY).log()
                place = torch.where(1 - own < last, self._top(int(j)) + 1 + far, place)
            out[:, j] = place
        return out

    def _top(self, j: int) -> int:
        """The number of the last bin of a column."""
        return int(self.starts[j + 1] - self.starts[j]) - 2

    def means(self, j: int) -> F64:
        """The mean of each level of a column."""
        found, (low, high), (below, above) = self.values(j).copy(), self._tails(j), self._reach(j)
        if low or high:
            p = self.points[self.starts[j] : self.starts[j + 1]]
            middle = found.copy()
            found[0] += low * (p[0] - below - middle[0])
            found[-1] += high * (p[-1] + above - middle[-1])
        return found

    def mean(self, marginals: list[Tensor]) -> Tensor:
        """Codes of mean numbers and of the most frequent categories, from probabilities of levels."""
        columns = []
        for j, p in enumerate(marginals):
            if self.levels[j]:
                columns.append(p.argmax(1).to(p))
                continue
            columns.append(p @ torch.from_numpy(self.means(j)).to(p))
        return self.encode(torch.stack(columns, 1), exact=False)

    def states(self, j: int, names: NDArray[Any] | None = None) -> list[Any]:
        """What people call the levels of a column."""
        if names is not None:
            return [v.item() if hasattr(v, "item") else v for v in names]
        if self.levels[j]:
            return list(range(int(self.levels[j])))
        if self.binned[j]:
            points = self.points[self.starts[j] : self.starts[j + 1]]
            return [(float(a), float(b)) for a, b in pairwise(points)]
        return [int(v) if float(v).is_integer() else float(v) for v in self.values(j)]
