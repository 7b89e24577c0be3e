"""Gamma regression."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.math.distributions import Family, Gamma
from groundstate.models.linear.generalised.glm_regressor import METHODS, GLMRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class GammaRegressor(GLMRegressor):
    r"""Positive amounts whose log mean is linear and whose spread grows with the mean.

    .. math::
        e(x, y) = -\log\mathrm{Gamma}(y;\, 1/\varphi,\, \varphi\mu), \quad \log\mu = Wx + b, \qquad
        \min_{W, b} \frac{1}{\sum_i w_i}\sum_i w_i\,\bigl[y_i/\mu_i + \log\mu_i\bigr]
        + \tfrac\alpha2\|W\|^2 .

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty; the intercept is not penalised.
    fit_intercept : bool, default=True
    solver : {"auto", "newton-cholesky", "lbfgs"}, default="auto"
        "auto" takes Newton's method up to 2,000 unknowns.
    max_iter : int, default=100
    tol : float, default=1e-4
        Largest entry of the gradient of the objective at the end.
    warm_start : bool, default=False
        Begin at the weights of the last fit.
    verbose : int, default=0
        Accepted for scikit-learn's sake; use callbacks.
    device : str or torch.device, default=None
        Where to compute; None is where X is.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    coef_ : (n_features,)
    intercept_ : float
    dispersion_ : float
    deviance_ : float
        Summed over the rows of the fit.
    n_iter_ : int
    energy_ : GLMEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GammaRegressor
    >>> model = GammaRegressor(alpha=0).fit(np.arange(4.0)[:, None], [1, 2, 3, 6])
    >>> round(model.intercept_, 6), model.coef_.round(6).tolist()
    (0.030865, [0.578055])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(METHODS))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        verbose: int = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.device = device
        self.callbacks = callbacks

    def _family(self) -> Family:
        return Gamma()
