"""Linear regression that outliers pull on with a bounded force."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.base import Energy
from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.learn import L2, Naive
from groundstate.learn.solvers.linear.residuals import ResidualNewton
from groundstate.math.losses import Huber
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.linear.robust.line import LineRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor")
class HuberRegressor(LineRegressor):
    r"""Squares of small residuals, absolute values of large ones, and the scale between them.

    .. math::
        e(x, y) = \rho_\varepsilon\bigl((y - Wx - b)/\sigma\bigr), \qquad
        \min_{W, b, \sigma} \sum_i w_i\bigl[\tfrac\sigma2
        + \sigma\rho_\varepsilon(r_i/\sigma)\bigr] + \tfrac\alpha2\|W\|^2 ,

    :math:`\rho_\varepsilon(u) = \tfrac12u^2` up to ε, then :math:`\varepsilon(|u| - \tfrac12\varepsilon)`.
    It is half of scikit-learn's objective, convex in all unknowns, and solved by Newton's method. Where
    y is multiplied by a number, line and scale are too.

    Parameters
    ----------
    epsilon : float, default=1.35
        ε, at least 1; residuals beyond εσ are outliers. 1.35 is 95 % efficient on normal noise.
    alpha : float, default=0.0001
        Strength of the penalty; the intercept is free.
    warm_start : bool, default=False
        Begin at the last fit.
    tol : float, default=1e-5
        Largest entry of the gradient of the mean objective at the end.
    device : str or torch.device, default=None
        Where to compute; None is the CPU.

    Attributes
    ----------
    intercept_ : float
    scale_ : float, σ
    outliers_ : (n_samples,) bool, the rows of the fit beyond εσ

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import HuberRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> model = HuberRegressor(alpha=0).fit(X, [0, 1.1, 1.9, 3.1, 4, 50])
    >>> model.coef_.round(1).tolist(), model.outliers_.tolist()
    ([1.0], [False, False, False, False, False, True])
    """

    traits = Traits(
        steps="max_iter",
        space={"epsilon": settings.Real(1.0, 3.0), "alpha": settings.Real(1e-6, 1e2, log=True)},
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        max_iter: int = 100,
        alpha: float = 0.0001,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        try:
            return super()._fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_training", None)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        self._training = X, y
        solver = ResidualNewton(self.max_iter, self.tol, scale=True)
        energy = self._energy(X, Huber(self.epsilon))
        return Plan(energy, Naive(), solver, L2(self.alpha))

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, LinearLossEnergy)
        x, y = self._training
        with torch.no_grad():
            far = (y - energy.predict(x)).abs()[:, 0] > self.epsilon * energy.scale
        return {"outliers_": far.cpu().numpy()}

    scale_ = Learned(lambda model: model.energy_.scale)
