"""Poisson regression."""

from __future__ import annotations

from groundstate.math.distributions import Family, Poisson
from groundstate.models.linear.generalised.glm_regressor import GLMRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class PoissonRegressor(GLMRegressor):
    r"""Counts whose log mean is linear.

    .. math::
        e(x, y) = \mu - y\log\mu + \log y!, \quad \log\mu = Wx + b, \qquad
        \min_{W, b} \frac{1}{\sum_i w_i}\sum_i w_i\,\bigl[\mu_i - y_i\log\mu_i\bigr]
        + \tfrac\alpha2\|W\|^2 .

    Rates are allowed: y may be a count over its exposure, with the exposure as weight; or pass the
    counts and ``offset=log(exposure)``.

    Attributes
    ----------
    coef_ : (n_features,)
    intercept_ : float
    dispersion_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import PoissonRegressor
    >>> model = PoissonRegressor(alpha=0).fit(np.arange(4.0)[:, None], [1, 2, 3, 6])
    >>> round(model.intercept_, 6), model.coef_.round(6).tolist()
    (0.020954, [0.58307])
    """

    def _family(self) -> Family:
        return Poisson()
