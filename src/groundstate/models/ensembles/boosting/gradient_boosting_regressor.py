"""Gradient boosting of values with any base learner and loss."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.trees.additive import AdditiveEnergy
from groundstate.energy.trees.additive_losses import (
    Absolute,
    AdditiveLoss,
    Huber,
    Poisson,
    Quantile,
    Squared,
    TorchLoss,
)
from groundstate.learn import Naive
from groundstate.models.base import Plan
from groundstate.models.ensembles.boosting.functional import FunctionalBooster
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.inputs import started
from groundstate.registry import models

LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson")


@models.register(
    family="ensembles", task="regression", role="regressor", max_rows=10_000, auto=False
)
class GradientBoostingRegressor(FunctionalBooster, EnergyRegressor):
    r"""A sum of small members, each fitted to the negative gradients of the loss.

    .. math::
        e(x, y) = L(y, F(x)), \qquad F \leftarrow F + \nu\gamma h, \qquad
        h = \arg\min_h \sum_i w_i(r_i - h(x_i))^2 .

    :math:`F_0` is the best constant. In every step h is fitted by least squares to
    :math:`r = -\partial L/\partial F`, and γ comes from ``line_search``. Trees are cut exactly; for
    large tables use ``HistGradientBoostingRegressor``, which bins its columns.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson"}, loss or callable
        :math:`\tfrac12(y-F)^2`, :math:`|y-F|`, their mixture, the pinball loss, half the Poisson
        deviance from :math:`e^F`; an object of ``groundstate.energy.trees.additive_losses``; or a function
        of torch tensors ``(F, y)``, differentiated by torch.
    init : regressor of any kind, "zero" or None
        Start at its answers, at zero, or at the best constant.
    alpha : float, default=0.9
        Quantile of the loss "quantile", and of the residuals beyond which "huber" is linear.

    Attributes
    ----------
    oob_improvement_, oob_scores_ : (n_estimators_,) arrays, with ``subsample``
    energy_ : AdditiveEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GradientBoostingRegressor
    >>> X, y = np.array([[0.0], [0.1], [5.0]]), np.array([88.0, 76.0, 56.0])
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, y)
    >>> model.predict(X).round(2).tolist()
    [74.98, 74.98, 70.04]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES)), AdditiveLoss, callable],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: Any = "squared_error",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "squared_error",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        alpha: float = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        estimator: Any = None,
        line_search: str = "leaf",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    _multi_output: ClassVar[bool] = False

    def _rule(self) -> AdditiveLoss:
        if isinstance(self.loss, AdditiveLoss):
            return self.loss
        if callable(self.loss):
            return TorchLoss(self.loss)
        named: dict[str, AdditiveLoss] = {
            "squared_error": Squared(),
            "absolute_error": Absolute(),
            "huber": Huber(self.alpha),
            "quantile": Quantile(self.alpha),
            "poisson": Poisson(),
        }
        return named[self.loss]

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        loss = self._rule()
        if isinstance(loss, Poisson) and (float(y.min()) < 0 or not float(y.sum()) > 0):
            raise ValueError("loss='poisson' needs non-negative y with a positive sum")
        energy = started(self, AdditiveEnergy(X.shape[1], loss), self._steps_done)
        return Plan(energy, Naive(), self._booster(X, weight, None))

    def _factor(self) -> float:
        return 2.0 if self.loss == "squared_error" else 1.0  # the mean squared error

    def predict(self, X: Any) -> Any:
        """Values of lowest energy, ``(n_samples,)``."""
        x, home = self._rows(X)
        with torch.no_grad():
            return home.give(self.energy_.predict(x)[:, 0])

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict` after every step."""
        for F, home in self._staged(X):
            yield home.give(self.energy_.loss.mean(F)[:, 0])
