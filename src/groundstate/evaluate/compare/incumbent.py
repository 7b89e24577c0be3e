"""Shall a new model replace the one in use, whose score is known?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.stats

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval, checked_level, z_of
from groundstate.math.stats.proportions import Method, proportion_interval

_MOST = 10**12  # rows beyond which nothing is settled


@dataclass(frozen=True)
class Versus(Displayed):
    """A score against a known incumbent.

    Attributes
    ----------
    verdict : ``"better"``, ``"worse"`` or ``"cannot tell"``
    score : Interval
    incumbent : float
    p, p_greater : float or None
        Exact binomial p (that of the z test for ``method="wald"``), both sides and above the
        incumbent alone; None when only an interval is known.
    n : float or None
    n_needed : float or None
        Test rows at which the same score would settle it; infinite for equal scores.
    """

    verdict: str
    score: Interval
    incumbent: float
    p: float | None
    p_greater: float | None
    n: float | None
    n_needed: float | None

    def __str__(self) -> str:
        words = {
            "better": "better than",
            "worse": "worse than",
            "cannot tell": "cannot be told apart from",
        }
        text = f"{self.score}: {words[self.verdict]} {self.incumbent:g}"
        if self.p is not None:
            text += f" (p {self.p:.3g}, one-sided {self.p_greater:.3g})"
        if self.verdict == "cannot tell" and self.n_needed is not None:
            text += f"; {self.n_needed:,.0f} test rows would settle it"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        out = asdict(self)
        if self.n_needed is not None and math.isinf(self.n_needed):
            out["n_needed"] = None
        return out


def versus(
    score: Any,
    incumbent: float,
    n: float | None = None,
    *,
    level: float = 0.95,
    method: Method = "wilson",
) -> Versus:
    r"""Replace the incumbent only when its score is outside the interval of the new one.

    Parameters
    ----------
    score : an accuracy (then pass ``n``), ``(hits, n)``, an array of hits and misses, or an
        :class:`Interval` of any score that is better when larger
    incumbent : known score :math:`l_0`
    n : test rows
    method : of the interval of a share

    Examples
    --------
    >>> found = versus((900, 1000), incumbent=0.88)
    >>> found.verdict, round(found.p_greater, 4), found.n_needed
    ('cannot tell', 0.0266, 1015.0)
    """
    checked_level(level)
    if isinstance(score, Interval):
        return _by_interval(score, incumbent, n)
    k, rows = _counts(score, n)
    if not 0 <= incumbent <= 1:
        raise DataError(f"incumbent is an accuracy between 0 and 1, got {incumbent}")
    found = proportion_interval(k, rows, level, method)
    if method == "wald":
        error = math.sqrt(found.estimate * (1 - found.estimate) / rows)
        gap = found.estimate - incumbent
        z = gap / error if error > 0 else math.copysign(math.inf, gap) if gap else 0.0
        p, above = 2 * scipy.stats.norm.sf(abs(z)), scipy.stats.norm.sf(z)
    else:
        hits, trials = round(k), round(rows)
        p = scipy.stats.binomtest(hits, trials, incumbent).pvalue
        above = scipy.stats.binomtest(hits, trials, incumbent, alternative="greater").pvalue
    needed = _needed(found.estimate, incumbent, level, method)
    return Versus(_side(found, incumbent), found, incumbent, float(p), float(above), rows, needed)


def _counts(score: Any, n: float | None) -> tuple[float, float]:
    values = np.asarray(score)
    if isinstance(score, tuple) and len(score) == 2:
        return float(score[0]), float(score[1])
    if values.ndim == 1:
        if not np.isin(values, (0, 1)).all():
            raise DataError("an array of hits holds 0 and 1 only; pass an Interval of other scores")
        return float(values.sum()), float(len(values))
    if values.ndim == 0 and n is not None:
        if not 0 <= float(values) <= 1:
            raise DataError(f"an accuracy is between 0 and 1, got {float(values)}")
        return float(round(float(values) * n)), float(n)
    raise DataError(
        f"pass an accuracy with n, (hits, n), hits row by row or an Interval: {score!r}"
    )


def _side(found: Interval, incumbent: float) -> str:
    if found.low > incumbent:
        return "better"
    return "worse" if found.high < incumbent else "cannot tell"


def _by_interval(found: Interval, incumbent: float, n: float | None) -> Versus:
    gap = found.estimate - incumbent
    half = found.estimate - found.low if gap > 0 else found.high - found.estimate
    needed = None
    if n is not None:
        needed = math.inf if gap == 0 else float(math.ceil(n * (half / gap) ** 2))
    return Versus(_side(found, incumbent), found, incumbent, None, None, n, needed)


def _needed(share: float, incumbent: float, level: float, method: Method) -> float:
    """Fewest rows at which this share leaves the incumbent outside its interval."""
    if share == incumbent:
        return math.inf

    def settled(n: float) -> bool:
        if method == "wald":
            half = z_of(level) * math.sqrt(share * (1 - share) / n)
            return abs(share - incumbent) > half
        return _side(proportion_interval(share * n, n, level, method), incumbent) != "cannot tell"

    high = 2
    while not settled(high):
        high *= 2
        if high > _MOST:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return float(high)
