r"""Many models on many tables: ranks, critical differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.evaluate.compare.many_models import loss_table
from groundstate.math.stats.interval import checked_level
from groundstate.math.stats.multiple import adjust_pvalues

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Friedman(Displayed):
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
        text = ", ".join(f"{self.names[i]} {self.mean_ranks[i]:.2f}" for i in order)
        return (
            f"mean ranks over {len(self.ranks)} tables: {text}; Friedman p {self.p:.3g}, "
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
    known, table = loss_table(scores)
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
