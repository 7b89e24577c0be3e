"""Models without labels: likelihood of new rows, look-alikes, memorisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.math.stats.delong import auc_interval
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.means import mean_interval
from groundstate.math.stats.result import TestResult
from groundstate.math.stats.twosample import memorisation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DensityAssessment(Displayed):
    """How well a density or generator knows its distribution.

    Attributes
    ----------
    log_likelihood, bits_per_dim : Interval or None
        Of held-out rows; None for a generator without a density.
    overfit : Interval or None
        Training minus held-out mean log-likelihood.
    lookalike_auc : Interval or None
        How well a classifier tells generated from held-out rows; ½ is perfect.
    memorisation : TestResult or None
        Whether generated rows are closer to the training rows than new ones are.
    """

    log_likelihood: Interval | None
    bits_per_dim: Interval | None
    overfit: Interval | None
    lookalike_auc: Interval | None
    memorisation: TestResult | None

    @property
    def memorises(self) -> bool:
        """Generated rows are clearly and much closer to the training rows than new ones."""
        found = self.memorisation
        return found is not None and found.reject(0.001) and found.statistic < 0.5

    def __str__(self) -> str:
        parts = []
        if self.log_likelihood is not None:
            parts.append(f"log-likelihood {self.log_likelihood}, bits/dim {self.bits_per_dim}")
            parts.append(f"training minus held-out {self.overfit}")
        if self.lookalike_auc is not None:
            parts.append(f"distinguished from real rows with AUC {self.lookalike_auc}")
        if self.memorises:
            parts.append("it repeats training rows")
        return "; ".join(parts)


def assess_density(
    model: Any,
    train: Any,
    heldout: Any,
    generated: Any = None,
    *,
    level: float = 0.95,
    random_state: Key | RandomState = 0,
) -> DensityAssessment:
    """Judge a fitted density or generator on rows it has not seen.

    Parameters
    ----------
    model : with ``score_samples`` (log-likelihood of rows), ``sample(n)``, or both
    train, heldout : rows ``(·, d)``
    generated : rows to judge in place of ``model.sample``

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> rows = np.random.default_rng(0).normal(size=(600, 2))
    >>> model = GaussianMixture(1, random_state=0).fit(rows[:300])
    >>> found = assess_density(model, rows[:300], rows[300:])
    >>> 0.5 in found.lookalike_auc, found.memorises
    (True, False)
    """
    a, b = (np.asarray(v, np.float64) for v in (train, heldout))
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    key = Key.of(random_state)
    likelihood = bits = overfit = None
    if hasattr(model, "score_samples"):
        new, old = (np.asarray(model.score_samples(v), np.float64) for v in (b, a))
        likelihood = mean_interval(new, level)
        scale = -1 / (a.shape[1] * math.log(2))
        bits = Interval(likelihood.estimate * scale, likelihood.high * scale,
                        likelihood.low * scale, level, likelihood.method)  # fmt: skip
        gap = float(old.mean() - new.mean())
        error = math.sqrt(old.var(ddof=1) / len(old) + new.var(ddof=1) / len(new))
        half = (likelihood.high - likelihood.estimate) / max(
            math.sqrt(new.var(ddof=1) / len(new)), 1e-300
        ) * error  # fmt: skip
        overfit = Interval(gap, gap - half, gap + half, level, "student")
    if generated is None and hasattr(model, "sample"):
        drawn = model.sample(len(b))
        generated = drawn[0] if isinstance(drawn, tuple) else drawn
    if generated is None and likelihood is None:
        raise DataError("the model has neither score_samples nor sample; pass generated rows")
    auc = repeats = None
    if generated is not None:
        g = np.asarray(generated, np.float64)
        g = g.reshape(len(g), -1)
        auc = lookalike_auc(g, b, level, key)
        repeats = memorisation(g, a, b)
    return DensityAssessment(likelihood, bits, overfit, auc, repeats)


def lookalike_auc(generated: Floats, real: Floats, level: float, key: Key) -> Interval:
    """How well a classifier, taught on one half, tells generated from real rows of the other."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    n = min(len(generated), len(real))
    if n < 20:
        raise DataError(f"the look-alike test needs 20 rows of each kind, got {n}")
    rows = np.concatenate([generated[:n], real[:n]])
    side = np.repeat([0, 1], n)
    order = key.fold("halves").numpy().permutation(2 * n)
    teach, judge = order[:n], order[n:]
    seed = int(key.fold("classifier").words(1)[0] % (2**31 - 1))
    if n < 200:
        model: Any = LogisticRegression()
    else:
        model = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=8, random_state=seed)
    p = model.fit(rows[teach], side[teach]).predict_proba(rows[judge])[:, 1]
    return auc_interval(side[judge], p, level)
