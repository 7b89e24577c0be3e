"""Gamma regression."""

from __future__ import annotations

from groundstate.math.distributions import Family, Gamma
from groundstate.models.linear.generalised.glm_regressor import GLMRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class GammaRegressor(GLMRegressor):
    r"""Positive amounts whose log mean is linear and whose spread grows with the mean.

    .. math::
        e(x, y) = -\log\mathrm{Gamma}(y;\, 1/\varphi,\, \varphi\mu), \quad \log\mu = Wx + b, \qquad
        \min_{W, b} \frac{1}{\sum_i w_i}\sum_i w_i\,\bigl[y_i/\mu_i + \log\mu_i\bigr]
        + \tfrac\alpha2\|W\|^2 .

    Attributes
    ----------
    coef_ : (n_features,)
    intercept_ : float
    dispersion_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GammaRegressor
    >>> model = GammaRegressor(alpha=0).fit(np.arange(4.0)[:, None], [1, 2, 3, 6])
    >>> round(model.intercept_, 6), model.coef_.round(6).tolist()
    (0.030865, [0.578055])
    """

    def _family(self) -> Family:
        return Gamma()
