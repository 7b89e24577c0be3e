"""Kernel regression with a tube in which errors are free."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.kernels.loss import KernelLossEnergy
from groundstate.learn import FunctionNorm, Naive
from groundstate.learn.solvers.svm.smo.tube import TubeSMO
from groundstate.math.kernels import Kernel
from groundstate.math.losses import EpsilonInsensitive
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.kernels.choice import chosen_kernel
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Cost, Traits
from groundstate.registry import models


@models.register(
    family="svm", task="regression", role="regressor", max_rows=20_000, shortlist=7,
    shortlist_rows=5_000,
)  # fmt: skip
class SVR(NestedKernel, EnergyRegressor):
    r"""The flattest function in the space of a kernel that keeps most rows inside a tube.

    .. math::
        e(x, y) = \max(0, |y - f(x)| - \varepsilon), \quad f(x) = \sum_i\beta_i k(x_i, x) + b, \qquad
        \min_f\; \tfrac12\|f\|^2 + C\sum_i w_i\,e(x_i, y_i) .

    Solved in the dual by sequential minimal optimisation, with the engine of ``SVC``; rows inside the
    tube have :math:`\beta_i = 0`. Rows of equal content count as one row with their summed weight.
    Sparse rows are taken and made dense.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, kernel object or callable
    degree, gamma, coef0 : of the named kernels
        gamma "scale" is 1/(n_features · Var X), "auto" is 1/n_features.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    C : float, default=1.0
        Weight of the data.
    epsilon : float, default=0.1
        ε, in units of y.
    shrinking : bool, default=True
        Set coefficients aside that cannot move.
    cache_size : float, default=200
        Megabytes for kernel rows.
    verbose : bool
        Accepted for scikit-learn's sake.
    max_iter : int, default=-1
        Steps; −1 for ten million or a hundred for each row.
    device : str or torch.device, default=None
        Where kernel rows and errors are kept; None is the CPU.

    Attributes
    ----------
    support_ : (n_support,) indices of the support vectors
    support_vectors_ : (n_support, n_features)
    n_support_ : (1,) array
    dual_coef_ : (1, n_support), β
    intercept_ : (1,)
    coef_ : (1, n_features), for the linear kernel
    fit_status_ : 0 when solved to ``tol``, else 1
    shape_fit_ : shape of the training rows
    energy_ : KernelLossEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = SVR(C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.15)
    True
    """

    traits = Traits(
        cost=Cost(0.06, rows=2.0, columns=0.3),
        space={
            "C": settings.Real(1e-2, 1e3, log=True),
            "gamma": settings.Real(1e-5, 1e1, log=True),
            "epsilon": settings.Real(1e-3, 1.0, log=True),
        },
    )
    _multi_output: ClassVar[bool] = False
    _accept_sparse: ClassVar[bool | str] = "dense"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [
            StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), Kernel, callable,
        ],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
    }  # fmt: skip

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self.shape_fit_ = tuple(X.shape)
        repeats = None if weight is None else weight.cpu()
        kernel = chosen_kernel(self.kernel, X, None, repeats, self.gamma, self.degree, self.coef0)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs the square matrix of kernel values between the "
                f"training rows, got X of shape {tuple(X.shape)}"
            )
        return Plan(
            energy=KernelLossEnergy(X.shape[1], kernel, EpsilonInsensitive(self.epsilon)),
            rule=Naive(),
            solver=TubeSMO(self.tol, self.max_iter, self.cache_size, self.shrinking),
            penalty=FunctionNorm(1.0 / self.C),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, KernelLossEnergy)
        return {
            "support_": energy.support.cpu().numpy().astype(np.int32),
            "n_support_": np.array([len(energy.centers)], np.int32),
            "fit_status_": int(not getattr(self.__dict__.get("history_"), "converged", False)),
        }

    dual_coef_ = Learned(lambda model: model.energy_.beta[None])
    intercept_ = Learned(lambda model: model.energy_.b)
    support_vectors_ = Learned(
        lambda model: model.energy_.centers[:, : 0 if model.kernel == "precomputed" else None]
    )
    coef_ = Learned(lambda model: _weights(model), instead="set dual_coef_ and intercept_")


def _weights(model: SVR) -> Tensor:
    """Weights of the linear kernel's function, ``(1, d)``."""
    energy = model.energy_
    assert isinstance(energy, KernelLossEnergy)
    if model.kernel != "linear":
        raise AttributeError("coef_ is only available when using a linear kernel")
    return energy.beta[None] @ energy.centers
