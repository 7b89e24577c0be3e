r"""How optimistic is the winner? The best of K scores on the same rows is too good.

With K equally good models and independent mistakes the winner errs
:math:`E\min_k \mathrm{Bin}(n, p)/n`, below p by about :math:`\sqrt{2\log K\;p(1-p)/n}` at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.integrate
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError

Floats = NDArray[np.float64]
_BLOCK = 2**22


def expected_winner(error: float, n: int, k: int) -> float:
    r"""Error that the best of k equally good models shows on n rows,
    :math:`\frac1n\sum_{j\ge1} P(\mathrm{Bin}(n, p)\ge j)^k`.

    Parameters
    ----------
    error : p, the true error of each
    n : test rows
    k : models, making mistakes independently

    Examples
    --------
    >>> [round(expected_winner(0.1, 1000, k), 4) for k in (2, 10, 100, 1000)]
    [0.0947, 0.0856, 0.077, 0.0706]
    """
    if not 0 <= error <= 1 or n < 1 or k < 1:
        raise DataError(f"an error in [0, 1], rows and models are needed, got {error}, {n}, {k}")
    if k == 1:
        return float(error)
    tail = scipy.stats.binom.sf(np.arange(n), n, error)  # P(X >= j), j = 1..n
    return float((tail**k).sum() / n)


def expected_maximum(k: int) -> float:
    r"""Mean of the largest of k standard normal numbers.

    >>> round(expected_maximum(2), 6)  # 1/√π
    0.56419
    """
    if k < 2:
        return 0.0
    normal = scipy.stats.norm
    return float(
        scipy.integrate.quad(lambda x: 1 - normal.cdf(x) ** k, 0, 12)[0]
        - scipy.integrate.quad(lambda x: normal.cdf(x) ** k, -12, 0)[0]
    )


def optimism_guide(error: float, n: float, k: int) -> float:
    r"""The closed guide :math:`\sqrt{2\log K\;p(1-p)/n}`.

    >>> round(optimism_guide(0.1, 1000, 10), 4)
    0.0204
    """
    return math.sqrt(2 * math.log(max(k, 1)) * error * (1 - error) / n)


@dataclass(frozen=True)
class SelectionOptimism(Displayed):
    """The winner of a selection, and what remains of it on rows that did not choose it.

    Attributes
    ----------
    winner : int
        Column of the candidate with the least mean loss.
    reported, corrected : float
        Its mean loss on the rows that chose it, and with the optimism added.
    optimism : float
        Mean over resamples of (loss of the winner out of the bag − in the bag).
    standard_error : float
        Of the optimism, from the number of resamples.
    guide : float
        :math:`s\\sqrt{2\\log K/n}`, s the spread of the winner's losses: the worst case of K equal
        and independent candidates.
    wins : (K,)
        Share of resamples that each candidate wins.
    """

    winner: int
    reported: float
    corrected: float
    optimism: float
    standard_error: float
    guide: float
    wins: Floats = field(repr=False)

    def __str__(self) -> str:
        return (
            f"candidate {self.winner} of {len(self.wins)} shows {self.reported:.4g}; chosen and "
            f"judged on different rows {self.corrected:.4g} (optimism {self.optimism:.2g})"
        )


def selection_optimism(
    scores: Any,
    *,
    greater_is_better: bool = False,
    n_resamples: int = 1000,
    random_state: Key | RandomState = 0,
) -> SelectionOptimism:
    """Bootstrap bias of the best of K candidates: choose on drawn rows, judge on the others.

    Parameters
    ----------
    scores : ``(n, K)`` per-row losses of K candidates on the same rows, or a study whose trials
        keep their ``risks`` by fold
    greater_is_better : the numbers are scores, not losses; the result then speaks of scores as
        losses with the sign changed back
    n_resamples : resamples of the rows

    Examples
    --------
    >>> wrong = np.random.default_rng(0).random((500, 50)) < 0.1  # fifty equal models
    >>> found = selection_optimism(wrong)
    >>> found.reported < 0.085, abs(found.corrected - 0.1) < 0.015
    (True, True)
    """
    table = _study(scores) if hasattr(scores, "trials") else np.asarray(scores, np.float64)
    if table.ndim != 2 or len(table) < 3 or not table.shape[1]:
        raise DataError(
            f"one loss per row and candidate is needed, at least three rows, got {table.shape}"
        )
    if not np.isfinite(table).all():
        raise DataError("losses must be finite to choose among them")
    table = -table if greater_is_better else table
    n, k = table.shape
    generator = Key.of(random_state).fold("selection").numpy()
    gaps, wins = [], np.zeros(k)
    step = max(1, _BLOCK // n)
    for start in range(0, n_resamples, step):
        drawn = generator.integers(n, size=(min(step, n_resamples - start), n))
        bag = np.stack([np.bincount(row, minlength=n) for row in drawn]).astype(np.float64)
        first = (bag @ table / n).argmin(1)  # (b,)
        inside = (bag * table.T[first]).sum(1) / n
        left = bag == 0
        size = left.sum(1)
        some = size > 0
        outside = (left * table.T[first]).sum(1)[some] / size[some]
        gaps.append(outside - inside[some])
        wins += np.bincount(first, minlength=k)
    gap = np.concatenate(gaps)
    means = table.mean(0)
    winner = int(means.argmin())
    reported, optimism = float(means[winner]), float(gap.mean())
    guide = float(table[:, winner].std()) * math.sqrt(2 * math.log(k) / n)
    sign = -1.0 if greater_is_better else 1.0
    error = float(gap.std(ddof=1)) / math.sqrt(len(gap)) if len(gap) > 1 else 0.0
    return SelectionOptimism(
        winner, sign * reported, sign * (reported + optimism), optimism, error, guide,
        wins / wins.sum(),
    )  # fmt: skip


def _study(study: Any) -> Floats:
    """Risks by fold of the finished trials.  # (folds, K)"""
    found = [np.ravel(t.user_attrs["risks"]) for t in study.trials if "risks" in t.user_attrs]
    if not found or len({len(row) for row in found}) > 1:
        raise DataError(
            "the trials of this study keep no 'risks' by fold; pass a matrix of losses instead"
        )
    table = np.stack(found, 1).astype(np.float64)
    return table[:, np.isfinite(table).all(0)]
