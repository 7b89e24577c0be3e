"""Regressors whose answers another regressor learns from."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from groundstate.energy.compose.stacked import StackedValueEnergy
from groundstate.learn import Naive
from groundstate.models.base import Plan
from groundstate.models.ensembles.forests.random_forest_regressor import RandomForestRegressor
from groundstate.models.ensembles.stacking.stacks import Stacking
from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.linear.least_squares.ridge_cv import RidgeCV
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", max_rows=2_000, auto=False
)
class StackingRegressor(Stacking, EnergyRegressor):
    r"""A regressor that learns from what other regressors say of rows they have not seen.

    .. math::
        e(x, y) = \tfrac12\bigl(y - f_\text{final}(\varphi(x))\bigr)^2, \qquad
        \varphi(x) = \bigl(f_1(x), \dots, f_M(x)\bigr), \qquad
        \theta_\text{final} = \arg\min_\theta \sum_i w_i\,L\bigl(\varphi_{-f(i)}(x_i), y_i; \theta\bigr) .

    The members are fitted to all rows; in learning, the final estimator sees the answers of members
    that were fitted without the fold of the row. A weight of 2 is the row twice within a fold.

    Parameters
    ----------
    estimators : list of (name, regressor), default=None
        ``"drop"`` in the place of a member leaves it out. None takes ridge regression, a tree and a
        small forest.
    final_estimator : regressor, default=None
        None is ``RidgeCV()``.
    cv : int, splitter, iterable, "prefit" or None, default=None
        How many folds (None is 5) of rows in their order, as in scikit-learn, a splitter, or pairs of
        indices; "prefit" takes members that are fitted already.

    Attributes
    ----------
    estimators_ : list of members
    energy_ : StackedValueEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from groundstate import KNeighborsRegressor, Ridge, StackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> parts = [("ridge", Ridge(0.1)), ("near", KNeighborsRegressor(20))]
    >>> round(StackingRegressor(parts).fit(X, y).score(X, y), 2)
    0.54
    """

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
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

    def _final(self) -> Any:
        return RidgeCV() if self.final_estimator is None else self.final_estimator

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = StackedValueEnergy(X.shape[1], passthrough=self.passthrough)
        return Plan(energy, Naive(), self._solver(X, y, weight))

    def predict(self, X: Any, **options: Any) -> Any:
        """Values by the final estimator, ``(n_samples,)``; its options, such as ``return_std``."""
        found, home = self._ask_final("predict", X, **options)
        return tuple(map(home.give, found)) if isinstance(found, tuple) else home.give(found)
