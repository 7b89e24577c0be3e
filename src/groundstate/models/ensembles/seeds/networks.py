r"""Averages of networks: over seeds and rows, and over dropout masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from sklearn.base import is_classifier
from torch import nn

from groundstate.compute.random import Key, seeded
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.errors import Unsupported
from groundstate.models.networks.model import NetworkModel


def Ensemble(
    estimator: Any,
    n: int = 5,
    vary: Sequence[str] = ("init", "order", "bootstrap"),
    *,
    average: str = "mean",
    random_state: Any = None,
) -> Any:
    r"""n fits of one estimator that differ in what ``vary`` names, averaged.

    .. math:: \Bigl(\bar f - y\Bigr)^2 = \frac1M\sum_m(f_m - y)^2 - \frac1M\sum_m(f_m - \bar f)^2

    Networks of one shape are trained side by side, as one program. The average errs less than a
    member by the spread of the members, exactly; members with variance σ² and correlation ρ average
    to :math:`\rho\sigma^2 + (1 - \rho)\sigma^2/M`.

    Parameters
    ----------
    estimator : classifier or regressor
    n : members
    vary : some of "init", "order", "bootstrap"
    average : "mean" of values or probabilities, or "vote" of labels
    random_state : seed

    Returns
    -------
    SeedEnsembleClassifier or SeedEnsembleRegressor

    Examples
    --------
    >>> from groundstate import MLPRegressor
    >>> Ensemble(MLPRegressor(), n=3).n_estimators
    3
    """
    from groundstate.models.ensembles.seeds.seed_ensemble_classifier import SeedEnsembleClassifier
    from groundstate.models.ensembles.seeds.seed_ensemble_regressor import SeedEnsembleRegressor

    if average not in ("mean", "vote") or (average == "vote" and not is_classifier(estimator)):
        raise ValueError(f"average must be 'mean', or 'vote' of a classifier, got {average!r}")
    if not is_classifier(estimator):
        return SeedEnsembleRegressor(estimator, n, vary=tuple(vary), random_state=random_state)
    voting = "hard" if average == "vote" else "soft"
    return SeedEnsembleClassifier(
        estimator, n, vary=tuple(vary), voting=voting, random_state=random_state
    )


class Draws(NamedTuple):
    """Answers under many masks: their mean, their variance, and all of them ``(n, B, ...)``."""

    mean: Any
    variance: Any
    draws: Any


def monte_carlo_dropout(
    model: NetworkModel, X: Any, n: int = 100, *, random_state: Any = None
) -> Draws:
    """Answers of a fitted network with its dropout left on: n thinned networks, one average.

    Only dropout layers are switched to training; batch norms stay as they are.

    Parameters
    ----------
    model : fitted estimator around a network with dropout
    X : rows
    n : masks
    random_state : seed of the masks

    Returns
    -------
    Draws
        Probabilities ``(B, K)`` of a classifier, values ``(B,)`` or ``(B, m)`` of a regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MLPRegressor
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = MLPRegressor(dropout=0.2, max_iter=5, n_iter_no_change=float("inf")).fit(X, X[:, 0])
    >>> monte_carlo_dropout(model, X, 20).draws.shape
    (20, 30)
    """
    x, home = model._rows(X)
    energy: Any = model.energy_
    noisy = [m for m in energy.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]
    if not any(layer.p > 0 for layer in noisy):
        raise Unsupported(
            f"{type(model).__name__} has no dropout to leave on; set dropout=0.1, or put Dropout "
            "layers into the module"
        )
    for layer in noisy:
        layer.train()
    try:
        with torch.no_grad(), seeded(Key.of(random_state).fold("masks")):
            outputs = []
            for _ in range(n):
                if isinstance(energy, NetworkClassEnergy):
                    outputs.append(torch.softmax(energy.scores(x), 1))
                elif energy.head.kind == "binary":
                    outputs.append(torch.sigmoid(energy.net(x)))
                else:
                    outputs.append(energy.mean(x))
    finally:
        for layer in noisy:
            layer.eval()
    draws = torch.stack(outputs)
    if getattr(model, "_flat_target", False):
        draws = draws[..., 0]
    spread = draws.var(0, unbiased=False)
    return Draws(home.give(draws.mean(0)), home.give(spread), home.give(draws))
