r"""Many models on one table, and many models on many tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.multiple import adjust_pvalues
from groundstate.math.stats.resample import Cells, merge

Floats = NDArray[np.float64]
_BLOCK = 2**23


@dataclass(frozen=True)
class Ranking:
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
    (('a', 'b'), [(1, 2), (1, 2), (3, 3)])
    """
    checked_level(level)
    names, table = _table(losses)
    n, k = table.shape
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    cells, w, _ = merge(table, weight)
    total = float(w.sum())
    mean = w @ cells / total
    centred = cells - mean
    cov = (centred * w[:, None]).T @ centred / (total - 1) / total  # of the means  # (k, k)
    first, second = np.triu_indices(k, 1)
    variance = cov[first, first] + cov[second, second] - 2 * cov[first, second]
    scale = float(np.diag(cov).max(initial=0.0))
    error = np.sqrt(np.where(variance > 1e-14 * scale, variance, 0.0))
    live = error > 0
    critical = _critical(Cells(cells, w), mean, first[live], second[live], error[live], level,
                         n_resamples, total, Key.of(random_state))  # fmt: skip
    gap = np.zeros((k, k))
    half = np.zeros((k, k))
    gap[first, second] = mean[first] - mean[second]
    half[first, second] = critical * error
    gap, half = gap - gap.T, half + half.T
    worse = gap > half  # row i is worse than column j beyond doubt
    order = np.lexsort((np.arange(k), mean))
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
    return Ranking(ordered, mean[order], to_best, ranks, tied, critical, worse[order][:, order])


