"""Snapshots of one stochastic run, for classes."""

from __future__ import annotations

from typing import Any

from groundstate.models.ensembles.snapshots.snapshots import SnapshotModel
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.roles import EnergyClassifier
from groundstate.registry import models


@models.register(
    family="ensembles", task="classification", role="classifier", max_rows=2_000, auto=False
)
class SnapshotEnsembleClassifier(SnapshotModel, EnergyClassifier):
    r"""The average over parameters that stochastic gradient descent passes at a constant rate.

    .. math::
        e(x, y) = -\log \frac1M\sum_{m=1}^M p(y \mid x, \theta_m), \qquad
        \theta_m = \theta_{t_0 + m s},\quad \theta_{t+1} = \theta_t - \eta\nabla J_{\text{batch}} .

    The model is learned as it is by itself; from there on steps at a constant rate do not settle but
    wander about the minimum, so that their snapshots are an ensemble for the price of one run.

    Parameters
    ----------
    estimator : classifier of groundstate whose energy has gradients, default=None
        ``LogisticRegression()`` unless given; its own solver finds the start.

    Attributes
    ----------
    energy_ : CommitteeClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import SnapshotEnsembleClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SnapshotEnsembleClassifier(random_state=0).fit(X, y)
    >>> len(model.members_), bool(model.score(X, y) > 0.9)
    (10, True)
    """

    def _base(self) -> Any:
        return LogisticRegression()
