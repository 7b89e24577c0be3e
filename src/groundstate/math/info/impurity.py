r"""How mixed a set of labels is, and how much a question about it tells.

.. math:: H = -\sum_c p_c \log p_c, \qquad IG = H - \sum_v \frac{n_v}{n} H_v, \qquad
          \text{gain ratio} = IG \Big/ {-\sum_v \frac{n_v}{n}\log\frac{n_v}{n}} .
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]


def entropy(counts: ArrayLike, base: float = 2.0) -> float:
    """Entropy of class counts or weights, with 0 log 0 = 0.

    Examples
    --------
    >>> round(entropy([9, 5]), 6)
    0.940286
    """
    p = _shares(counts)
    p = p[p > 0]
    return float(max(0.0, -(p * np.log(p)).sum() / math.log(base)))


def gini(counts: ArrayLike) -> float:
    """The chance that two draws differ, 1 − Σ p².

    Examples
    --------
    >>> gini([1, 1])
    0.5
    """
    return float(1.0 - np.square(_shares(counts)).sum())


def squared_error(y: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Weighted variance about the mean.

    Examples
    --------
    >>> squared_error([1.0, 2.0, 2.0, 4.0])
    1.1875
    """
    values = np.asarray(y, np.float64)
    w = np.ones(len(values)) if weight is None else np.asarray(weight, np.float64)
    mean = np.average(values, weights=w)
    return float(np.average(np.square(values - mean), weights=w))


def information_gain(attribute: Any, y: Any, weight: ArrayLike | None = None) -> float:
    """Fall of the entropy of y (in bits) when the attribute is known.

    Examples
    --------
    >>> information_gain(["a", "a", "b", "b"], [0, 0, 1, 1])
    1.0
    """
    table = crossed(attribute, y, weight)
    n_v = table.sum(1)
    inside = sum(n * entropy(row) for n, row in zip(n_v, table) if n > 0)
    return float(max(0.0, entropy(table.sum(0)) - inside / n_v.sum()))


def gain_ratio(attribute: Any, y: Any, weight: ArrayLike | None = None) -> float:
    """Information gain over the entropy of the attribute itself; 0 where that is 0.

    Examples
    --------
    >>> gain_ratio(["a", "a", "a"], [0, 1, 1])
    0.0
    """
    own = entropy(crossed(attribute, y, weight).sum(1))
    return information_gain(attribute, y, weight) / own if own > 0 else 0.0


def crossed(attribute: Any, y: Any, weight: ArrayLike | None = None) -> F64:
    """Weights of every pair of attribute value and class, (values, classes)."""
    rows, i = np.unique(np.asarray(attribute), return_inverse=True)
    columns, j = np.unique(np.asarray(y), return_inverse=True)
    out = np.zeros((len(rows), len(columns)))
    np.add.at(out, (i, j), 1.0 if weight is None else np.asarray(weight, np.float64))
    return out


def _shares(counts: ArrayLike) -> F64:
    n = np.asarray(counts, np.float64)
    total = n.sum()
    return n / total if total > 0 else n


__all__ = ["crossed", "entropy", "gain_ratio", "gini", "information_gain", "squared_error"]
