r"""How much to add to every covariance, chosen by the likelihood of held-out rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, NotConverged

FRACTIONS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of the mean variance of the columns
HELD_OUT = 0.25


def chosen_reg_covar(model: Any, X: Tensor, weight: Tensor | None) -> float:
    r"""The largest ``reg_covar`` within one standard error of the highest held-out likelihood.

    Candidates are fractions of the mean variance of the columns, from 1e-6 to 0.1. Rows of equal
    content are never on both sides, so a component that sits on a repeated value gains nothing.
    """
    x = X.detach().cpu().numpy()
    w = None if weight is None else weight.detach().cpu().numpy().astype(np.float64)
    variance = float(np.nanvar(x.astype(np.float64), axis=0).mean())
    if not variance > 0:
        return 1e-6
    line = WeightLine.of(np.nan_to_num(x), weights=w)
    if line.n_distinct < 8 or line.n_distinct < 2 * model.n_components:
        return variance * 1e-2
    key = Key.of(0).fold("reg_covar")
    train, test = line.cut(key, HELD_OUT)
    if np.count_nonzero(train) < model.n_components:
        return variance * 1e-2
    held, judged = test > 0, {}
    for fraction in reversed(FRACTIONS):
        one = clone(model).set_params(
            reg_covar=fraction * variance, n_init=1, random_state=0, callbacks=None, verbose=0,
            warm_start=False,
        )  # fmt: skip
        rows = train > 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConverged)
                one.fit(x[rows], sample_weight=train[rows])
        except DataError:  # collapsed
            continue
        values = np.asarray(one.score_samples(x[held]), np.float64)
        if np.isfinite(values).all():
            judged[fraction] = values
    return float(torch.tensor(_largest(judged, test[held]) * variance))


def _largest(judged: dict[float, NDArray[Any]], weight: NDArray[Any]) -> float:
    """The largest fraction that is worse than the best by at most a standard error.

    The error is that of the mean difference of the two, row by row.
    """
    if not judged:
        return FRACTIONS[-1]
    total = weight.sum()
    best = max(judged.values(), key=lambda values: float(weight @ values))
    near = []
    for fraction, values in judged.items():
        behind = best - values
        mean = weight @ behind / total
        error = np.sqrt(weight @ np.square(behind - mean) / max(total - 1, 1e-300) / total)
        if mean <= error + 1e-9:
            near.append(fraction)
    return max(near)
