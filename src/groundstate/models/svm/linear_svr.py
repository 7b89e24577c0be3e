"""Linear regression with a tube in which errors are free."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.learn import L2, Naive, SumPenalty
from groundstate.learn.solvers.linear.residuals import ResidualNewton
from groundstate.learn.solvers.svm.interior_numba import MAX_UNKNOWNS, TubeInterior
from groundstate.learn.solvers.svm.tube_numba import TubeDual
from groundstate.math.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.linear.robust.line import LineRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="svm", task="regression", role="regressor", shortlist_text=2)
class LinearSVR(LineRegressor):
    r"""A line in a tube: errors up to ε are free, larger ones count linearly or squared.

    .. math::
        e(x, y) = \max(0, |y - Wx - b| - \varepsilon)^p, \qquad
        \min_{W, b}\; C\sum_i w_i\,e(x_i, y_i) + \tfrac12\|W\|^2 + \tfrac12\|b\|^2 .

    Parameters
    ----------
    epsilon : float, default=0.0
        ε, in units of y.
    tol : float, default=1e-4
        Of the dual; the other solvers go to the last digits.
    C : float, default=1.0
        Weight of the data against the penalty.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The power p: 1 or 2.
    intercept_scaling : float, default=1.0
        :math:`b/s` is what the penalty sees of the intercept.
    dual : "auto" or bool, default="auto"
        True visits one row at a time in the dual (for p = 1). "auto" and False take Newton's method
        for p = 2; for p = 1 "auto" takes an interior-point method up to 1,000 columns.
    verbose : int
        Accepted for scikit-learn's sake; use ``callbacks``.
    random_state : int, default=None
        Order of the passes in the dual; it does not change the solution.
    device : str or torch.device, default=None
        Where to predict; the line is found on the CPU.

    Attributes
    ----------
    intercept_ : (1,) array, or 0.0 without one

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LinearSVR
    >>> X = np.arange(8.0)[:, None]
    >>> LinearSVR(C=100.0).fit(X, 2 * X[:, 0] + 1).predict([[10.0]]).round(3).tolist()
    [21.0]
    """

    _runs_on: Any = "answers"  # its solvers are compiled for the CPU
    traits = Traits(
        space={"C": settings.Real(1e-4, 1e4, log=True), "epsilon": settings.Real(0.0, 1.0)}
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "tol": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "dual": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _solver(self, columns: int) -> Any:
        if self.loss == "squared_epsilon_insensitive":
            return ResidualNewton(self.max_iter, 1e-10)
        if self.dual is False:
            raise ValueError(
                "loss='epsilon_insensitive' has kinks, which its primal cannot be solved with, got "
                "dual=False: use dual='auto' or loss='squared_epsilon_insensitive'"
            )
        inside = self.dual == "auto" and columns <= MAX_UNKNOWNS
        return (
            TubeInterior(self.max_iter, 1e-3 * self.tol)
            if inside
            else TubeDual(self.max_iter, self.tol)
        )

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        squared = self.loss == "squared_epsilon_insensitive"
        loss = (SquaredEpsilonInsensitive if squared else EpsilonInsensitive)(self.epsilon)
        penalty: Any = L2(1 / self.C, intercept=True)
        if self.intercept_scaling != 1 and self.fit_intercept:
            seen = L2(1 / (self.C * self.intercept_scaling**2), select=("b",))
            penalty = SumPenalty(L2(1 / self.C), seen)
        return Plan(self._energy(X, loss), Naive(), self._solver(X.shape[1]), penalty)

    intercept_ = Learned(lambda model: model.energy_.b)
