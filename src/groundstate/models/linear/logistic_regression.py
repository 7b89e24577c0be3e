"""Logistic and softmax regression."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.reference import LinearEnergy
from groundstate.learn import L2, LBFGS, Newton, SoftMin
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import class_coefficients
from groundstate.models.roles import ProbabilisticClassifier
from groundstate.registry import models


@models.register(family="linear", task="classification", role="classifier")
class LogisticRegression(ProbabilisticClassifier):
    r"""Linear class energies, learned by cross-entropy.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad
        \min_{W, b}\; \sum_i w_i\,[\,e(x_i, y_i) - F(x_i)\,] + \frac{1}{2C}\|\theta\|^2,
        \qquad F(x) = -\log\sum_y e^{-e(x, y)} .

    :math:`p(y\mid x) = \mathrm{softmax}(Wx + b)`. With two classes θ is the difference
    :math:`W_1 - W_0`, as in scikit-learn; with more it is W.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty; ``numpy.inf`` for none. Intercepts are not penalised.
    tol : float, default=1e-4
        Largest entry of the gradient of the mean objective at the end.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None
        Factors on the rows of each class.
    random_state : int, default=None
        Used by stochastic solvers only.
    solver : {"newton-cholesky", "lbfgs"}, a solver object or None
        None takes Newton's method while its Hessian is small, else L-BFGS.
    max_iter : int, default=100
    device : str or torch.device, default=None
        Where to compute; None is the CPU.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    classes_ : (n_classes,) array
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    energy_ : LinearEnergy
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict(X[:2]).tolist(), round(model.score(X, y), 3)
    ([0, 0], 0.973)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "solver": [StrOptions({"newton-cholesky", "lbfgs"}), HasMethods("run"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        solver: Any = None,
        max_iter: int = 100,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        classes = len(self.classes_)
        newton = Newton(max_iter=self.max_iter, tol=self.tol)
        lbfgs = LBFGS(max_iter=self.max_iter, tol=self.tol)
        small = newton.handles(classes, X.shape[1])
        chosen = {"newton-cholesky": newton, "lbfgs": lbfgs, None: newton if small else lbfgs}
        solver = chosen.get(self.solver, self.solver)
        # W₀ = −W₁ for two classes: twice the strength on both is 1/C on their difference
        strength = (2.0 if classes == 2 else 1.0) / self.C
        return Plan(
            energy=LinearEnergy(X.shape[1], classes, self.fit_intercept),
            rule=SoftMin(),
            solver=solver,
            penalty=L2(strength) if strength > 0 else None,
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return class_coefficients(energy)
