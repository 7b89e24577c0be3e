"""Tweedie regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.math.distributions import Family, Tweedie
from groundstate.models.linear.generalised.glm_regressor import GLMRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class TweedieRegressor(GLMRegressor):
    r"""Any y whose variance is a power of its mean, such as costs that are often zero.

    .. math::
        e(x, y) = -\log p(y;\, \mu, \varphi), \quad \mathrm{Var}\,y = \varphi\mu^p, \quad
        g(\mu) = Wx + b, \qquad
        \min_{W, b} \frac{1}{\sum_i w_i}\sum_i w_i\,\tfrac12 d_p(y_i, \mu_i)
        + \tfrac\alpha2\|W\|^2 .

    p = 0, 1, 2, 3 are Gaussian, Poisson, gamma and inverse Gaussian. Between 1 and 2 the
    distribution has an atom at zero and a density above it. Other powers are fitted, but give no
    probabilities.

    Parameters
    ----------
    power : float, default=0.0
        p; no distribution exists between 0 and 1.
    link : {"auto", "identity", "log"}, default="auto"
        "auto" is the identity for p ≤ 0, else the log.

    Attributes
    ----------
    coef_ : (n_features,)
    intercept_ : float
    dispersion_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import TweedieRegressor
    >>> model = TweedieRegressor(power=1.5, alpha=0).fit(np.arange(4.0)[:, None], [0, 2, 3, 6])
    >>> model.predict([[1.5]]).round(4).tolist()
    [1.7181]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "power": [Interval(Real, None, None, closed="neither")],
        "link": [StrOptions({"auto", "identity", "log"})],
    }

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        link: str = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        verbose: int = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _family(self) -> Family:
        return Tweedie(float(self.power))

    def _link(self) -> Any:
        return "canonical" if self.link == "auto" else self.link
