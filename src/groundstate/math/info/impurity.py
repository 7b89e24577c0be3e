r"""How mixed a set of labels is, and how much a question about it tells.

.. math:: IG = H(S) - \sum_v \frac{n_v}{n} H(S_v), \qquad
          \text{gain ratio} = IG \Big/ {-\sum_v \frac{n_v}{n}\log\frac{n_v}{n}} .

The gain is the mutual information of the table of counts ``crossed(feature, y)``; trees that hold
such a table call `mutual_information` on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import ShapeError
from groundstate.math.info.entropy import entropy
from groundstate.math.info.mutual_information import mutual_information

F64 = NDArray[np.float64]


def gini(counts: ArrayLike) -> float:
    """The chance that two draws differ, 1 − Σ p².

    Examples
    --------
    >>> gini([1, 1])
    0.5
    """
    n = np.asarray(counts, np.float64)
    total = n.sum()
    if not (n >= 0).all() or not total > 0:
        raise ValueError(f"counts are at least 0 and not all 0, got {n.tolist()!r:.60}")
    return float(1.0 - np.square(n / total).sum())


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


def information_gain(
    y: Any, feature: Any, base: float | None = 2, *, sample_weight: ArrayLike | None = None
) -> float:
    """Fall of the entropy of y when the feature is known, in bits.

    Parameters
    ----------
    y, feature : labels of any kind, ``(n,)``
    base : of the logarithm; None gives nats
    sample_weight : a weight of 2 is the row twice

    Examples
    --------
    >>> information_gain([0, 0, 1, 1], ["a", "a", "b", "b"])
    1.0
    """
    return float(mutual_information(crossed(feature, y, sample_weight), base))


def split_info(
    feature: Any, base: float | None = 2, *, sample_weight: ArrayLike | None = None
) -> float:
    """Entropy of the feature itself: what the split costs.

    Examples
    --------
    >>> split_info(["a", "b", "c", "d"])
    2.0
    """
    constant = np.zeros(len(np.asarray(feature)))
    return float(entropy(crossed(feature, constant, sample_weight)[:, 0], base=base))


def gain_ratio(y: Any, feature: Any, *, sample_weight: ArrayLike | None = None) -> float:
    """Information gain over the entropy of the feature; 0 where that is 0.

    Examples
    --------
    >>> gain_ratio([0, 1, 1], ["a", "a", "a"])
    0.0
    """
    own = split_info(feature, sample_weight=sample_weight)
    return information_gain(y, feature, sample_weight=sample_weight) / own if own > 0 else 0.0


def crossed(feature: Any, y: Any, sample_weight: ArrayLike | None = None) -> F64:
    """Weights of every pair of feature value and class, (values, classes).

    Examples
    --------
    >>> crossed(["a", "b", "b"], [0, 0, 1]).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    a, b = np.asarray(feature), np.asarray(y)
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ShapeError(
            f"feature and y must be two columns of one length, got {a.shape} and {b.shape}"
        )
    rows, i = np.unique(a, return_inverse=True)
    columns, j = np.unique(b, return_inverse=True)
    out = np.zeros((len(rows), len(columns)))
    np.add.at(out, (i, j), 1.0 if sample_weight is None else np.asarray(sample_weight, np.float64))
    return out
