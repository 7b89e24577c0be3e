"""The linear support vector machine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.reference import LinearEnergy
from groundstate.learn import L2, HingeDual, OneVsRest, SquaredHingeNewton
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import class_coefficients
from groundstate.models.roles import EnergyClassifier
from groundstate.registry import models


@models.register(family="svm", task="classification", role="classifier")
class LinearSVC(EnergyClassifier):
    r"""Linear class energies, pushed apart by a margin, one class against the rest.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad
        \min_{W, b}\; C\sum_i w_i \sum_k \max(0,\, 1 + t_{ik}\, e(x_i, k))^p
        + \tfrac12\|W\|^2 + \tfrac12\|b\|^2,

    with :math:`t_{ik} = 1` for the target and −1 for the others. With two classes one problem is
    solved, for the difference of the two rows, as in scikit-learn.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The power p: 2 or 1.
    tol : float, default=1e-4
        For the hinge, the largest violation of optimality. The squared hinge is solved exactly.
    C : float, default=1.0
        Weight of the data against the penalty.
    fit_intercept : bool, default=True
        The intercept is penalised like a weight, as in scikit-learn with ``intercept_scaling=1``.
    class_weight : dict, "balanced" or None
        Factors on the rows of each class.
    random_state : int, default=None
        Order of the passes of the hinge solver; it does not change the solution.
    max_iter : int, default=1000
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
    >>> from groundstate import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> round(LinearSVC().fit(X, y).score(X, y), 3)
    0.967
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        tol: float = 1e-4,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        max_iter: int = 1000,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.loss = loss
        self.tol = tol
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_iter = max_iter
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        classes = len(self.classes_)
        squared = self.loss == "squared_hinge"
        # W₀ = −W₁ for two classes: twice the strength on both is 1/C on their difference
        strength = (2.0 if classes == 2 else 1.0) / self.C
        return Plan(
            energy=LinearEnergy(X.shape[1], classes, self.fit_intercept),
            rule=OneVsRest(power=2 if squared else 1),
            solver=(
                SquaredHingeNewton(max_iter=self.max_iter)
                if squared
                else HingeDual(max_iter=self.max_iter, tol=self.tol)
            ),
            penalty=L2(strength, intercept=True),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return class_coefficients(energy)
