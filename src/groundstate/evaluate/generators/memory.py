r"""Does a generator repeat its training rows?

Distances :math:`d(g) = \min_t\|g - t\|` of generated rows to the training rows beside those of new real
rows: a rank-sum z far below 0 says that generated rows are closer than new ones can be. Ranks hardly move
where one row in ten is a copy, so that near copies are counted beside those among new rows as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.math.neighbors.graph import nearest_others
from groundstate.math.neighbors.pairwise import pairwise

Floats = NDArray[np.float64]
MORE = 0.03  # near copies beyond those of new rows, as a share of the rows, that are too many
SURE = 0.001  # p-value from which they are no accident


@dataclass(frozen=True)
class Memorisation(Displayed):
    """What distances to the training rows say.

    Attributes
    ----------
    z : rank-sum statistic of generated against new rows, standard normal for a generator as new as
        new rows; below -3 it repeats training rows
    pvalue : one-sided
    ratio : of median distances, generated to new
    copies : share of generated rows closer to a training row than 1 % of the training rows are to
        each other
    expected : the same share of new rows
    exact : share of generated rows that equal a training row
    copies_pvalue : of Fisher's exact test that generated rows hold no more near copies than new rows
    """

    z: float
    pvalue: float
    ratio: float
    copies: float
    expected: float
    exact: float
    copies_pvalue: float

    @property
    def copies_some(self) -> bool:
        """Clearly more near copies than among new rows."""
        return self.copies_pvalue < SURE and self.copies - self.expected > MORE

    @property
    def memorises(self) -> bool:
        """Clearly and much closer than new rows are, or with more near copies."""
        return (self.z < -3 and self.ratio < 0.5) or self.copies_some

    @property
    def nearness(self) -> str:
        """How far generated rows are from the training rows, in words."""
        if abs(self.z) <= 3:
            return "as far from the training rows as unseen real rows are"
        side = "closer to" if self.z < 0 else "farther from"
        return f"{side} the training rows than unseen real rows are"

    def __str__(self) -> str:
        return (
            f"generated rows are {self.nearness} (z {self.z:.2g}); {self.copies:.1%} are near copies, of "
            f"unseen real rows {self.expected:.1%}"
        )


def memorisation_check(
    generated: Any, train: Any, heldout: Any, repeats: float = 0.0
) -> Memorisation:
    """Compare how near generated and new rows come to the training rows.

    Parameters
    ----------
    generated, train, heldout : rows ``(n, ...)``; columns should have comparable scales
    repeats : share of new rows that equal a training row by themselves, where held-out rows were chosen
        so that none does; as many copies are counted among them

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(600, 2))
    >>> memorisation_check(rows[:100], rows[:200], rows[400:]).memorises
    True
    >>> memorisation_check(rows[200:400], rows[:200], rows[400:]).memorises
    False
    >>> some = np.concatenate([rows[:20], rows[220:400]])
    >>> memorisation_check(some, rows[:200], rows[400:]).memorises
    True
    """
    g, t, h = (_rows(v) for v in (generated, train, heldout))
    if not 0 <= repeats < 1:
        raise DataError(
            f"repeats is a share of the new rows, at least 0 and below 1, got {repeats}"
        )
    near, new = (_nearest(v, t) for v in (g, h))
    new = np.concatenate([new, np.zeros(round(len(new) * repeats / (1 - repeats)))])
    found = scipy.stats.mannwhitneyu(near, new, alternative="less")
    n, m = len(near), len(new)
    ranks = scipy.stats.rankdata(np.concatenate([near, new]))
    ties = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    total = n + m
    spread = n * m / 12 * (total + 1 - (ties**3 - ties).sum() / (total * (total - 1)))
    z = (float(found.statistic) - n * m / 2) / math.sqrt(spread) if spread > 0 else 0.0
    usual = float(np.median(new))
    ratio = float(np.median(near)) / usual if usual > 0 else 1.0
    apart = nearest_others(torch.from_numpy(t), 1)[0][:, 0].numpy()
    border = float(np.quantile(apart, 0.01))
    same, usual_same = (v < border if border > 0 else v <= 0 for v in (near, new))
    a, b = int(same.sum()), int(usual_same.sum())
    excess = scipy.stats.fisher_exact([[a, n - a], [b, m - b]], alternative="greater")
    return Memorisation(
        z,
        float(found.pvalue),
        ratio,
        a / n,
        b / m,
        float((near <= 1e-9 * max(usual, 1e-300)).mean()),
        float(excess.pvalue),
    )


def _rows(values: Any) -> Floats:
    rows = np.asarray(values, np.float64)
    rows = rows.reshape(len(rows), -1)
    if len(rows) < 2 or not np.isfinite(rows).all():
        raise DataError("the check needs at least two finite rows of each set")
    return np.ascontiguousarray(rows)


def _nearest(queries: Floats, rows: Floats) -> Floats:
    distance, _ = pairwise(torch.from_numpy(queries), torch.from_numpy(rows), reduce="topk", k=1)
    return np.asarray(distance[:, 0].numpy(), np.float64)
