r"""Where most of a distribution lies: equal-tailed intervals and highest-density regions.

.. math:: \mathrm{HDR}_{1-\alpha} = \{x : p(x) \ge t\}, \quad P(p(X) \ge t) = 1-\alpha ,

the smallest set of that probability; for a distribution with two peaks it has two pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
import scipy.optimize
from numpy.typing import NDArray

from groundstate.errors import DataError, ShapeError
from groundstate.math.stats.interval import Interval, checked_level

Floats = NDArray[np.float64]
_GRID = 2**12


@dataclass(frozen=True)
class Region:
    """Disjoint intervals that together hold a share ``level`` of a distribution.

    Attributes
    ----------
    pieces : tuple of (low, high), ascending
    level : float
    """

    pieces: tuple[tuple[float, float], ...]
    level: float

    @property
    def total(self) -> float:
        """Length of all pieces together."""
        return float(sum(high - low for low, high in self.pieces))

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and any(a <= value <= b for a, b in self.pieces)

    def __str__(self) -> str:
        return " or ".join(f"{low:.4g} to {high:.4g}" for low, high in self.pieces)


def eti(x: Any, level: float = 0.95) -> Interval:
    r"""Equal-tailed interval: the quantiles :math:`(1\mp\text{level})/2`, the median as estimate.

    Parameters
    ----------
    x : ``(n,)`` draws, or a distribution with ``ppf`` (scipy) or ``icdf`` (torch)

    Examples
    --------
    >>> import scipy.stats
    >>> print(eti(scipy.stats.norm()))
    0 (-1.96 to 1.96)
    """
    checked_level(level)
    at = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    if hasattr(x, "ppf"):
        low, mid, high = np.asarray(x.ppf(at), np.float64)
    elif hasattr(x, "icdf"):
        import torch

        low, mid, high = x.icdf(torch.as_tensor(at)).numpy()
    else:
        low, mid, high = np.quantile(_draws(x), at)
    return Interval(float(mid), float(low), float(high), level, "equal-tailed")


def hdr(
    x: Any,
    level: float = 0.95,
    *,
    log_density: Any = None,
    support: tuple[float, float] | None = None,
) -> Region:
    r"""Highest-density region, as a list of intervals.

    Parameters
    ----------
    x : ``(n,)`` draws; or a density: a function with ``support``, or a distribution with ``pdf`` and ``ppf``
    level : share inside
    log_density : ``(n,)`` log densities of the draws, or a function; without it a kernel estimate
        with the bandwidth of Botev, Grotowski and Kroese, which two peaks do not blur

    Examples
    --------
    >>> def two(x):
    ...     return np.exp(-((x + 3) ** 2) / 2) + np.exp(-((x - 3) ** 2) / 2)
    >>> print(hdr(two, 0.9, support=(-12, 12)))
    -4.645 to -1.355 or 1.355 to 4.645
    """
    checked_level(level)
    if hasattr(x, "pdf") and hasattr(x, "ppf"):
        low, high = (float(v) for v in x.ppf([1e-9, 1 - 1e-9]))
        return _of_density(x.pdf, (low, high) if support is None else support, level)
    if callable(x):
        if support is None:
            raise DataError("a density needs its support=(low, high) to look at")
        return _of_density(x, support, level)
    draws = np.sort(_draws(x))
    if draws[0] == draws[-1]:
        return Region(((float(draws[0]), float(draws[0])),), level)
    if log_density is None:
        grid, density = kde(draws)
        scores = np.interp(draws, grid, density)
        # a hair lower, so that rounding leaves no draw on the wrong side of its own height
        cut = float(np.quantile(scores, 1 - level)) * (1 - 1e-9)
        return _pieces(grid, density, cut, level, (float(draws[0]), float(draws[-1])))
    if callable(log_density):
        scores = np.asarray(log_density(draws), np.float64)
        cut = float(np.quantile(scores, 1 - level))
        reach = 0.1 * (draws[-1] - draws[0])
        grid = np.linspace(draws[0] - reach, draws[-1] + reach, _GRID)
        return _pieces(grid, np.asarray(log_density(grid), np.float64), cut, level)
    order = np.argsort(np.asarray(x, np.float64), kind="stable")
    scores = np.asarray(log_density, np.float64)
    if scores.shape != draws.shape:
        raise ShapeError(f"log_density has shape {scores.shape}; expected one per draw")
    scores = scores[order]
    return _pieces(draws, scores, float(np.quantile(scores, 1 - level)), level)


def kde(draws: Any, n: int = _GRID) -> tuple[Floats, Floats]:
    """Kernel density of draws on a grid, by one cosine transform.  # (n,), (n,)

    The bandwidth solves Botev's fixed point, which assumes no shape; Silverman's where it fails.
    """
    x = _draws(draws)
    margin = 0.25 * (x.max() - x.min())
    low, high = float(x.min() - margin), float(x.max() + margin)
    edges = np.linspace(low, high, n + 1)
    share = np.histogram(x, edges)[0] / len(x)
    a = scipy.fft.dct(share)
    t = _botev(a[1:], len(np.unique(x)))
    if t is None:
        spread = min(x.std(ddof=1), np.subtract(*np.quantile(x, [0.75, 0.25])) / 1.34) or x.std()
        t = float((0.9 * spread * len(x) ** -0.2 / (high - low)) ** 2)
    k = np.arange(n)
    smooth = scipy.fft.idct(a * np.exp(-0.5 * (k * np.pi) ** 2 * t))
    return (edges[1:] + edges[:-1]) / 2, np.maximum(smooth, 0) * n / (high - low)


def _botev(a: Floats, n: int) -> float | None:
    """Squared bandwidth in units of the range; None when the fixed point has no root."""
    k2 = np.arange(1, len(a) + 1, dtype=np.float64) ** 2
    a2 = (a / 2) ** 2

    def norm(s: int, t: float) -> float:
        return float(2 * np.pi ** (2 * s) * (k2**s * a2 * np.exp(-k2 * np.pi**2 * t)).sum())

    def gap(t: float) -> float:
        f = norm(7, t)
        for s in range(6, 1, -1):
            odd = float(np.prod(np.arange(1, 2 * s, 2))) / np.sqrt(2 * np.pi)
            f = norm(s, (2 * (1 + 0.5 ** (s + 0.5)) / 3 * odd / (n * f)) ** (2 / (3 + 2 * s)))
        return float(t - (2 * n * np.sqrt(np.pi) * f) ** -0.4)

    try:
        with np.errstate(all="ignore"):
            return float(scipy.optimize.brentq(gap, 1e-12, 0.1))
    except ValueError:
        return None


def _of_density(
    density: Callable[[Any], Any], support: tuple[float, float], level: float
) -> Region:
    grid = np.linspace(*support, 2**16 + 1)
    values = np.asarray(density(grid), np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise DataError("the density must be finite and not negative, and positive somewhere")
    steps = np.diff(grid) * (values[1:] + values[:-1]) / 2
    mass = np.r_[0.0, np.cumsum(steps)] / steps.sum()
    low, high = 0.0, float(values.max())
    for _ in range(60):  # the mass inside falls as the cut rises
        cut = (low + high) / 2
        ends = np.interp(np.array(_pieces(grid, values, cut, level).pieces).reshape(-1), grid, mass)
        inside = float((ends[1::2] - ends[::2]).sum())
        low, high = (cut, high) if inside > level else (low, cut)
    return _pieces(grid, values, low, level)


def _pieces(
    grid: Floats,
    height: Floats,
    cut: float,
    level: float,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Region:
    """Where the line through the points is at or above the cut, as far as rows reach."""
    above = height >= cut
    edge = np.flatnonzero(above[1:] != above[:-1])
    rise = height[edge + 1] - height[edge]
    with np.errstate(invalid="ignore"):
        share = np.clip(np.nan_to_num((cut - height[edge]) / rise), 0, 1)
    cross = grid[edge] + share * (grid[edge + 1] - grid[edge])
    ends = [*([grid[0]] if above[0] else []), *cross, *([grid[-1]] if above[-1] else [])]
    pairs = np.clip(np.reshape(ends, (-1, 2)), *within)
    return Region(tuple((float(a), float(b)) for a, b in pairs), level)


def _draws(x: Any) -> Floats:
    draws = np.asarray(x, np.float64).reshape(-1)
    if len(draws) < 2 or not np.isfinite(draws).all():
        raise DataError(f"draws must be at least two finite numbers, got {len(draws)}")
    return draws
