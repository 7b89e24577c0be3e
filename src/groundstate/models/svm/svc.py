"""The kernel support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.kernels.machine import KernelMachineEnergy
from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.rules.margins.one_vs_one import OneVsOne
from groundstate.learn.solvers.svm.smo.solver import SMO
from groundstate.math.kernels import Kernel
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.kernels.choice import chosen_kernel
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyClassifier
from groundstate.models.svm.svc_members import svc_members
from groundstate.models.traits import Traits
from groundstate.registry import models


@dataclass(frozen=True)
class MarginReport:
    r"""How well a machine is solved: one entry for each pair of classes.

    ``primal`` is :math:`\tfrac12\|f\|^2 + \sum_i C_i\xi_i`, ``gap`` is primal − dual, ``kkt`` the
    largest violation; then rows with α = 0, 0 < α < C (``free``) and α = C (``bound``), the summed
    slack ξ, and the rows inside the margin (0 < ξ ≤ 1) or on the wrong side (ξ > 1).
    """

    pairs: list[tuple[Any, Any]]
    primal: NDArray[np.float64]
    dual: NDArray[np.float64]
    gap: NDArray[np.float64]
    kkt: NDArray[np.float64]
    zero: NDArray[np.int64]
    free: NDArray[np.int64]
    bound: NDArray[np.int64]
    slack: NDArray[np.float64]
    inside: NDArray[np.int64]
    wrong: NDArray[np.int64]


def _signed(name: str) -> Learned:
    """β or b; of two classes with the sign for which the second is positive."""
    return Learned(
        lambda model: (
            -getattr(model.energy_, name) if model.energy_.k == 2 else getattr(model.energy_, name)
        ),
        lambda model, value: getattr(model.energy_, name).copy_(-value),
    )


@models.register(family="svm", task="classification", role="classifier", max_rows=20_000)
class SVC(NestedKernel, EnergyClassifier):
    r"""The widest margin in the space of a kernel, for each pair of classes.

    .. math::
        e(x, \pm) = \mp\tfrac12 f(x), \quad f(x) = \sum_i \alpha_i t_i k(x_i, x) + b, \qquad
        \min_f\; \tfrac12\|f\|^2 + C\sum_i w_i \max(0,\, 1 - t_i f(x_i)) .

    Solved in the dual by sequential minimal optimisation. Several classes are compared two by two;
    the class with most wins has the lowest energy, and summed scores break ties. Rows of equal
    content count as one row with their summed weight. Sparse rows are taken and made dense. For
    probabilities wrap it in scikit-learn's ``CalibratedClassifierCV``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the data; ``numpy.inf`` asks for a hard margin and refuses overlapping classes.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, kernel object or callable
    degree, gamma, coef0 : of the named kernels
        gamma "scale" is 1/(n_features · Var X), "auto" is 1/n_features.
    shrinking : bool, default=True
        Set coefficients aside that cannot move.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    cache_size : float, default=200
        Megabytes for kernel rows.
    class_weight : dict, "balanced" or None
        Factors on C for each class.
    verbose, random_state
        Accepted for scikit-learn's sake; nothing here is random.
    max_iter : int, default=-1
        Steps for each pair of classes; −1 for ten million or a hundred for each row.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
    break_ties : bool, default=False
        Whether ``predict`` settles an equal number of wins by the scores, as the energy does, or
        takes the first of the classes, as scikit-learn does by default.
    device : str or torch.device, default=None
        Where kernel rows and errors are kept; None is where X is.

    Attributes
    ----------
    support_ : (n_support,) indices of the support vectors, grouped by class
    support_vectors_ : (n_support, n_features)
    n_support_ : (n_classes,) array
    dual_coef_ : (n_classes - 1, n_support), :math:`\alpha_i t_i`
    intercept_ : (n_classes (n_classes - 1) / 2,)
    coef_ : the same number of rows, for the linear kernel
    margin_ : distance from boundary to margin, :math:`1/\|f\|`, for each pair
    class_weight_ : (n_classes,) factors on C
    fit_status_ : 0 when solved to ``tol``, else 1
    shape_fit_ : shape of the training rows
    energy_ : KernelMachineEnergy
    n_iter_ : int, steps in total

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> round(SVC().fit(X, y).score(X, y), 3)
    0.973
    """

    traits = Traits(
        program=svc_members,
        space={
            "C": settings.Real(1e-2, 1e3, log=True),
            "gamma": settings.Real(1e-5, 1e1, log=True),
        },
    )

    _accept_sparse: ClassVar[bool | str] = "dense"
    _calibrated: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "kernel": [
            StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), Kernel, callable,
        ],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "shrinking": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }  # fmt: skip

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _row_weight(self, y: Any, weight: Any) -> Any:
        self._repeats = weight  # the scale of X is that of the repeated rows, whatever their class
        self.class_weight_ = np.ones(len(self.classes_))
        if self.class_weight is not None:
            self.class_weight_ = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_[y], sample_weight=weight
            )
        return super()._row_weight(y, weight)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        repeats = self.__dict__.pop("_repeats", None)
        self.shape_fit_ = tuple(X.shape)
        kernel = chosen_kernel(self.kernel, X, y, repeats, self.gamma, self.degree, self.coef0)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs the square matrix of kernel values between the "
                f"training rows, got X of shape {tuple(X.shape)}"
            )
        return Plan(
            energy=KernelMachineEnergy(X.shape[1], len(self.classes_), kernel),
            rule=OneVsOne(),
            solver=SMO(self.tol, self.max_iter, self.cache_size, self.shrinking),
            penalty=FunctionNorm(1.0 / self.C),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, KernelMachineEnergy)
        return {
            "support_": energy.support.cpu().numpy().astype(np.int32),
            "n_support_": np.array(energy.counts, np.int32),
            "fit_status_": int(not getattr(self.__dict__.get("history_"), "converged", False)),
        }

    dual_coef_ = _signed("beta")
    intercept_ = _signed("b")
    support_vectors_ = Learned(
        lambda model: model.energy_.centers[:, : 0 if model.kernel == "precomputed" else None]
    )
    coef_ = Learned(
        lambda model: _pair_coefficients(model), instead="set dual_coef_ and intercept_"
    )

    @property
    def margin_(self) -> NDArray[np.float64]:
        check_is_fitted(self, "energy_")
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.sqrt(self.history_.extra["norm"]))

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy; see ``break_ties``, ``(n_samples,)``."""
        if self.break_ties or len(getattr(self, "classes_", ())) <= 2:
            return super().predict(X)
        x, home = self._rows(X)
        with torch.no_grad():
            wins = self.energy_.table("y", x=x).neg().round()  # the squeezed score is below ⅓
        return home.give(self.classes_[wins.argmax(1).cpu().numpy()])

    def decision_function(self, X: Any) -> Any:
        """Score of the second class, ``(n_samples,)``; with more classes one column for each class
        ("ovr") or for each pair ("ovo", positive where the first of the pair wins).
        """
        if self.decision_function_shape == "ovr" or len(self.classes_) == 2:
            return super().decision_function(X)
        x, home = self._rows(X)
        with torch.no_grad():
            return home.give(self.energy_.pair_scores(x))  # type: ignore[operator]

    def report(self) -> MarginReport:
        """Optimality of the fit: primal and dual values, violations, and counts of rows."""
        kept = self.history_.extra
        found: dict[str, Any] = {
            name: np.array(kept[name]) for name in ("primal", "dual", "gap", "kkt", "slack")
        }
        for name in ("zero", "free", "bound", "inside", "wrong"):
            found[name] = np.array(kept[name], np.int64)
        names = list(self.classes_)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        return MarginReport(pairs=pairs, **found)


def _pair_coefficients(model: Any) -> Tensor:
    """Weights of each pair's linear function."""
    if model.kernel != "linear":
        raise AttributeError(f"coef_ needs kernel='linear', this is kernel={model.kernel!r}")
    energy = model.energy_
    beta, centers = energy.beta.detach(), energy.centers
    if energy.k == 2:
        return -beta @ centers  # positive is the second class
    ends = np.cumsum([0, *energy.counts])
    part = [slice(ends[a], ends[a + 1]) for a in range(energy.k)]
    rows = [
        beta[b - 1, part[a]] @ centers[part[a]] + beta[a, part[b]] @ centers[part[b]]
        for a in range(energy.k)
        for b in range(a + 1, energy.k)
    ]
    return torch.stack(rows)
