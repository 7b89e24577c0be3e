"""Ridge regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.reference import SquaredEnergy
from groundstate.learn import L2, LeastSquares, Naive
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_coefficients
from groundstate.models.roles import EnergyRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor")
class Ridge(EnergyRegressor):
    r"""Squared distance to a linear prediction with a Gaussian prior on the weights.

    .. math::
        e(x, y) = \tfrac12\|y - Wx - b\|^2, \qquad
        \min_{W, b} \sum_i w_i\, e(x_i, y_i) + \tfrac{\alpha}{2}\|W\|^2 .

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty; the intercept is not penalised.
    fit_intercept : bool, default=True
    device : str or torch.device, default=None
        Where to compute; None is the CPU.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    energy_ : SquaredEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Ridge
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Ridge(alpha=2.0).fit(X, [1.0, 3.0, 5.0]).coef_.round(6).tolist()
    [1.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = SquaredEnergy(X.shape[1], y.shape[1], bias=self.fit_intercept)
        penalty = L2(self.alpha) if self.alpha > 0 else None
        return Plan(energy=energy, rule=Naive(), solver=LeastSquares(), penalty=penalty)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return output_coefficients(energy, self._flat_target)