def _critical(
    cells: Cells, mean: Floats, first: NDArray[np.intp], second: NDArray[np.intp], error: Floats,
    level: float, n: int, total: float, key: Key,
) -> float:  # fmt: skip
    if not len(error):
        return 0.0
    draws = cells.draws(n, key.fold("max-t").numpy()) - mean  # (B, k)
    largest = np.empty(n)
    step = max(1, _BLOCK // len(error))
    for start in range(0, n, step):
        block = draws[start : start + step]
        largest[start : start + step] = (np.abs(block[:, first] - block[:, second]) / error).max(1)
    found = float(np.quantile(largest, level))
    # resampled means are normal where Student's law has heavier tails for few rows
    tail = scipy.stats.norm.sf(found)
    return float(max(found * math.sqrt(total / (total - 1)), scipy.stats.t.isf(tail, total - 1)))


@dataclass(frozen=True)
class Friedman:
    r"""Models over many tables by their ranks.

    Attributes
    ----------
    names : (k,)
    ranks : (tables, k)
        1 is best; ties share the mean, so that each row sums to k(k + 1)/2.
    mean_ranks : (k,)
    statistic, p : Friedman's :math:`\chi^2`
    f_statistic, f_p : Iman and Davenport's F, less timid
    critical_difference : float
        Nemenyi: mean ranks further apart than :math:`q_\alpha\sqrt{k(k+1)/6N}` differ.
    holm : (k,)
        p of each model against the best, Holm-corrected.
    groups : tuple of tuple of str
        Largest sets of models that Nemenyi's test does not separate.
    """

    names: tuple[str, ...]
    ranks: Floats
    mean_ranks: Floats
    statistic: float
    p: float
    f_statistic: float
    f_p: float
    critical_difference: float
    holm: Floats
    groups: tuple[tuple[str, ...], ...]
    level: float = 0.95

    def __str__(self) -> str:
        order = np.argsort(self.mean_ranks, kind="stable")
        told = ", ".join(f"{self.names[i]} {self.mean_ranks[i]:.2f}" for i in order)
        return (
            f"mean ranks over {len(self.ranks)} tables: {told}; Friedman p {self.p:.3g}, "
            f"critical difference {self.critical_difference:.3g}"
        )

    def draw(self, ax: Any) -> None:
        """The critical-difference diagram on matplotlib axes."""
        k, order = len(self.names), np.argsort(self.mean_ranks, kind="stable")
        ax.plot([1, k], [0, 0], color="black", linewidth=1)
        for place, i in enumerate(order):
            left, depth = place < (k + 1) // 2, min(place, k - 1 - place)
            rank, y = float(self.mean_ranks[i]), -0.6 - 0.35 * depth - 0.12 * len(self.groups)
            end = 0.7 if left else k + 0.3
            ax.plot([rank, rank, end], [0, y, y], color="grey", linewidth=0.8)
            ax.text(end, y, self.names[i], ha="right" if left else "left", va="center", fontsize=8)
        at = {name: float(r) for name, r in zip(self.names, self.mean_ranks, strict=True)}
        for i, group in enumerate(self.groups):
            ends = [at[name] for name in group]
            ax.plot([min(ends) - 0.04, max(ends) + 0.04], [-0.15 - 0.12 * i] * 2,
                    color="#3b6fb6", linewidth=3)  # fmt: skip
        ax.plot([1, 1 + self.critical_difference], [0.35, 0.35], color="black", linewidth=2)
        ax.text(1, 0.45, f"critical difference {self.critical_difference:.2f}", fontsize=8)
        for r in range(1, k + 1):
            ax.text(r, 0.08, str(r), ha="center", fontsize=8)
        ax.set(xlim=(-0.2, k + 1.2), ylim=(None, 0.8))
        ax.axis("off")


def friedman(
    scores: Any,
    *,
    greater_is_better: bool = True,
    names: Any = None,
    level: float = 0.95,
) -> Friedman:
    """Compare k models over N tables by Friedman's test with Nemenyi's and Holm's follow-ups.

    Parameters
    ----------
    scores : for each model its score by table: a dict, or an array ``(N, k)``
    greater_is_better : direction of the scores

    Examples
    --------
    >>> scores = np.array([[0.9, 0.8, 0.7], [0.95, 0.9, 0.6], [0.8, 0.7, 0.72], [0.7, 0.6, 0.5]])
    >>> found = friedman(scores, names=["a", "b", "c"])
    >>> found.mean_ranks.tolist(), round(found.p, 4), found.groups
    ([1.0, 2.25, 2.75], 0.0388, (('a', 'b'), ('b', 'c')))
    """
    checked_level(level)
    known, table = _table(scores)
    known = known if names is None else tuple(str(n) for n in names)
    n, k = table.shape
    if k < 3 or n < 2 or len(known) != k:
        raise DataError(f"Friedman's test compares three models or more on two tables, got {n, k}")
    ranks = scipy.stats.rankdata(-table if greater_is_better else table, axis=1)
    mean = ranks.mean(0)
    if np.ptp(ranks, axis=1).max() == 0:
        chi, p = 0.0, 1.0
    else:
        chi, p = (float(v) for v in scipy.stats.friedmanchisquare(*ranks.T))
    room = n * (k - 1) - chi
    f = (n - 1) * chi / room if room > 0 else math.inf
    f_p = float(scipy.stats.f.sf(f, k - 1, (k - 1) * (n - 1)))
    unit = math.sqrt(k * (k + 1) / (6 * n))
    q = float(scipy.stats.studentized_range.ppf(level, k, np.inf)) / math.sqrt(2)
    best = int(mean.argmin())
    z = np.abs(mean - mean[best]) / unit
    others = np.arange(k) != best
    holm = np.ones(k)
    holm[others] = adjust_pvalues(2 * scipy.stats.norm.sf(z[others]), "holm")
    return Friedman(known, ranks, mean, chi, p, f, f_p, q * unit, holm,
                    _cliques(known, mean, q * unit), level)  # fmt: skip


def _cliques(names: tuple[str, ...], mean: Floats, reach: float) -> tuple[tuple[str, ...], ...]:
    order = np.argsort(mean, kind="stable")
    found: list[tuple[int, int]] = []
    for i in range(len(order)):
        last = int(np.flatnonzero(mean[order] - mean[order[i]] <= reach)[-1])
        if last > i and not any(a <= i and last <= b for a, b in found):
            found.append((i, last))
    return tuple(tuple(names[j] for j in order[a : b + 1]) for a, b in found)


def _table(given: Any) -> tuple[tuple[str, ...], Floats]:
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


__all__ = ["Friedman", "Ranking", "friedman", "rank_models"]
