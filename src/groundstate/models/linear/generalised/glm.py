"""Generalised linear models of any family and link."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.math.distributions import FAMILIES, Family, family_of
from groundstate.math.distributions.links import LINKS, Link
from groundstate.models.linear.generalised.glm_regressor import GLMRegressor
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class GLM(GLMRegressor):
    r"""A linear score sets the mean of a distribution of y that fits its support.

    .. math::
        e(x, y) = -\log p(y;\, \mu, \varphi), \quad g(\mu) = Wx + b, \qquad
        \min_{W, b} \frac{1}{\sum_i w_i}\sum_i w_i\,\tfrac12 d(y_i, \mu_i) + \tfrac\alpha2\|W\|^2 .

    d is the unit deviance of the family, so this is maximum likelihood with a Gaussian prior. φ is
    estimated by Pearson's statistic where the family has one. Outputs are independent problems.

    Parameters
    ----------
    family : str or Family, default="gaussian"
        A name of ``groundstate.math.distributions.FAMILIES`` or an object such as
        ``NegativeBinomial(0.5)``.
    link : str or Link, default="canonical"
        A name of ``groundstate.math.distributions.links.LINKS`` or an object.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    dispersion_ : float or (n_targets,)
        φ; 1 for coins and counts.
    deviance_ : float or (n_targets,)
        Summed over the rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GLM
    >>> X, y = np.arange(4.0)[:, None], [1, 2, 3, 6]
    >>> model = GLM("poisson").fit(X, y)
    >>> round(model.intercept_, 6), model.coef_.round(6).tolist(), round(model.deviance_, 6)
    (0.020954, [0.58307], 0.04284)
    >>> model.predict_interval([[4.0]], level=0.9).tolist()
    [[6.0, 16.0]]
    """

    _multi_output: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "family": [StrOptions(set(FAMILIES)), Family],
        "link": [StrOptions({"canonical", *LINKS}), Link],
    }

    def __init__(
        self,
        family: Any = "gaussian",
        link: Any = "canonical",
        alpha: float = 0.0,
        *,
        fit_intercept: bool = True,
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
        return family_of(self.family)

    def _link(self) -> Any:
        return self.link
