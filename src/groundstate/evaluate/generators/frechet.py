r"""Fréchet distance of features: how far apart two sets of rows are in mean and covariance.

.. math:: d^2 = \|m_1-m_2\|^2 + \operatorname{tr}\big(S_1 + S_2 - 2(S_1^{1/2}S_2S_1^{1/2})^{1/2}\big)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError
from groundstate.math.divergences import frechet

CHUNK = 1024  # rows that pass through a feature network at once
ENOUGH = 10  # rows per dimension below which a covariance is mostly noise

Features = nn.Module | Callable[[Any], Any] | int | None


class FrechetStats(Displayed):
    r"""Sums over rows that the distance is made of, :math:`n, \sum x, \sum xx^\top` in float64.

    Statistics of parts of a set are merged by ``+``; a set that does not fit in memory is passed in
    pieces.

    Attributes
    ----------
    n : rows seen
    total : ``(d,)`` sum of the rows, less ``n`` times ``shift``
    product : ``(d, d)`` sum of their products
    shift : ``(d,)`` first row, which keeps differences of large numbers exact

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(400, 3))
    >>> parts = FrechetStats().update(rows[:100]) + FrechetStats().update(rows[100:])
    >>> round(parts.distance(FrechetStats().update(rows)), 9)
    0.0
    """

    def __init__(self) -> None:
        self.n = 0
        self.total: Tensor | None = None
        self.product: Tensor | None = None
        self.shift: Tensor | None = None

    def update(self, X: Any) -> Self:
        """Add rows ``(n, d)``."""
        rows = torch.as_tensor(X).detach().double()
        if rows.ndim != 2:
            raise ShapeError(f"features are rows (n, d), got shape {tuple(rows.shape)}")
        if not len(rows):
            return self
        if not bool(torch.isfinite(rows).all()):
            raise DataError("features hold NaN or infinity; leave those rows out")
        if self.shift is None or self.total is None or self.product is None:
            d = rows.shape[1]
            self.shift = rows[0].clone()
            self.total, self.product = rows.new_zeros(d), rows.new_zeros(d, d)
        if rows.shape[1] != len(self.shift):
            raise ShapeError(f"rows have {rows.shape[1]} features, earlier ones {len(self.shift)}")
        moved = rows - self.shift
        self.n += len(rows)
        self.total += moved.sum(0)
        self.product += moved.mT @ moved
        return self

    def __add__(self, other: FrechetStats) -> FrechetStats:
        if self.shift is None or other.shift is None:
            return other if self.shift is None else self
        assert self.total is not None and self.product is not None
        assert other.total is not None and other.product is not None
        merged = FrechetStats()
        merged.n, merged.shift = self.n + other.n, self.shift
        c = other.shift - self.shift  # rows of the other side lie this far from our shift
        merged.total = self.total + other.total + other.n * c
        cross = torch.outer(other.total, c)
        merged.product = (
            self.product + other.product + cross + cross.mT + other.n * torch.outer(c, c)
        )
        return merged

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean ``(d,)`` and covariance ``(d, d)`` with n - 1."""
        if self.n < 2 or self.shift is None or self.total is None or self.product is None:
            raise DataError(f"a covariance needs at least two rows, got {self.n}")
        mean = self.total / self.n
        cov = (self.product - self.n * torch.outer(mean, mean)) / (self.n - 1)
        return self.shift + mean, 0.5 * (cov + cov.mT)

    def distance(self, other: FrechetStats) -> float:
        """The squared distance to other rows."""
        return float(frechet(*self.moments(), *other.moments()))

    def _facts(self) -> dict[str, object]:
        return {"rows": self.n, "features": 0 if self.shift is None else len(self.shift)}


def frechet_distance(X: Any, Y: Any, features: Features = None) -> float:
    r"""Squared Fréchet distance of two sets of rows in a space of features.

    With the pool features of an Inception network this is the FID.

    Parameters
    ----------
    X, Y : rows ``(n, ...)`` and ``(m, ...)``, arrays or tensors
    features : None takes rows as they are, flattened; a number so many principal components of X; a
        module or function maps rows ``(B, ...)`` to features ``(B, d)``

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (50_000, 1)), rng.normal(3, 2, (50_000, 1))
    >>> round(frechet_distance(a, b), 1)
    10.0
    """
    found = []
    for rows in featured(features, X, Y):
        stats = FrechetStats()
        for part in rows:
            stats.update(part)
        found.append(stats)
    a, b = found
    if min(a.n, b.n) < ENOUGH * (0 if a.shift is None else len(a.shift)):
        assert a.shift is not None
        warnings.warn(
            f"a Fréchet distance of {len(a.shift)} features from {min(a.n, b.n)} rows is biased upwards; "
            f"use {ENOUGH * len(a.shift)} rows, or fewer features (features=20 takes principal components)",
            stacklevel=2,
        )
    return a.distance(b)


def featured(features: Features, *sets: Any) -> list[Iterable[Tensor]]:
    """Each set of rows as pieces of its features."""
    rows = [torch.as_tensor(np.asarray(s) if not isinstance(s, Tensor) else s) for s in sets]
    if features is None:
        return [[r.reshape(len(r), -1)] for r in rows]
    if isinstance(features, int):
        first = rows[0].reshape(len(rows[0]), -1).double()
        centre = first.mean(0)
        axes = torch.linalg.svd(first - centre, full_matrices=False)[2][:features].mT
        return [[(r.reshape(len(r), -1).double() - centre) @ axes] for r in rows]
    return [_passed(features, r) for r in rows]


def _passed(features: Any, rows: Tensor) -> Iterable[Tensor]:
    with torch.no_grad():
        for part in rows.split(CHUNK):
            if isinstance(features, nn.Module):
                like = next(iter(features.parameters()), part)
                part = part.to(like.device, like.dtype)
            found = torch.as_tensor(features(part))
            yield found.reshape(len(found), -1).cpu()
