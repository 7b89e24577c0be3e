r"""Held-out likelihood as a code length: bits per dimension, and how much training rows gain.

.. math:: \text{bits/dim} = -\frac{\log p(x)}{d\ln 2} + \log_2 s

with the factor s by which values were divided before they were learned from (256 for bytes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.means import mean_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOutLikelihood(Displayed):
    """Likelihood of rows that were not learned from.

    Attributes
    ----------
    log_likelihood : Interval, mean nats of a row
    bits_per_dim : Interval
    kind : "exact", "bound" or "estimate"
    overfit : Interval or None
        Training minus held-out mean, with training rows.
    impossible : share of rows that the model never makes, of probability 0, which no mean counts
    """

    log_likelihood: Interval
    bits_per_dim: Interval
    kind: str
    overfit: Interval | None
    impossible: float = 0.0


def bits_per_dim(log_prob: Any, d: int, divided_by: float = 1.0) -> Any:
    r"""Code length :math:`-\log_2 p` of one coordinate.

    Parameters
    ----------
    log_prob : nats of rows
    d : coordinates of a row
    divided_by : factor by which values were divided before; bytes scaled to [0, 1) cost 8 bits more

    Examples
    --------
    >>> entropy = 0.5 * math.log(2 * math.pi * math.e)
    >>> round(float(bits_per_dim(-entropy, 1)), 6), round(float(bits_per_dim(-entropy, 1, 256)), 6)
    (2.047096, 10.047096)
    """
    return -np.asarray(log_prob) / (d * math.log(2)) + math.log2(divided_by)


def code_length(log_prob: Any) -> Any:
    r"""Bits that a row takes in the best code for the model, :math:`-\log_2 p`."""
    return -np.asarray(log_prob) / math.log(2)


def held_out_likelihood(
    model: Any,
    X_test: Any,
    X_train: Any = None,
    *,
    y: Any = None,
    divided_by: float = 1.0,
    level: float = 0.95,
) -> HeldOutLikelihood:
    """Mean log-likelihood of new rows with an interval, in nats and in bits per dimension.

    Parameters
    ----------
    model : with ``score_samples``; its ``log_prob_kind_`` says whether that is exact, a bound or an
        estimate
    X_test : rows that were not learned from
    X_train : rows that were, for the gap between the two
    y : conditions of X_test
    divided_by : see `bits_per_dim`

    Examples
    --------
    >>> from groundstate import GaussianMixture
    >>> rows = np.random.default_rng(0).normal(size=(2000, 1))
    >>> found = held_out_likelihood(GaussianMixture(1, random_state=0).fit(rows[:1000]), rows[1000:])
    >>> 2.047 in found.bits_per_dim
    True
    """
    given = () if y is None else (y,)
    every = np.asarray(model.score_samples(X_test, *given), np.float64)
    new = every[every > -np.inf]
    if len(new) < 2:
        raise DataError(
            f"the model holds {len(every) - len(new)} of {len(every)} rows for impossible; a likelihood "
            "needs two that are not, so let it learn from rows of the same kind"
        )
    found = mean_interval(new, level)
    shape = np.shape(X_test)
    d = math.prod(shape[1:]) if len(shape) > 1 else 1
    bits = Interval(
        float(bits_per_dim(found.estimate, d, divided_by)),
        float(bits_per_dim(found.high, d, divided_by)),
        float(bits_per_dim(found.low, d, divided_by)),
        level,
        found.method,
    )
    gap = None
    if X_train is not None and y is None:
        old = np.asarray(model.score_samples(X_train), np.float64)
        difference = float(old.mean() - new.mean())
        error = math.sqrt(old.var(ddof=1) / len(old) + new.var(ddof=1) / len(new))
        half = error * (found.high - found.estimate) / max(_error(new), 1e-300)
        gap = Interval(difference, difference - half, difference + half, level, "welch")
    kind = str(getattr(model, "log_prob_kind_", "exact"))
    return HeldOutLikelihood(found, bits, kind, gap, (len(every) - len(new)) / len(every))


def _error(values: Floats) -> float:
    return math.sqrt(values.var(ddof=1) / len(values))
