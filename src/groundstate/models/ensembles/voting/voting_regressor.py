"""The average of different regressors."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from groundstate.models.ensembles.committees import predict
from groundstate.models.ensembles.forests.random_forest_regressor import RandomForestRegressor
from groundstate.models.ensembles.voting.votes import Voting
from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", max_rows=2_000, auto=False
)
class VotingRegressor(Voting, EnergyRegressor):
    r"""The weighted average of regressors of different kinds, all fitted to the same rows.

    .. math::
        e(x, y) = \tfrac12\Bigl\|y - \sum_m a_m f_m(x)\Bigr\|^2, \qquad \sum_m a_m = 1 .

    Its squared error is the average error of the members less the variance of their predictions.

    Parameters
    ----------
    estimators : list of (name, regressor), default=None
        ``"drop"`` in the place of a member leaves it out. None takes a ridge regression, a tree
        and a small forest.

    Attributes
    ----------
    estimators_ : list of fitted members
    energy_ : CommitteeMeanEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import DecisionTreeRegressor, Ridge, VotingRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> model = VotingRegressor([("line", Ridge()), ("tree", DecisionTreeRegressor())])
    >>> bool(model.fit(X, X[:, 0]).score(X, X[:, 0]) > 0.99)
    True
    """

    predict = predict
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weights": ["array-like", None],
    }

    def __init__(
        self,
        estimators: Any = None,
        *,
        weights: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _defaults(self) -> list[tuple[str, Any]]:
        return [
            ("ridge", Ridge()),
            ("tree", DecisionTreeRegressor(random_state=0)),
            ("forest", RandomForestRegressor(20, random_state=0)),
        ]

    def transform(self, X: Any) -> Any:
        """Predictions of the members, ``(n_samples, n_members)`` or with outputs in between."""
        x, home = self._rows(X)
        values = [self.energy_.member_value(m, x) for m in range(len(self))]
        stacked = torch.stack(values, 2)  # (B, outputs, members)
        return home.give(stacked[:, 0] if self._flat_target else stacked)
