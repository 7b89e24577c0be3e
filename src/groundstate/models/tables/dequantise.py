r"""Values that come in steps, spread over their steps, so that a density of them stays finite.

A density of real numbers can be made as high as one likes at a value that many rows share: a
component with no width sits on it. Such values are rounded ones, and a row stands for the whole
cell around it. With a step :math:`\delta_j` of every column,

.. math:: \tilde x_j = x_j + \delta_j u_j, \qquad u_j \sim U(-\tfrac12, \tfrac12),

a model of :math:`\tilde x` bounds the probability of the cell from below,
:math:`E\log p(\tilde x) \le \log P(\text{cell}) - \sum_j\log\delta_j`, and no width below the step
pays (Theis, van den Oord & Bethge 2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import Unsupported

F64 = NDArray[np.float64]
_EDGE = 0.01  # share of values at either end that do not count for the mean spacing


def steps_of(X: F64) -> F64:
    """The step of every column, ``(d,)``; zero where no value occurs twice or all are one.

    It is the median gap between neighbours among the values that repeat; where one value alone
    repeats (many zeros among measurements), the mean spacing of all distinct values.

    >>> steps_of(np.array([[0.0, 0.1, 1.7], [1.0, 0.1, 2.0], [0.0, 0.2, 3.1], [1.0, 0.2, 5.0]]))
    array([1. , 0.1, 0. ])
    """
    return np.array([_step(column) for column in X.T])


def _step(column: F64) -> float:
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2 or counts.max() < 2:
        return 0.0
    repeated = values[counts > 1]
    if len(repeated) > 1:
        return float(np.median(np.diff(repeated)))
    low, high = np.quantile(values, [_EDGE, 1 - _EDGE])
    return float((high - low) / (len(values) - 1))


def spread(X: F64, steps: F64, key: Key) -> F64:
    """Rows moved within their steps; the noise of a row does not depend on its place in the table.

    >>> X = np.array([[0.0, 5.0], [1.0, 5.5], [1.0, 5.5]])
    >>> moved = spread(X, np.array([1.0, 0.0]), Key.of(0))
    >>> bool((np.abs(moved - X)[:, 0] <= 0.5).all()), moved[:, 1].tolist(), bool(moved[1, 0] != moved[2, 0])
    (True, [5.0, 5.5, 5.5], True)
    >>> turn = [2, 0, 1]
    >>> bool(np.allclose(np.sort(spread(X[turn], np.array([1.0, 0.0]), Key.of(0)), 0), np.sort(moved, 0)))
    True
    """
    if not steps.any():
        return X
    noise = key.numpy().uniform(-0.5, 0.5, X.shape)
    out = X.astype(np.float64, copy=True)
    out[WeightLine.of(X).order(key.fold("order"))] += noise * steps
    return out


def dequantised(X: F64, sample_weight: Any = None) -> tuple[F64, F64]:
    """Training rows spread over the steps of their columns, and the steps."""
    if sample_weight is not None:
        raise Unsupported("dequantise=True takes no sample_weight; repeat the rows instead")
    steps = steps_of(X)
    return spread(X, steps, Key.of(0)), steps


def held_out_log_density(model: Any, X: Any, key: Key) -> F64:
    """Log densities of new rows under a `TablePredictor`, ``(n_samples,)``.

    Where values were spread over their steps in learning, at a random place of each row's cell:
    densities of rounded values are comparable between models only so.
    """
    return _log_density_at_a_place(model, model.prepare(X), key)


def mean_log_density(model: Any, X: Any, key: Key, places: int = 8) -> F64:
    """Log densities of rows under a `TablePredictor`, means over some places of each row's cell.

    In the units of `held_out_log_density`, with less noise of the place.
    """
    rows = model.prepare(X)
    if model.steps_ is None or not model.steps_.any():
        places = 1
    found = [_log_density_at_a_place(model, rows, key.fold("place", i)) for i in range(places)]
    return np.asarray(np.mean(found, 0))


def _log_density_at_a_place(model: Any, rows: F64, key: Key) -> F64:
    if model.steps_ is not None:
        rows = spread(rows, model.steps_, key)
    return np.asarray(model.estimator_.score_samples(rows), np.float64)
