"""Ordinary least squares."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.reference import SquaredEnergy
from groundstate.learn import LeastSquares, Naive
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_coefficients
from groundstate.models.roles import EnergyRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor")
class LinearRegression(EnergyRegressor):
    r"""Squared distance to a linear prediction, lowered in closed form.

    .. math:: e(x, y) = \tfrac12\|y - Wx - b\|^2, \qquad \min_{W, b} \sum_i w_i\, e(x_i, y_i) .

    :math:`\int e^{-e}dy` does not depend on θ, so lowering the energy alone is maximum likelihood.
    Where the columns are collinear, the solution of smallest norm is taken.

    Parameters
    ----------
    fit_intercept : bool, default=True
    device : str or torch.device, default=None
        Where to compute; None is the CPU.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    rank_ : int
        Rank of the centred rows.
    energy_ : SquaredEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LinearRegression
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = LinearRegression().fit(X, [1.0, 3.0, 5.0])
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6)
    ([2.0], 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "fit_intercept": ["boolean"],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self, *, fit_intercept: bool = True, device: Any = None, callbacks: Any = None
    ) -> None:
        self.fit_intercept = fit_intercept
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = SquaredEnergy(X.shape[1], y.shape[1], bias=self.fit_intercept)
        return Plan(energy=energy, rule=Naive(), solver=LeastSquares())

    def _learned(self, energy: Energy) -> dict[str, Any]:
        learned = output_coefficients(energy, self._flat_target)
        if hasattr(self, "history_"):
            learned["rank_"] = int(self.history_.extra["rank"][0])
        return learned
