r"""How much to add to every covariance, chosen by the likelihood of held-out rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, NotConverged

FRACTIONS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of the mean variance of the columns
HELD_OUT = 0.25


def chosen_reg_covar(model: Any, X: Tensor, weight: Tensor | None) -> float:
    r"""The ``reg_covar`` of the highest held-out likelihood, largest first among equals.

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
    best, found = -np.inf, FRACTIONS[-1]
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
        held = test > 0
        value = float(np.average(np.asarray(one.score_samples(x[held])), weights=test[held]))
        if np.isfinite(value) and value > best + 1e-9:
            best, found = value, fraction
    return float(torch.tensor(found * variance))
