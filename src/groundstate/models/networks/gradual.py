"""Gradual unfreezing: a transferred network learns from its head down."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported
from groundstate.models.networks.model import NetworkModel
from groundstate.nn.blocks.transfer import Transferred


def fit_gradually(
    model: NetworkModel, X: Any, y: Any, sample_weight: Any = None, *, layers: int = 1
) -> NetworkModel:
    """Fit the head, then let ``layers`` more layers learn in every further fit, until all do.

    Every stage runs the model's own epochs with a fresh optimiser, from the weights before it.

    Parameters
    ----------
    model : estimator whose module comes from ``transfer``; it is fitted in place
    X, y, sample_weight : rows
    layers : that join at every stage

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from groundstate import NeuralRegressor
    >>> from groundstate.nn.blocks.transfer import transfer
    >>> source = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    >>> model = NeuralRegressor(transfer(source, 1), max_iter=3, n_iter_no_change=float("inf"))
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> len(fit_gradually(model, X, X[:, 0]).loss_curve_)  # three stages
    9
    """
    warm, model.warm_start = model.warm_start, False
    try:
        model.fit(X, y, sample_weight)
        nets = [m for m in model.energy_.modules() if isinstance(m, Transferred)]
        if not nets:
            raise Unsupported(
                "fit_gradually unfreezes a network that transfer made; pass module=transfer(...)"
            )
        model.warm_start = True
        while any(net.frozen for net in nets):
            for net in nets:
                net.unfreeze(layers)
            model.fit(X, y, sample_weight)
    finally:
        model.warm_start = warm
    return model
