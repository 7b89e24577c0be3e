r"""The area under the ROC curve with its variance, by midranks in :math:`O(n\log n)`.

With scores x of the m positives and y of the n negatives, and :math:`\psi(x, y)` 1, ½ or 0 as x
is above, equal to or below y,

.. math:: \hat A = \frac1{mn}\sum_{ij}\psi(x_i, y_j), \qquad
          \widehat{\mathrm{Var}} = \frac{S_{10}}m + \frac{S_{01}}n ,

where :math:`S_{10}` is the variance over positives of :math:`V_i = \frac1n\sum_j\psi(x_i, y_j)` and
:math:`S_{01}` that over negatives (DeLong, DeLong and Clarke-Pearson; midranks by Sun and Xu).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.errors import DataError, ShapeError
from groundstate.math.stats.interval import Interval, z_of
from groundstate.math.stats.proportions import proportion_interval
from groundstate.math.stats.result import TestResult

Floats = NDArray[np.float64]


def auc(y: Any, score: Any, ties: Literal["half", "strict"] = "half") -> float:
    """Chance that a positive row scores above a negative one.

    Parameters
    ----------
    y : ``(n,)``, two labels; the larger is positive
    score : ``(n,)``
    ties : equal scores count ½, or with ``"strict"`` nothing

    Examples
    --------
    >>> y, s = [0, 0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.35, 0.7]
    >>> round(auc(y, s), 6), round(auc(y, s, ties="strict"), 6)
    (0.833333, 0.777778)
    """
    if ties not in ("half", "strict"):
        raise ValueError(f"ties must be 'half' or 'strict', got {ties!r}")
    positive, negative = _sides(y, score)
    if ties == "half":  # the Mann-Whitney count of one ranking
        m, n = len(positive), len(negative)
        ranks = scipy.stats.rankdata(np.concatenate([positive, negative]))[:m]
        return (float(ranks.sum()) - m * (m + 1) / 2) / (m * n)
    below = np.searchsorted(np.sort(negative), positive, side="left")
    return float(below.mean() / len(negative))


def placements(positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
    """Share of negatives below each positive, and of positives above each negative.

    # (m,), (n,)
    """
    m, n = len(positive), len(negative)
    both = scipy.stats.rankdata(np.concatenate([positive, negative]))
    v10 = (both[:m] - scipy.stats.rankdata(positive)) / n
    v01 = 1 - (both[m:] - scipy.stats.rankdata(negative)) / m
    return v10, v01


def auc_variance(y: Any, score: Any) -> float:
    """DeLong's variance of the area.

    >>> y, s = [0, 0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.35, 0.7]
    >>> round(auc_variance(y, s) ** 0.5, 6)
    0.19245
    """
    v10, v01 = placements(*_sides(y, score))
    return _variance(v10) / len(v10) + _variance(v01) / len(v01)


def auc_interval(
    y: Any, score: Any, level: float = 0.95, scale: Literal["logit", "plain"] = "logit"
) -> Interval:
    r"""DeLong's interval of the area.

    On the logit scale, :math:`\mathrm{logit}\,\hat A \pm z\,\mathrm{sd}/(\hat A(1-\hat A))`, it
    stays inside (0, 1) and covers better near 1. A perfect ranking has no DeLong variance; there
    the interval is Wilson's for as many rows as the smaller class has.

    Examples
    --------
    >>> y, s = [0, 0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.35, 0.7]
    >>> print(auc_interval(y, s))
    0.8333 (0.2485 to 0.9869)
    """
    positive, negative = _sides(y, score)
    v10, v01 = placements(positive, negative)
    area = float(v10.mean())
    sd = math.sqrt(_variance(v10) / len(v10) + _variance(v01) / len(v01))
    z = z_of(level)
    if area in (0.0, 1.0):
        n = min(len(v10), len(v01))
        edge = proportion_interval(area * n, n, level)
        return Interval(area, edge.low, edge.high, level, "delong")
    if scale == "plain":
        return Interval(area, max(0.0, area - z * sd), min(1.0, area + z * sd), level, "delong")
    if scale != "logit":
        raise ValueError(f"scale must be 'logit' or 'plain', got {scale!r}")
    return _on_logits(area, sd, level)


def mean_auc_interval(y: Any, scores: Any, level: float = 0.95) -> Interval:
    r"""DeLong's interval of the mean area of several classes, each against the rest.

    The areas of the classes share their rows, so the variance is that of a mean over rows of
    :math:`\tfrac1K\sum_k \bigl([y_i = k](V_{ik} - \hat A_k)/\pi_k + [y_i \ne k](V_{ik} -
    \hat A_k)/(1 - \pi_k)\bigr)`, with the placements V of row i and the share :math:`\pi_k` of class
    k. Its limits are set on the logit scale.

    Parameters
    ----------
    y : ``(n,)``, class numbers
    scores : ``(n, K)``; of two classes the second is ranked

    Examples
    --------
    >>> y, s = np.array([0, 0, 0, 1, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8, 0.35, 0.7])
    >>> print(mean_auc_interval(y, np.stack([1 - s, s], 1)))
    0.8333 (0.3058 to 0.9827)
    """
    labels, table = np.asarray(y), np.asarray(scores, np.float64)
    each = [1] if table.shape[1] == 2 else range(table.shape[1])
    moved, areas = np.zeros(len(labels)), []
    for k in each:
        positive = labels == k
        share = float(positive.mean())
        if 0 < share < 1:
            v10, v01 = placements(table[positive, k], table[~positive, k])
            areas.append(float(v10.mean()))
            moved[positive] += (v10 - areas[-1]) / share
            moved[~positive] += (v01 - areas[-1]) / (1 - share)
    if not areas:
        raise DataError(f"a ROC curve needs two labels, got {np.unique(labels).tolist()}")
    area = float(np.mean(areas))
    sd = math.sqrt(_variance(moved) / len(moved)) / len(areas)
    return _on_logits(area, sd, level)


def _on_logits(area: float, sd: float, level: float) -> Interval:
    if not 0 < area < 1:
        return Interval(area, area, area, level, "delong")
    centre, half = math.log(area / (1 - area)), z_of(level) * sd / (area * (1 - area))
    low, high = (1 / (1 + math.exp(-t)) for t in (centre - half, centre + half))
    return Interval(area, low, high, level, "delong")


def auc_compare(p1: Any, p2: Any, y: Any, level: float = 0.95) -> TestResult:
    r"""DeLong's paired test of two areas on the same rows.

    :math:`z = (\hat A_1 - \hat A_2)/\sqrt{\mathrm{Var}(\hat A_1 - \hat A_2)}` with the variance of
    the differences of placements.

    Parameters
    ----------
    p1, p2 : ``(n,)`` scores of two models
    y : ``(n,)``, two labels

    Examples
    --------
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> found = auc_compare([1, 2, 3, 4, 5, 6], [1, 5, 2, 4, 3, 6], y)
    >>> round(found.estimate, 6), round(found.pvalue, 4)
    (0.222222, 0.3711)
    """
    a10, a01 = placements(*_sides(y, p1))
    b10, b01 = placements(*_sides(y, p2))
    d10, d01 = a10 - b10, a01 - b01
    gap = float(a10.mean() - b10.mean())
    sd = math.sqrt(_variance(d10) / len(d10) + _variance(d01) / len(d01))
    if sd > 0:
        z = gap / sd
    else:
        z = 0.0 if gap == 0 else math.copysign(math.inf, gap)
    half = z_of(level) * sd
    return TestResult(
        z, float(2 * scipy.stats.norm.sf(abs(z))), "equal areas", "DeLong", estimate=gap,
        interval=(gap - half, gap + half), level=level, n=(len(d10), len(d01)),
    )  # fmt: skip


def _variance(v: Floats) -> float:
    return float(v.var(ddof=1)) if len(v) > 1 else 0.0


def _sides(y: Any, score: Any) -> tuple[Floats, Floats]:
    labels, s = np.asarray(y), np.asarray(score, np.float64)
    if labels.shape != s.shape or s.ndim != 1:
        raise ShapeError(f"one score per label is needed, got {s.shape} and {labels.shape}")
    if not np.isfinite(s).all():
        raise DataError("scores must be finite to be ranked")
    if labels.dtype.kind in "biuf" and len(labels):  # two labels need no sort
        positive = labels == labels.max()
        if not positive.all() and (positive | (labels == labels.min())).all():
            return s[positive], s[~positive]
    known = np.unique(labels)
    if len(known) != 2:
        raise DataError(f"a ROC curve needs two labels, got {known.tolist()[:5]}")
    positive = labels == known[1]
    return s[positive], s[~positive]
