r"""Two models on the same test rows: how far apart, how sure, and would it have been seen."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.math.stats.bootstrap import bootstrap
from groundstate.math.stats.compare import compare_models
from groundstate.math.stats.delong import auc_compare
from groundstate.math.stats.interval import z_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedComparison(Displayed):
    """Model A against model B on the same rows.

    Attributes
    ----------
    difference, low, high : float
        Mean loss of A minus that of B (area of A minus area of B for ``metric="auc"``).
    p : float
        Chance of a difference this large if the two were equally good, both directions.
    better : float
        Chance that A is the better one, from resampled rows (from DeLong's normal distribution for areas).
    per_1000 : float
        Difference in 1,000 rows: for 0-1 losses, errors that A makes more than B.
    power : float
        Chance that a test set of this size shows a true difference of this size.
    rows_for_power : float
        Rows at which that chance is 80 %; infinite for no difference.
    method : str
    n : int
    """

    difference: float
    low: float
    high: float
    p: float
    better: float
    per_1000: float
    power: float
    rows_for_power: float
    method: str
    n: int
    level: float = 0.95

    @property
    def verdict(self) -> str:
        """``"A"``, ``"B"`` or ``"cannot tell"``, at the level of the interval."""
        if self.p > 1 - self.level:
            return "cannot tell"
        return "A" if self.better > 0.5 else "B"

    def __str__(self) -> str:
        sure = {
            "A": "A is better",
            "B": "B is better",
            "cannot tell": "they cannot be told apart",
        }[self.verdict]
        return (
            f"{sure}: difference {self.difference:.4g} ({self.low:.4g} to {self.high:.4g}), "
            f"{self.per_1000:+.3g} per 1000 rows, {self.method} p {self.p:.3g}, "
            f"P(A better) {self.better:.2f}, power {self.power:.2f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        out = asdict(self)
        out["verdict"] = self.verdict
        if math.isinf(self.rows_for_power):
            out["rows_for_power"] = None
        return out


def compare(
    a: Any,
    b: Any,
    y: Any = None,
    *,
    metric: str = "loss",
    method: str = "auto",
    groups: Any = None,
    level: float = 0.95,
    n_resamples: int = 9999,
    random_state: Key | RandomState = 0,
) -> PairedComparison:
    r"""Compare two models by their losses on the same rows, or by the area under their ROC curves.

    McNemar's exact test for losses of 0 and 1, sign-flip permutation for few rows, paired t for
    many, all by :func:`groundstate.math.stats.compare_models`; DeLong's test for areas. The power is
    that of a two-sided z test, :math:`\Phi(|d|/s_{\bar d} - z_{1-\alpha/2}) +
    \Phi(-|d|/s_{\bar d} - z_{1-\alpha/2})`.

    Parameters
    ----------
    a, b : ``(n,)`` losses of the two, lower is better; with ``metric="auc"`` their scores
    y : ``(n,)`` two labels, for ``metric="auc"``
    method : ``"auto"``, ``"mcnemar"``, ``"permutation"``, ``"bootstrap"`` or ``"t"``
    groups : ``(n,)`` labels of dependent rows

    Examples
    --------
    >>> wrong_a, wrong_b = np.zeros(100), np.zeros(100)
    >>> wrong_a[:3], wrong_b[3:13] = 1, 1
    >>> found = compare(wrong_a, wrong_b)
    >>> round(found.p, 6), round(found.per_1000), found.verdict
    (0.092285, -70, 'cannot tell')
    """
    if metric not in ("loss", "auc"):
        raise ValueError(f"metric must be 'loss' or 'auc', got {metric!r}")
    if metric == "auc":
        if y is None:
            raise DataError("areas need the labels; pass y")
        test = auc_compare(a, b, y, level)
        n = len(np.asarray(y))
    else:
        test = compare_models(
            a, b, method, groups, level=level, n_resamples=n_resamples, random_state=random_state
        )
        n = len(np.asarray(a))
    assert test.estimate is not None and test.interval is not None
    gap, (low, high) = float(test.estimate), test.interval
    if metric == "auc":
        error = (high - low) / (2 * z_of(level))
        better = 0.5 if error == 0 else float(scipy.stats.norm.cdf(gap / error))
    else:
        d = np.asarray(a, np.float64) - np.asarray(b, np.float64)
        error = _error(d, groups)
        better = _better(d, groups, n_resamples, Key.of(random_state).fold("better"))
    z = z_of(level)
    ratio = abs(gap) / error if error > 0 else (0.0 if gap == 0 else math.inf)
    power = float(scipy.stats.norm.cdf(ratio - z) + scipy.stats.norm.cdf(-ratio - z))
    wanted = z + float(scipy.stats.norm.ppf(0.8))
    rows = math.inf if ratio == 0 else (math.ceil(n * (wanted / ratio) ** 2) if ratio < 1e9 else 2)
    return PairedComparison(
        gap, float(low), float(high), float(test.pvalue), better, 1000 * gap, power, float(rows),
        test.method, n, level,
    )  # fmt: skip


def _error(d: Floats, groups: Any) -> float:
    """Standard error of the mean; rows of one group count together."""
    if groups is None:
        return float(d.std(ddof=1)) / math.sqrt(len(d))
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(group.reshape(-1), d - d.mean())
    return math.sqrt(len(sums) / (len(sums) - 1) * float(np.square(sums).sum())) / len(d)


def _better(d: Floats, groups: Any, n: int, key: Key) -> float:
    """Share of resamples in which the mean difference favours A; ties count half."""
    if np.ptp(d) == 0:
        return 0.5 if d[0] == 0 else float(d[0] < 0)
    draws = bootstrap(
        "mean", d, n_resamples=n, groups=groups, method="percentile", random_state=key
    ).draws
    return float((draws < 0).mean() + (draws == 0).mean() / 2)
