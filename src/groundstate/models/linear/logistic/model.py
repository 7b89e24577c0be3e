"""What logistic regression and its cross-validated form have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy
from groundstate.learn import L1, L2, LBFGS, ElasticNet, Newton, SoftMin
from groundstate.learn.base import Penalty
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse
from groundstate.learn.solvers.linear.online_descent import averaged_descent
from groundstate.learn.solvers.logistic.sparse import ProximalNewton
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.linear.coefficients import class_part, densify, sparsify
from groundstate.models.roles import EnergyClassifier

SOLVERS = {
    "auto", "lbfgs", "newton-cg", "newton-cholesky", "liblinear", "sag", "saga", "sgd",
}  # fmt: skip


def penalty_for(C: float, l1_ratio: float, classes: int) -> Penalty | None:
    r"""The prior whose strength on θ is 1/C: on :math:`W_1 - W_0` for two classes, else on W.

    With W₀ = −W₁ the absolute values add up to :math:`|W_1 - W_0|` and the squares to half of
    :math:`|W_1 - W_0|^2`.
    """
    if np.isinf(C):
        return None
    if l1_ratio == 0:
        return L2((2.0 if classes == 2 else 1.0) / C)
    if l1_ratio == 1:
        return L1(1.0 / C)
    if classes == 2:
        return ElasticNet((2 - l1_ratio) / C, l1_ratio / (2 - l1_ratio))
    return ElasticNet(1.0 / C, l1_ratio)


class LinearSoftminClassifier(EnergyClassifier):
    """A linear class energy learned by cross-entropy, on dense or sparse rows."""

    _accept_sparse: ClassVar[bool | str] = "csr"
    fit_intercept: bool
    max_iter: int
    solver: Any
    tol: float
    separable_: bool
    coef_ = class_part("W")
    intercept_ = class_part("b")
    sparsify, densify = sparsify, densify
    odds_ratio_ = Learned(
        lambda model: type(model).coef_.read(model).exp(),
        instead="set coef_, of which it is the exponential",
    )

    def _plan(
        self, X: Tensor, weight: Tensor | None, C: float, l1_ratio: float, classes: int
    ) -> Plan:
        energy = LinearEnergy(X.shape[1], classes, self.fit_intercept)
        penalty = penalty_for(C, l1_ratio, classes)
        solver = self._solver(X, weight, energy, penalty)
        return Plan(energy=energy, rule=SoftMin(), solver=solver, penalty=penalty)

    def _solver(
        self, X: Tensor, weight: Tensor | None, energy: LinearEnergy, penalty: Penalty | None
    ) -> Any:
        """The solver asked for; names that mean the same minimum share the fastest way to it."""
        if self.solver is not None and not isinstance(self.solver, str):
            return self.solver
        if self.solver == "sgd":
            return averaged_descent(X, weight, energy, epochs=self.max_iter)
        if penalty is not None and not penalty.smooth:
            return ProximalNewton(max_iter=self.max_iter, tol=self.tol**2)
        small = Newton.handles(*energy.W.shape)
        if self.solver == "lbfgs" or not (small or self.solver in ("newton-cg", "newton-cholesky")):
            if self.solver == "lbfgs" or not is_sparse(X):
                return LBFGS(max_iter=self.max_iter, tol=self.tol)
            return Newton(max_iter=self.max_iter, tol=self.tol, way="conjugate")
        way: Any = "conjugate" if self.solver == "newton-cg" else "auto"
        return Newton(max_iter=self.max_iter, tol=self.tol, way=way)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        history = getattr(self, "history_", None)
        return {"separable_": history is not None and "separable" in history.extra}

    def _go_on(self, energy: Energy) -> None:
        """Begin at the weights of the last fit, where it had the same shape."""
        last: Any = getattr(self, "energy_", None)
        now: Any = energy
        if last is None or last.W.shape != now.W.shape or (last.b is None) != (now.b is None):
            return
        with torch.no_grad():
            now.W.copy_(last.W)
            if now.b is not None:
                now.b.copy_(last.b)
