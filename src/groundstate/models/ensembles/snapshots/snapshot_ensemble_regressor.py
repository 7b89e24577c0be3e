"""Snapshots of one stochastic run, for values."""

from __future__ import annotations

from typing import Any

from groundstate.models.ensembles.snapshots.snapshots import SnapshotModel
from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.roles import EnergyRegressor
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", max_rows=2_000, auto=False
)
class SnapshotEnsembleRegressor(SnapshotModel, EnergyRegressor):
    r"""The average over parameters that stochastic gradient descent passes at a constant rate.

    .. math::
        e(x, y) = \tfrac12\Bigl\|y - \frac1M\sum_{m=1}^M f(x; \theta_m)\Bigr\|^2, \qquad
        \theta_m = \theta_{t_0 + m s},\quad \theta_{t+1} = \theta_t - \eta\nabla J_{\text{batch}} .

    The model is learned as it is by itself; from there on steps at a constant rate do not settle but
    wander about the minimum, so that their snapshots are an ensemble for the price of one run.

    Parameters
    ----------
    estimator : regressor of groundstate whose energy has gradients, default=None
        ``Ridge()`` unless given; its own solver finds the start.

    Attributes
    ----------
    energy_ : CommitteeMeanEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SnapshotEnsembleRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = SnapshotEnsembleRegressor(random_state=0).fit(X, X.sum(1))
    >>> len(model.members_), bool(model.score(X, X.sum(1)) > 0.9)
    (10, True)
    """

    def _base(self) -> Any:
        return Ridge()
