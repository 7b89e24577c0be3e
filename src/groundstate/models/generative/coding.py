r"""How rows of a table or pictures become the real vectors that a generator learns from, and back.

.. math:: \tilde x_j = (x_j + \tfrac12\delta_j - m_j)/s_j, \qquad
    \log p(x) = \log\tilde p(\tilde x) - \sum_j\log s_j

with a step :math:`\delta_j` where values are whole numbers or levels of a category, which stand for a
cell :math:`[x_j, x_j + \delta_j)`: learning spreads them over it (dequantisation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import DataError

F64 = NDArray[np.float64]
CODES = ("dequantise", "onehot", "levels")
_BITS = 24  # of a shift and a scale


@dataclass(frozen=True, eq=False)  # arrays have no one answer
class Coding:
    """The code of the columns of a table, learned from training rows.

    Attributes
    ----------
    levels : number of levels of each column, 0 for numbers, ``(d,)``
    steps : width of the cell a value stands for, 0 for real numbers, ``(d,)``
    mean, scale : of each coded column, ``(D,)``
    code : how categories enter: "dequantise", "onehot" or "levels"
    fixed : the one value of each column that has no other, which draws have too; NaN elsewhere, ``(d,)``,
        or None where every column varies

    Examples
    --------
    >>> X = torch.tensor([[1.0, 0], [3.0, 1], [5.0, 1]])
    >>> coding = Coding.learned(X, {1: 2}, code="onehot", scale="standard")
    >>> coding.encode(X).round(decimals=2).tolist()
    [[-1.2200000286102295, 1.0, 0.0], [0.0, 0.0, 1.0], [1.2200000286102295, 0.0, 1.0]]
    >>> coding.decode(coding.encode(X)).tolist() == X.tolist()
    True
    """

    levels: NDArray[np.int64]
    steps: F64
    mean: F64
    scale: F64
    code: str
    fixed: F64 | None = None

    @classmethod
    def learned(
        cls,
        X: Tensor,
        levels: Mapping[int, int],
        *,
        code: str,
        scale: str | None,
        dequantize: bool = False,
        pooled: bool = False,
        weight: Tensor | None = None,
        constants: bool = True,
    ) -> Coding:
        """Learn it from training rows, ``(n, d)``, whose categories are numbers of levels.

        ``pooled`` gives all columns one shift and one scale, as pixels of pictures have. Of others,
        those of one value keep it in draws, where ``constants`` says so.
        """
        if code not in CODES:
            raise ValueError(f"code must be one of {', '.join(CODES)}, got {code!r}")
        d = X.shape[1]
        counts = np.array([levels.get(j, 0) for j in range(d)], np.int64)
        category = counts > 0
        steps = np.where(category & (code == "dequantise"), 1.0, 0.0)
        if dequantize:
            _require_whole(X, ~category)
            steps = np.where(category, steps, 1.0)
        mean, spread = coarse(*_moments(X, weight, scale, steps, pooled))
        if code != "dequantise":  # bits of categories, or their numbers
            bits = code == "onehot" and scale == "minmax"
            mean = np.where(category, 0.5 if bits else 0.0, mean)
            spread = np.where(category, 0.5 if bits else 1.0, spread)
        widths = np.maximum(counts, 1) if code == "onehot" else np.ones(d, np.int64)
        fixed = _constants(X, weight) if constants and not pooled else None
        return cls(counts, steps, np.repeat(mean, widths), np.repeat(spread, widths), code, fixed)

    # --- sizes ---------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Length of a coded row."""
        return len(self.mean)

    @property
    def widths(self) -> list[int]:
        """Coded columns of each column of the table."""
        if self.code != "onehot":
            return [1] * len(self.levels)
        return [max(int(k), 1) for k in self.levels]

    @property
    def coded_levels(self) -> list[int]:
        """Of each coded column its number of levels where it holds level numbers, else 0."""
        return [int(k) for k in self.levels] if self.code == "levels" else [0] * self.size

    @property
    def cells(self) -> F64:
        """Width of the cell that a value stands for, in coded units, ``(D,)``; 0 for a point."""
        if self.code == "onehot":
            return np.repeat(self.steps, self.widths) / self.scale
        return self.steps / self.scale

    @property
    def is_spread(self) -> bool:
        """Whether some values stand for cells."""
        return bool(self.steps.any())

    @property
    def log_scale(self) -> float:
        r""":math:`\sum_j\log s_j`: what a log density loses in the units of the rows."""
        return float(np.log(self.scale).sum())

    # --- there and back ------------------------------------------------------------------

    def encode(self, x: Tensor) -> Tensor:
        """Coded rows ``(B, D)`` of rows ``(B, d)``; whole numbers and levels at the middle of their cell."""
        if self.code == "onehot" and self.levels.any():
            x = torch.cat([self._block(x[:, j], int(k)) for j, k in enumerate(self.levels)], 1)
        elif not self.is_spread and not self.mean.any() and (self.scale == 1).all():
            return x
        half = self._on(np.repeat(self.steps, self.widths) / 2 - self.mean, x)
        return (x + half) / self._on(self.scale, x)

    def decode(self, x: Tensor) -> Tensor:
        """Rows ``(B, d)`` of coded rows ``(B, D)``."""
        x = x * self._on(self.scale, x) + self._on(self.mean, x)
        if self.code == "onehot" and self.levels.any():
            blocks = x.split(self.widths, 1)
            x = torch.cat(
                [
                    b.argmax(1, keepdim=True).to(x.dtype) if k else b
                    for b, k in zip(blocks, self.levels, strict=True)
                ],
                1,
            )
        elif self.code == "levels" and self.levels.any():
            x = torch.where(self._on(self.levels > 0, x), x.round(), x)
        if self.is_spread:
            x = torch.where(self._on(self.steps > 0, x), x.floor(), x)
        if self.levels.any():
            top = self._on(np.where(self.levels > 0, self.levels - 1.0, math.inf), x)
            low = self._on(np.where(self.levels > 0, 0.0, -math.inf), x)
            x = torch.minimum(torch.maximum(x, low), top)
        if self.fixed is not None:
            x = torch.where(self._on(np.isnan(self.fixed), x), x, self._on(self.fixed, x))
        return x

    def spread(self, mask: Tensor) -> Tensor:
        """A mask of cells ``(B, d)`` for coded columns, ``(B, D)``."""
        if self.code != "onehot":
            return mask
        return mask.repeat_interleave(torch.tensor(self.widths, device=mask.device), 1)

    def _block(self, x: Tensor, k: int) -> Tensor:
        if not k:
            return x[:, None]
        known = torch.nan_to_num(x).long()
        return torch.nn.functional.one_hot(known, k).to(x.dtype)

    def _on(self, values: NDArray[Any], like: Tensor) -> Tensor:
        kind = torch.bool if values.dtype == bool else like.dtype
        return torch.from_numpy(np.ascontiguousarray(values)).to(like.device, kind)


