r"""Precision and recall of a generator: are its rows real, and are all real rows among them?

With the ball :math:`B_k(r)` of a row r up to its k-th nearest neighbour in its own set,

.. math:: \text{precision} = \tfrac1m\sum_j 1[\exists i: f_j \in B_k(r_i)], \qquad
    \text{recall} = \tfrac1n\sum_i 1[\exists j: r_i \in B_k(f_j)],
.. math:: \text{density} = \tfrac1{km}\sum_j\sum_i 1[f_j \in B_k(r_i)], \qquad
    \text{coverage} = \tfrac1n\sum_i 1[\exists j: f_j \in B_k(r_i)]

(Kynkäänniemi et al. 2019; Naeem et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.generators.frechet import Features, featured
from groundstate.math.neighbors.graph import nearest_others
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.means import mean_interval
from groundstate.math.stats.proportions import proportion_interval

CELLS = 2**23  # distances held at a time
CACHED = 2**17  # of them at once on a CPU, which stay in its cache
ROUNDING = 1e-10  # of squared distances from products, relative to the largest


@dataclass(frozen=True)
class PrecisionRecall(Displayed):
    """How far generated rows are real, and real ones covered.

    Attributes
    ----------
    precision, recall, coverage : share of rows, in [0, 1]
    density : mean number of real balls around a generated row, divided by k; 1 for equal sets
    k : neighbours
    intervals : the four with the range that holds them, of the rows drawn
    """

    precision: float
    recall: float
    density: float
    coverage: float
    k: int
    intervals: dict[str, Interval]

    def _facts(self) -> dict[str, object]:
        return {
            name: getattr(self, name) for name in ("precision", "recall", "density", "coverage")
        }


def precision_recall(
    real: Any, fake: Any, k: int = 5, *, features: Features = None, level: float = 0.95
) -> PrecisionRecall:
    """Precision, recall, density and coverage by balls of nearest neighbours, borders included.

    Parameters
    ----------
    real, fake : rows ``(n, ...)`` and ``(m, ...)``
    k : neighbours that make a ball
    features : see `frechet_distance`
    level : of the intervals

    Examples
    --------
    >>> found = precision_recall([[0.0], [1.0], [2.0], [3.0]], [[0.5], [2.2], [10.0], [10.5]], k=1)
    >>> found.precision, found.recall, found.density, found.coverage
    (0.5, 1.0, 1.0, 1.0)
    """
    a, b = (torch.cat(list(parts)).double() for parts in featured(features, real, fake))
    if a.shape[1] != b.shape[1]:
        raise ShapeError(f"real rows have {a.shape[1]} features, generated ones {b.shape[1]}")
    if not 1 <= k < min(len(a), len(b)):
        raise DataError(
            f"balls of k={k} neighbours need more than {k} rows of each set, got {len(a)} and {len(b)}"
        )
    inside_real, around_fake, inside_fake, covered = _balls(a, b, k)
    n, m = len(a), len(b)
    shares = {
        "precision": proportion_interval(int(inside_real.sum()), m, level),
        "recall": proportion_interval(int(inside_fake.sum()), n, level),
        "density": mean_interval((around_fake.double() / k).cpu().numpy(), level),
        "coverage": proportion_interval(int(covered.sum()), n, level),
    }
    values = {name: found.estimate for name, found in shares.items()}
    return PrecisionRecall(**values, k=k, intervals=shares)


def _balls(a: Tensor, b: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of generated rows: in a real ball, in how many; of real ones: in a generated ball, ball hit."""
    centre = a.mean(0)
    a, b = a - centre, b - centre
    own = [nearest_others(rows, k)[0][:, -1].square() for rows in (a, b)]
    squares = [rows.square().sum(1) for rows in (a, b)]
    slack = ROUNDING * float(torch.cat(squares).max())
    radius_a, radius_b = own[0] + slack, own[1] + slack
    around = torch.zeros(len(b), dtype=torch.int64, device=a.device)
    inside_fake, covered = (torch.zeros(len(a), dtype=torch.int64, device=a.device) for _ in "rc")
    compiled = a.device.type == "cpu"
    step = max(1, (CACHED if compiled else CELLS) // len(b))
    for at in range(0, len(a), step):
        cut = slice(at, at + step)
        gap = torch.addmm(squares[1].expand(len(a[cut]), -1), a[cut], b.mT, alpha=-2)
        gap += squares[0][cut, None]  # squared distances (s, m)
        found = (gap, radius_a[cut], radius_b, around, covered[cut], inside_fake[cut])
        if compiled:
            from groundstate.evaluate.generators.coverage_numba import count

            count(*(each.numpy() for each in found))
        else:
            _count(*found)
    return around > 0, around, inside_fake > 0, covered > 0


def _count(
    gap: Tensor, rows: Tensor, columns: Tensor, around: Tensor, covered: Tensor, inside: Tensor
) -> None:
    """What `coverage_numba.count` does in one pass."""
    hits = gap <= rows[:, None]
    around += hits.sum(0)
    covered += hits.sum(1)
    inside += (gap <= columns).sum(1)


def inception_score(probs: Any, splits: int = 10) -> tuple[float, float]:
    r""":math:`\exp E\,\mathrm{KL}(p(y \mid x)\,\|\,p(y))`: rows of one clear class each, of all classes.

    Parameters
    ----------
    probs : class probabilities of generated rows, ``(n, K)``
    splits : parts over which mean and spread are taken; fewer where there are few rows

    Returns
    -------
    mean and standard deviation over the splits

    Examples
    --------
    >>> round(inception_score([[0.9, 0.1], [0.2, 0.8]], splits=1)[0], 6)
    1.317052
    """
    p: NDArray[np.float64] = np.asarray(
        probs.detach().cpu() if isinstance(probs, Tensor) else probs, np.float64
    )
    if p.ndim != 2 or (p < 0).any() or not np.allclose(p.sum(1), 1, atol=1e-4):
        raise DataError("probs must be class probabilities (n, K) whose rows sum to 1")
    if not 1 <= splits <= len(p):
        raise DataError(f"splits must be between 1 and the {len(p)} rows, got {splits}")
    scores = []
    for part in np.array_split(p, splits):
        mean = part.mean(0)
        terms = np.where(
            part > 0, part * np.log(np.where(part > 0, part, 1.0) / np.maximum(mean, 1e-300)), 0
        )
        scores.append(float(np.exp(terms.sum(1).mean())))
    return float(np.mean(scores)), float(np.std(scores))


@dataclass(frozen=True)
class ModeCoverage(Displayed):
    """Which modes of a known mixture a generator found.

    Attributes
    ----------
    found : modes with rows near them
    modes : all of them
    near : share of the rows that are near a mode
    counts : (modes,) rows near each
    """

    found: int
    modes: int
    near: float
    counts: NDArray[np.int64]


def mode_coverage(samples: Any, centres: Any, radius: float, least: int = 1) -> ModeCoverage:
    """How many modes of a mixture have rows within a radius, and how many rows are near one.

    >>> mode_coverage([[0.0], [0.1], [5.0]], [[0.0], [2.0]], 0.5)
    ModeCoverage: found 1, modes 2, near 0.6667, counts (2,)
    """
    x, c = (np.asarray(v, np.float64) for v in (samples, centres))
    gap = np.linalg.norm(x[:, None] - c[None], axis=2)
    nearest = gap.argmin(1)
    close = gap[np.arange(len(x)), nearest] <= radius
    counts = np.bincount(nearest[close], minlength=len(c))
    return ModeCoverage(int((counts >= least).sum()), len(c), float(close.mean()), counts)
