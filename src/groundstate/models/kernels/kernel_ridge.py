"""Kernel ridge regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.kernels.squared import KernelSquaredEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.gp.kernel_ridge import KernelLeastSquares, RidgeNorm
from groundstate.math.kernels import Kernel
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.kernels.pairwise import ridge_kernel
from groundstate.models.kernels.ridge_members import kernel_ridge_members
from groundstate.models.learned import Learned
from groundstate.models.leverage import unit_leverage
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="kernels", task="regression", role="regressor", max_rows=10_000)
class KernelRidge(NestedKernel, EnergyRegressor):
    r"""Least squares in the space of a kernel, with a penalty on the norm of the function.

    .. math::
        e(x, y) = \tfrac12\|y - f(x)\|^2, \qquad f(x) = \sum_i a_i k(x_i, x), \qquad
        \min_f \sum_i w_i\, e(x_i, y_i) + \tfrac\alpha2\|f\|_{\mathcal H}^2 .

    The solution is :math:`a = (K + \alpha w^{-1})^{-1}y`, which is the mean of a Gaussian process
    with noise α. There is no intercept; centre the targets where they need one. Sparse rows are taken
    and made dense.

    Parameters
    ----------
    alpha : float or (n_targets,), default=1
        Strength of the penalty, one for all targets or one for each.
    kernel : str, kernel object or callable, default="linear"
        A kernel of ``groundstate.math.kernels``, a name known to scikit-learn ("linear", "rbf",
        "poly", "sigmoid", "laplacian", "cosine", "chi2", "precomputed", ...), or a function of two
        rows.
    gamma : float, default=None
        Of the named kernels; None is 1/n_features.
    degree, coef0 : of the polynomial and sigmoid kernels
    kernel_params : dict, default=None
        Arguments of a function.

    Attributes
    ----------
    dual_coef_ : (n_samples,) or (n_samples, n_targets), a
    X_fit_ : (n_samples, n_features), the rows; equal rows are kept once, with their weight
    energy_ : KernelSquaredEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KernelRidge
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=0.5).fit(x, np.sin(x[:, 0]))
    >>> model.predict([[1.5]]).round(2).tolist()
    [1.0]
    """

    traits = Traits(
        program=kernel_ridge_members,
        scaled_target=True,
        linear_in_y=True,
        leverage=unit_leverage,
        space={
            "alpha": settings.Real(1e-6, 1e1, log=True),
            "kernel": settings.Choice("rbf", "laplacian"),
            "gamma": settings.Real(1e-4, 1e1, log=True),
        },
    )

    _accept_sparse: ClassVar[bool | str] = "dense"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "kernel": [
            StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS) | {"precomputed"}), Kernel, callable,
        ],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "kernel_params": [dict, None],
    }  # fmt: skip

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        kernel = ridge_kernel(
            self.kernel, X.shape[1], self.gamma, self.degree, self.coef0, self.kernel_params
        )
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs the square matrix of kernel values between the "
                f"training rows, got X of shape {tuple(X.shape)}"
            )
        return Plan(
            energy=KernelSquaredEnergy(X.shape[1], y.shape[1], kernel),
            rule=Naive(over="y"),
            solver=KernelLeastSquares(),
            penalty=RidgeNorm(np.atleast_1d(np.asarray(self.alpha, float)).tolist()),
        )

    dual_coef_ = Learned(
        lambda model: model.energy_.a[:, 0] if model._flat_target else model.energy_.a
    )
    X_fit_ = Learned(lambda model: model.energy_.centers)
