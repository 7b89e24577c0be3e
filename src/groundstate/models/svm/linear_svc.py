"""The linear support vector machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.basic import LinearEnergy
from groundstate.learn import L1, L2, Margin, OneVsRest, SumPenalty
from groundstate.learn.base import Penalty
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import class_part, densify, sparsify
from groundstate.models.roles import EnergyClassifier
from groundstate.models.svm.solvers import linear_solver
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="svm", task="classification", role="classifier")
class LinearSVC(EnergyClassifier):
    r"""Linear class energies, pushed apart by a margin.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad
        \min_{W, b}\; C\sum_i w_i \sum_k \max(0,\, 1 + t_{ik}\, e(x_i, k))^p
        + \tfrac12\|W\|^2 + \tfrac12\|b\|^2,

    with :math:`t_{ik} = 1` for the target and −1 for the others: each class against the rest. With
    two classes one problem is solved, for the difference of the two rows, as in scikit-learn. With
    ``multi_class="crammer_singer"`` the loss is the margin against the best wrong class,
    :math:`\max(0,\, 1 + e(x_i, y_i) - \min_{k \ne y_i} e(x_i, k))`.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        "l1" sums absolute values instead of halved squares and sets weights to exactly zero.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The power p: 2 or 1.
    dual : "auto" or bool, default="auto"
        Solve in the dual, one row at a time, or in the primal. "auto" takes the primal for the
        squared hinge and the dual for the hinge, whose primal has kinks.
    tol : float, default=1e-4
        In the dual, the largest violation of optimality. The primal is solved to the last digits.
    C : float, default=1.0
        Weight of the data against the penalty.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With "crammer_singer" penalty, loss and dual are not used.
    intercept_scaling : float, default=1.0
        :math:`b/s` is what the penalty sees of the intercept.
    class_weight : dict, "balanced" or None
        Factors on the rows of each class, in every machine; scikit-learn's one-against-rest applies
        a factor only in the machine of its class.
    verbose : int
        Accepted for scikit-learn's sake; use ``callbacks``.
    random_state : int, default=None
        Order of the passes of the dual solvers; it does not change the solution.
    max_iter : int, default=1000
    penalize_intercept : bool, default=True
        The intercept is in the penalty, as in scikit-learn; False leaves it free, and the hinge then
        gives ``SVC(kernel="linear")``.
    device : str or torch.device, default=None
        Where to compute; None is where X is. Only the squared hinge in the primal is fitted there,
        the rest on the CPU.

    Attributes
    ----------
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    energy_ : LinearEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> round(LinearSVC().fit(X, y).score(X, y), 3)
    0.967
    """

    traits = Traits(
        space={
            "C": settings.Real(1e-4, 1e4, log=True),
            "loss": settings.Choice("squared_hinge", "hinge"),
        }
    )

    _accept_sparse: ClassVar[bool | str] = "csr"
    coef_ = class_part("W")
    intercept_ = class_part("b")
    sparsify, densify = sparsify, densify
    _calibrated: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "penalize_intercept": ["boolean"],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def _runs_on(self) -> str:
        """The primal of the squared hinge is torch code; other solvers are compiled for the CPU."""
        primal = self.loss == "squared_hinge" and self.penalty == "l2" and self.dual is not True
        return "any" if primal and self.multi_class != "crammer_singer" else "answers"

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        classes = len(self.classes_)
        joint = self.multi_class == "crammer_singer"
        return Plan(
            energy=LinearEnergy(X.shape[1], classes, self.fit_intercept),
            rule=Margin() if joint else OneVsRest(power=2 if self.loss == "squared_hinge" else 1),
            solver=linear_solver(
                self.penalty, self.loss, self.dual, joint, self.max_iter, self.tol
            ),
            penalty=self._prior(classes, joint),
        )

    def _prior(self, classes: int, joint: bool) -> Penalty:
        sparse = self.penalty == "l1" and not joint
        # W₀ = −W₁ for two classes: twice the strength on both is 1/C on the square of their
        # difference, and once that on its absolute value
        twice = classes == 2 and not joint and not sparse
        strength = (2.0 if twice else 1.0) / self.C
        kind: Any = L1 if sparse else L2
        if not self.penalize_intercept or self.intercept_scaling == 1 or not self.fit_intercept:
            whole: Penalty = kind(strength, intercept=self.penalize_intercept)
            return whole
        seen = self.intercept_scaling ** (1 if sparse else 2)
        return SumPenalty(kind(strength), kind(strength / seen, select=("b",)))
