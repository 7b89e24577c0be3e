r"""Many models on one table: who may be first?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.resample import Cells, merge

Floats = NDArray[np.float64]
_BLOCK = 2**23
_MOST = 2**28


@dataclass(frozen=True)
class Ranking(Displayed):
    """Models on the same rows, all statements at once at one level.

    Attributes
    ----------
    names : tuple of str
        By mean loss, the best first.
    loss : (k,)
        Mean losses in that order.
    to_best : list of Interval
        Mean loss minus that of the best, simultaneous over all pairs.
    ranks : list of (int, int)
        First and last rank that a model may have.
    tied : tuple of str
        Those that cannot be told apart from the best, the best included.
    critical : float
        Standard errors that a difference must exceed.
    """

    names: tuple[str, ...]
    loss: Floats
    to_best: list[Interval]
    ranks: list[tuple[int, int]]
    tied: tuple[str, ...]
    critical: float
    separated: NDArray[np.bool_] = field(repr=False)

    def __str__(self) -> str:
        return "\n".join(
            f"{name}: {loss:.4g}, {gap} from the best, rank {low} to {high}"
            for name, loss, gap, (low, high) in zip(
                self.names, self.loss, self.to_best, self.ranks, strict=True
            )
        )


def rank_models(
    losses: Any,
    *,
    level: float = 0.95,
    n_resamples: int = 4000,
    sample_weight: Any = None,
    random_state: Key | RandomState = 0,
) -> Ranking:
    r"""Rank models on one table with simultaneous intervals (max-T bootstrap).

    Rows are drawn jointly for all models. With mean differences :math:`d_{ij}`, their standard
    errors :math:`s_{ij}` and the quantile c of :math:`\max_{ij} |d^*_{ij} - d_{ij}|/s_{ij}` over
    resamples, all :math:`d_{ij} \pm c\,s_{ij}` hold at once. The first rank of a model is one plus
    the models that are better beyond doubt, its last rank k minus those that are worse.

    Parameters
    ----------
    losses : for each model its loss by row: a dict, or an array ``(n, k)``

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=300)
    >>> found = rank_models({"a": base, "b": base + 0.01 * rng.normal(size=300), "c": base + 1})
    >>> found.tied, found.ranks
    (('b', 'a'), [(1, 2), (1, 2), (3, 3)])
    """
    checked_level(level)
    names, table = loss_table(losses)
    weight = np.ones(len(table)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    cells, w, _ = merge(table, weight)
    total = float(w.sum())
    mean = w @ cells / total
    centred = cells - mean
    cov = (centred * w[:, None]).T @ centred / (total - 1) / total  # of the means  # (k, k)
    draws = Cells(cells, w).draws(n_resamples, Key.of(random_state).fold("max-t").numpy())
    return rank_draws(names, mean, draws, cov, level, total)


def rank_draws(
    names: tuple[str, ...], loss: Floats, draws: Floats, cov: Floats, level: float, n: float
) -> Ranking:
    """The ranking that losses ``(k,)``, their resampled values ``(B, k)`` and their covariance give.

    Parameters
    ----------
    n : rows behind the losses; few of them widen the intervals as in Student's distribution
    """
    k = len(names)
    first, second = np.triu_indices(k, 1)
    variance = cov[first, first] + cov[second, second] - 2 * cov[first, second]
    scale = float(np.diag(cov).max(initial=0.0))
    error = np.sqrt(np.where(variance > 1e-14 * scale, variance, 0.0))
    live = error > 0
    critical = _critical(draws - loss, first[live], second[live], error[live], level, n)
    gap = np.zeros((k, k))
    half = np.zeros((k, k))
    gap[first, second] = loss[first] - loss[second]
    half[first, second] = critical * error
    gap, half = gap - gap.T, half + half.T
    worse = gap > half  # row i is worse than column j beyond doubt
    order = np.lexsort((np.arange(k), loss))
    best = int(order[0])
    ranks = [(1 + int(worse[i].sum()), k - int(worse[:, i].sum())) for i in order]
    to_best = [
        Interval(
            float(gap[i, best]), float(gap[i, best] - half[i, best]),
            float(gap[i, best] + half[i, best]), level, "max-T bootstrap",
        )
        for i in order
    ]  # fmt: skip
    tied = tuple(names[i] for i in order if not worse[i, best])
    ordered = tuple(names[i] for i in order)
    return Ranking(ordered, loss[order], to_best, ranks, tied, critical, worse[order][:, order])


def _critical(
    draws: Floats, first: NDArray[np.intp], second: NDArray[np.intp], error: Floats, level: float,
    total: float,
) -> float:  # fmt: skip
    if not len(error):
        return 0.0
    enough = max(400, _MOST // len(error))  # resamples worth their time with very many pairs
    draws = draws[:enough]
    largest = np.empty(len(draws))
    step = max(1, _BLOCK // len(error))
    for start in range(0, len(draws), step):
        block = draws[start : start + step]
        largest[start : start + step] = (np.abs(block[:, first] - block[:, second]) / error).max(1)
    found = float(np.quantile(largest, level))
    # resampled means are normal where Student's distribution has heavier tails for few rows
    tail = scipy.stats.norm.sf(found)
    return float(max(found * math.sqrt(total / (total - 1)), scipy.stats.t.isf(tail, total - 1)))


def loss_table(given: Any) -> tuple[tuple[str, ...], Floats]:
    if isinstance(given, Mapping):
        if not given:
            raise DataError("there are no models to compare")
        if len({len(v) for v in given.values()}) > 1:
            raise DataError("all models need one number for each of the same rows")
        names = tuple(str(n) for n in given)
        table = np.stack([np.asarray(v, np.float64) for v in given.values()], 1)
    else:
        table = np.asarray(given, np.float64)
        names = tuple(str(i) for i in range(table.shape[-1]))
    if table.ndim != 2 or len(table) < 2 or not np.isfinite(table).all():
        raise DataError(f"a finite number for each row and model is needed, got {table.shape}")
    return names, table
