r"""Covariance and correlation: in one pass over chunks and shards, and with an interval."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.stats
import torch
from torch import Tensor

from groundstate.errors import DataError, Unreliable
from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.stats.interval import checked_level, z_of
from groundstate.math.stats.result import TestResult


class StreamingCov:
    r"""Count, mean and scatter :math:`\sum_i w_i(x_i - \bar x)(x_i - \bar x)^\top` of rows that come in chunks.

    Two such summaries merge exactly (Chan, Golub and LeVeque):

    .. math:: S = S_a + S_b + \tfrac{n_an_b}{n_a + n_b}\,\delta\delta^\top, \qquad \delta = \bar x_b - \bar x_a

    so chunks, shards and workers give what one pass over all rows gives. Sums are float64; tensors stay on
    their device.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> whole = StreamingCov().update(X)
    >>> parts = StreamingCov().update(X[:30]).merge(StreamingCov().update(X[30:]))
    >>> bool(np.allclose(whole.covariance(), np.cov(X.T))), bool(np.allclose(parts.mean, X.mean(0)))
    (True, True)
    """

    def __init__(self) -> None:
        self.count = 0.0
        self._mean: Tensor | None = None
        self._scatter: Tensor | None = None
        self._numpy = True

    def update(self, X: Any, sample_weight: Any = None) -> StreamingCov:
        """Add rows ``(n, d)``, or ``(n,)`` for one column; returns itself."""
        rows = as_tensor(X, "X")
        self._numpy = self._numpy and not isinstance(X, Tensor)
        rows = rows.unsqueeze(-1) if rows.ndim == 1 else rows
        if rows.ndim != 2:
            raise DataError(f"X must be rows (n, d), got shape {tuple(rows.shape)}")
        if len(rows) == 0:
            return self
        rows = rows.detach().double()
        if sample_weight is None:
            n = float(len(rows))
            mean = rows.mean(0)
            off = rows - mean
            scatter = off.T @ off
        else:
            w = as_tensor(sample_weight, "sample_weight", rows).double()
            if w.shape != (len(rows),) or bool((w < 0).any()):
                raise DataError("sample_weight must be one number per row, at least 0")
            n = float(w.sum())
            if n == 0:
                return self
            mean = (w @ rows) / n
            off = rows - mean
            scatter = (off * w.unsqueeze(-1)).T @ off
        return self._absorb(n, mean, scatter)

    def merge(self, other: StreamingCov) -> StreamingCov:
        """Add the rows that another one saw; returns itself."""
        if other._mean is None or other._scatter is None:
            return self
        self._numpy = self._numpy and other._numpy
        return self._absorb(other.count, other._mean, other._scatter)

    def _absorb(self, n: float, mean: Tensor, scatter: Tensor) -> StreamingCov:
        if self._mean is None or self._scatter is None:
            self.count, self._mean, self._scatter = n, mean.clone(), scatter.clone()
            return self
        if len(mean) != len(self._mean):
            raise DataError(f"rows have {len(mean)} columns, earlier ones had {len(self._mean)}")
        total = self.count + n
        gap = mean.to(self._mean.device) - self._mean
        between = torch.outer(gap, gap) * (self.count * n / total)
        self._scatter = self._scatter + scatter.to(self._scatter.device) + between
        self._mean = self._mean + gap * (n / total)
        self.count = total
        return self

    @property
    def mean(self) -> Any:
        """``(d,)``."""
        return self._out(self._known()[0])

    @property
    def scatter(self) -> Any:
        """``(d, d)``."""
        return self._out(self._known()[1])

    def covariance(self, ddof: int = 1) -> Any:
        """``(d, d)``, divided by count − ddof."""
        _, scatter = self._known()
        if self.count <= ddof:
            raise DataError(f"a covariance with ddof={ddof} needs more than {ddof} rows")
        return self._out(scatter / (self.count - ddof))

    def correlation(self) -> Any:
        """``(d, d)``; NaN, with a warning, for columns that do not vary."""
        _, scatter = self._known()
        spread = scatter.diagonal().sqrt()
        if bool((spread == 0).any()):
            warnings.warn(
                "a column does not vary; its correlations are NaN", Unreliable, stacklevel=2
            )
        found = scatter / torch.outer(spread, spread)
        return self._out(torch.where(torch.isfinite(found), found.clamp(-1, 1), math.nan))

    def _known(self) -> tuple[Tensor, Tensor]:
        if self._mean is None or self._scatter is None:
            raise DataError("no rows have been seen yet; call update(X)")
        return self._mean, self._scatter

    def _out(self, value: Tensor) -> Any:
        return to_numpy(value) if self._numpy else value

    def __repr__(self) -> str:
        d = 0 if self._mean is None else len(self._mean)
        return f"StreamingCov: {self.count:g} rows, {d} columns"


def corr_interval(x: Any, y: Any, level: float = 0.95) -> TestResult:
    r"""Pearson's correlation with Fisher's interval,
    :math:`\tanh(\operatorname{artanh} r \pm z/\sqrt{n - 3})`, and the t test that it is zero.

    A correlation of 0 does not mean independence: :math:`Y = X^2` has r = 0. Where a column does not vary, r
    is NaN, with a warning.

    Examples
    --------
    >>> before = [150, 145, 160, 155, 148, 152, 158, 150, 147]
    >>> after = [138, 132, 140, 142, 136, 142, 147, 135, 140]
    >>> found = corr_interval(before, after)
    >>> round(found.estimate, 7), round(found.pvalue, 5)
    (0.7259297, 0.02681)
    """
    checked_level(level)
    a, b = (as_tensor(v, name).detach().cpu().double().numpy() for v, name in ((x, "x"), (y, "y")))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 4:
        raise DataError(
            f"x and y must be lists of the same length, at least four, got {a.shape} and {b.shape}"
        )
    n = len(a)
    null = "the correlation is zero"
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        warnings.warn("a column does not vary; its correlation is NaN", Unreliable, stacklevel=2)
        return TestResult(math.nan, math.nan, null, "correlation", n - 2.0, estimate=math.nan,
                          interval=(math.nan, math.nan), level=level, n=n)  # fmt: skip
    found = scipy.stats.pearsonr(a, b)
    r = float(found.statistic)
    t = r * math.sqrt((n - 2) / max(1 - r * r, 1e-300))
    reach = z_of(level) / math.sqrt(n - 3)
    middle = math.atanh(min(max(r, -1 + 1e-16), 1 - 1e-16))
    ends = math.tanh(middle - reach), math.tanh(middle + reach)
    return TestResult(t, float(found.pvalue), null, "correlation", n - 2.0, estimate=r, interval=ends,
                      level=level, effect_size=r, n=n)  # fmt: skip