def _require_whole(X: Tensor, numbers: NDArray[np.bool_]) -> None:
    off = (X.floor() != X).any(0).cpu().numpy() & numbers
    if off.any():
        j = int(np.flatnonzero(off)[0])
        value = float(X[X[:, j] != X[:, j].floor(), j][0])
        raise DataError(
            f"dequantize=True is for whole numbers, but column {j} holds {value!r}; use "
            "dequantize=False, or round the values"
        )


def _constants(X: Tensor, weight: Tensor | None) -> F64 | None:
    """The value of each column that has only one, ``(d,)``; None where there is no such column."""
    kept = X if weight is None else X[weight > 0]
    low, high = (v.double().cpu().numpy() for v in (kept.amin(0), kept.amax(0)))
    return np.where(low == high, low, np.nan) if (low == high).any() else None


def coarse(mean: F64, scale: F64) -> tuple[F64, F64]:
    """Shift and scale without their last bits, in which a weight of 2 and the row twice may differ."""
    mantissa, exponent = np.frexp(scale)
    unit = np.ldexp(1.0, exponent - _BITS)
    return np.rint(mean / unit) * unit, np.ldexp(
        np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS
    )


def _moments(
    X: Tensor, weight: Tensor | None, scale: str | None, steps: F64, pooled: bool
) -> tuple[F64, F64]:
    """Shift and scale of each column: to mean 0 and spread 1, to [-1, 1], to [0, 1], or none."""
    d = X.shape[1]
    if scale is None:
        return np.zeros(d), np.ones(d)
    kept = X.double() if weight is None else X[weight > 0].double()
    if scale == "standard":
        w = None if weight is None else weight[weight > 0].double()[:, None]
        mean = kept.mean(0) if w is None else (w * kept).sum(0) / w.sum()
        square = (kept - mean).square()
        var = square.mean(0) if w is None else (w * square).sum(0) / w.sum()
        if pooled:
            centre = mean.mean()
            var = (var + (mean - centre).square()).mean().expand(d)
            mean = centre.expand(d)
        m, v = mean.cpu().numpy() + steps / 2, var.cpu().numpy() + steps**2 / 12
        top = np.abs(m) * 10 * np.finfo(np.float64).eps  # rounding of a constant column
        s = np.sqrt(v)
        return m, np.where(s > top, s, 1.0)
    low, high = kept.amin(0).cpu().numpy(), kept.amax(0).cpu().numpy() + steps
    if pooled:
        low, high = np.full(d, low.min()), np.full(d, high.max())
    span = np.where(high > low, high - low, 1.0)
    return (low, span) if scale == "unit" else (low + span / 2, span / 2)
