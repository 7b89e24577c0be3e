r"""The interval of a share of rows, and what it says about an incumbent."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.stats

from groundstate.errors import DataError, ShapeError, Unreliable
from groundstate.math.stats.interval import Interval, checked_level, z_of
from groundstate.math.stats.samples import sample

Method = Literal["wilson", "exact", "wald", "jeffreys"]
_METHODS = ("wilson", "exact", "wald", "jeffreys")


def proportion_interval(
    k: float, n: float, level: float = 0.95, method: Method = "wilson"
) -> Interval:
    r"""Interval of a share from k hits in n trials.

    ==========  ===========================================================================
    wilson      :math:`\frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}`
    exact       Clopper-Pearson, from the binomial tails
    jeffreys    quantiles of Beta(k + ½, n − k + ½)
    wald        :math:`\hat p \pm z\sqrt{\hat p(1-\hat p)/n}`; fails near 0 and 1, and warns there
    ==========  ===========================================================================

    Parameters
    ----------
    k, n : hits and trials; with weights n is the effective number (:func:`effective_n`)
    level : confidence
    method : ``"exact"`` is for whole numbers

    Examples
    --------
    >>> print(proportion_interval(900, 1000))
    0.9 (0.8798 to 0.9171)
    >>> print(proportion_interval(900, 1000, 0.99, "wald"))
    0.9 (0.8756 to 0.9244)
    """
    if not 0 <= k <= n or n <= 0:
        raise DataError(f"{method} needs 0 <= successes <= n and n > 0, got {k} of {n}")
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    p, z = k / n, z_of(level)
    if method == "wilson":
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low, high = centre - half, centre + half
    elif method == "wald":
        if k in (0, n) or n * p * (1 - p) < 5:
            warnings.warn(
                f"the Wald interval of {k:g} hits in {n:g} is too short; use method='wilson'",
                Unreliable,
                stacklevel=2,
            )
        half = z * math.sqrt(p * (1 - p) / n)
        return Interval(p, p - half, p + half, level, method).within((0.0, 1.0))
    else:
        a = (1 - level) / 2
        shift = 0.5 if method == "jeffreys" else 0.0
        lower, upper = (k + shift, n - k + 1 - shift), (k + 1 - shift, n - k + shift)
        low = 0.0 if k == 0 else float(scipy.stats.beta.ppf(a, *lower))
        high = 1.0 if k == n else float(scipy.stats.beta.ppf(1 - a, *upper))
    return Interval(p, 0.0 if k == 0 else low, 1.0 if k == n else high, level, method)


def effective_n(sample_weight: Any) -> float:
    r"""How many equal rows weigh as much as these: :math:`(\sum w)^2/\sum w^2`.

    >>> effective_n([1, 1, 2])
    2.6666666666666665
    """
    w = sample(sample_weight, "sample_weight")
    if (w < 0).any() or not w.sum() > 0:
        raise DataError("sample_weight must be at least 0, and positive somewhere")
    return float(w.sum() ** 2 / np.square(w).sum())


@dataclass(frozen=True)
class AccuracyReport:
    """Accuracy with its interval, and the decision against an incumbent.

    Attributes
    ----------
    accuracy : Interval
    incumbent : float or None
    decision : ``"better"``, ``"worse"``, ``"cannot tell"`` or None without an incumbent
    pvalue, pvalue_greater : exact binomial p, both sides and above the incumbent alone
    """

    accuracy: Interval
    incumbent: float | None = None
    decision: str | None = None
    pvalue: float | None = None
    pvalue_greater: float | None = None

    def __str__(self) -> str:
        text = f"accuracy {self.accuracy}"
        if self.incumbent is None:
            return text
        return (
            f"{text}: {self.decision} than {self.incumbent:g} (exact p {self.pvalue:.3g})".replace(
                "cannot tell than", "cannot be told apart from"
            )
        )


def accuracy_report(
    y: Any,
    yhat: Any,
    *,
    incumbent: float | None = None,
    level: float = 0.95,
    method: Method = "wilson",
) -> AccuracyReport:
    """Accuracy of predictions; replace an incumbent only when it is outside the interval.

    Parameters
    ----------
    y, yhat : ``(n,)`` labels
    incumbent : accuracy of the model in use

    Examples
    --------
    >>> y, yhat = [1] * 1000, [1] * 900 + [0] * 100
    >>> print(accuracy_report(y, yhat, incumbent=0.88))
    accuracy 0.9 (0.8798 to 0.9171): cannot be told apart from 0.88 (exact p 0.0516)
    """
    a, b = np.asarray(y), np.asarray(yhat)
    if a.shape != b.shape or a.ndim != 1:
        raise ShapeError(f"y and yhat need one label per row each, got {a.shape} and {b.shape}")
    checked_level(level)
    hits, n = int((a == b).sum()), len(a)
    found = proportion_interval(hits, n, level, method)
    if incumbent is None:
        return AccuracyReport(found)
    if not 0 <= incumbent <= 1:
        raise DataError(f"incumbent is an accuracy between 0 and 1, got {incumbent}")
    side = (
        "better" if found.low > incumbent else "worse" if found.high < incumbent else "cannot tell"
    )
    both = float(scipy.stats.binomtest(hits, n, incumbent).pvalue)
    above = float(scipy.stats.binomtest(hits, n, incumbent, alternative="greater").pvalue)
    return AccuracyReport(found, incumbent, side, both, above)
