"""One regressor under many seeds."""

from __future__ import annotations

from typing import Any

from groundstate.models.ensembles.committees import predict
from groundstate.models.ensembles.seeds.varied import VariedCommittee
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", max_rows=2_000, auto=False
)
class SeedEnsembleRegressor(VariedCommittee, EnergyRegressor):
    r"""The average of one model fitted to the same rows with different seeds.

    .. math::
        e(x, y) = \tfrac12\Bigl\|y - \frac1M\sum_{m=1}^M f_m(x)\Bigr\|^2 .

    What is averaged away is the part of the error that comes from the random choices of the
    fit itself: starting weights, mini-batches, columns tried. A model without ``random_state`` gives
    members that are all the same. Networks of one shape are trained side by side, as one program.
    ``predict_spread`` says how far the members are apart.

    Parameters
    ----------
    estimator : regressor of any kind, default=None
        A decision tree that tries a random part of the columns per node unless given.

    Attributes
    ----------
    energy_ : CommitteeMeanEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SeedEnsembleRegressor
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = SeedEnsembleRegressor(n_estimators=5, random_state=0).fit(X, X.sum(1))
    >>> len(model.estimators_), round(model.score(X, X.sum(1)), 6)
    (5, 1.0)
    """

    predict = predict

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        vary: Any = ("init", "order"),
        n_jobs: int | None = None,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _kinds(self) -> list[Any]:
        default = DecisionTreeRegressor(max_features=0.5)
        return [default if self.estimator is None else self.estimator]

    def _bases(self) -> list[Any]:
        return self._kinds() * self.n_estimators
