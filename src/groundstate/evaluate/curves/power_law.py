r"""Diminishing returns: :math:`a + b\,n^{-c}` through a learning curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval

Floats = NDArray[np.float64]
_POWERS = np.linspace(0.1, 2.0, 39)


@dataclass(frozen=True)
class PowerLaw(Displayed):
    r"""Risk after n rows, :math:`r(n) = a + b\,n^{-c}` with :math:`a, b \ge 0`.

    Attributes
    ----------
    a, b, c : float
        The risk that no number of rows removes, and size and speed of the rest.
    level : float
        Of the intervals of :meth:`at`.
    draws : (B, 3)
        The curve fitted to resampled repeats, for the intervals.
    """

    a: float
    b: float
    c: float
    level: float
    draws: Floats = field(repr=False)

    def __call__(self, n: Any) -> Any:
        """The risk at n, one number or many."""
        found = self.a + self.b * np.asarray(n, np.float64) ** -self.c
        return float(found) if np.ndim(found) == 0 else found

    def at(self, n: float) -> Interval:
        """The risk at n rows with its interval."""
        a, b, c = self.draws.T
        low, high = np.quantile(a + b * n**-c, [(1 - self.level) / 2, (1 + self.level) / 2])
        middle = self(n)
        return Interval(
            middle, min(float(low), middle), max(float(high), middle), self.level, "power law"
        )

    def rows_for(self, risk: float) -> float:
        """How many rows bring the risk down to a value; infinite below the floor a."""
        if risk <= self.a or self.b == 0:
            return math.inf if risk < self(1e300) or self.b else 1.0
        return float((self.b / (risk - self.a)) ** (1 / self.c))

    def __str__(self) -> str:
        return f"{self.a:.3g} + {self.b:.3g} n^-{self.c:.2g}"


def power_law(
    n: Any,
    risks: Any,
    *,
    level: float = 0.95,
    widen: float = 1.0,
    n_resamples: int = 1000,
    random_state: Key | RandomState = 0,
) -> PowerLaw:
    r"""Fit :math:`a + b\,n^{-c}` to a learning curve by least squares, points weighed by precision.

    The power c is searched on a grid and refined; a and b follow in closed form, not negative. The
    interval comes from resampling the repeats and fitting again.

    Parameters
    ----------
    n : ``(S,)`` training rows, at least three sizes
    risks : ``(S, J)`` risk of J repeats at each size
    widen : factor on the spread of resampled means, above 1 when repeats share rows

    Examples
    --------
    >>> n = np.array([50, 100, 200, 400])
    >>> law = power_law(n, (1.0 + 20.0 / n)[:, None] + [[-1e-3, 1e-3]])
    >>> round(law.a, 2), round(law.c, 1), round(law.at(800).estimate, 3)
    (1.0, 1.0, 1.025)
    """
    sizes, table = np.asarray(n, np.float64), np.asarray(risks, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    known = np.isfinite(table).all(1) if table.ndim == 2 else np.zeros(0, bool)
    if table.ndim != 2 or len(table) != len(sizes) or known.sum() < 3:
        raise DataError(
            f"a power law needs risks (sizes, repeats) at three sizes or more, got {table.shape} "
            f"for {len(sizes)} sizes"
        )
    sizes, table = sizes[known], table[known]
    repeats = table.shape[1]
    mean = table.mean(1)
    weight = np.ones(len(sizes))
    if repeats > 1:
        spread = table.var(1, ddof=1)
        floor = max(float(np.median(spread)) * 0.1, 1e-24)
        weight = 1 / np.maximum(spread, floor)
    weight /= weight.sum()
    best = _fit(sizes, mean[None], weight)[0]
    if repeats > 1:
        generator = Key.of(random_state).fold("forecast").numpy()
        pick = generator.multinomial(repeats, np.full(repeats, 1 / repeats), n_resamples)
        means = pick @ table.T / repeats  # (B, S)
        # few repeats: their resampled mean varies too little, and its distribution has Student's tails
        tail = (1 + level) / 2
        student = scipy.stats.t.ppf(tail, repeats - 1) / scipy.stats.norm.ppf(tail)
        widen *= float(student) * math.sqrt(repeats / (repeats - 1))
        draws = _fit(sizes, mean + widen * (means - mean), weight)
    else:
        draws = best[None]
    a, b, c = best.tolist()
    return PowerLaw(a, b, c, level, draws)


def _fit(n: Floats, risks: Floats, weight: Floats) -> Floats:
    """a, b, c of each row of risks.  # (B, S) -> (B, 3)"""
    best, error = _on(_POWERS, n, risks, weight)
    step = _POWERS[1] - _POWERS[0]
    for c0 in np.unique(best[:, 2]):  # once more between the neighbours of the best power
        rows = best[:, 2] == c0
        fine = np.clip(np.linspace(c0 - step, c0 + step, 21), _POWERS[0], _POWERS[-1])
        found, now = _on(fine, n, risks[rows], weight)
        better = now < error[rows]
        at = np.flatnonzero(rows)[better]
        best[at], error[at] = found[better], now[better]
    return best


def _on(powers: Floats, n: Floats, risks: Floats, w: Floats) -> tuple[Floats, Floats]:
    best = np.zeros((len(risks), 3))
    error = np.full(len(risks), np.inf)
    mean = risks @ w
    for c in powers:
        u = n**-c
        middle = float(w @ u)
        scale = float(w @ (u - middle) ** 2)
        slope = ((risks - mean[:, None]) @ (w * (u - middle))) / scale
        b = np.maximum(slope, 0.0)
        a = mean - b * middle
        through = (risks @ (w * u)) / float(w @ (u * u))  # the best curve with a = 0
        b = np.where(a < 0, np.maximum(through, 0.0), b)
        a = np.maximum(a, 0.0)
        left = np.square(risks - a[:, None] - b[:, None] * u) @ w
        new = left < error
        best[new] = np.stack([a[new], b[new], np.full(int(new.sum()), c)], 1)
        error[new] = left[new]
    return best, error
