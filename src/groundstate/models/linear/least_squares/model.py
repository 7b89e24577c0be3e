"""What ordinary least squares and ridge regression have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.basic import SquaredEnergy
from groundstate.learn import L2, LeastSquares, Naive
from groundstate.learn.base import History
from groundstate.learn.solvers.linear.least_squares import OutputL2, from_sums
from groundstate.learn.solvers.linear.least_squares_sums import RegressionSums
from groundstate.learn.solvers.linear.online_descent import averaged_descent
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_part
from groundstate.models.resident import places
from groundstate.models.roles import EnergyRegressor
from groundstate.models.validation import further

WAYS: dict[str, Any] = {
    "auto": "auto", "svd": "svd", "cholesky": "gram", "lsqr": "iterative", "sparse_cg": "iterative",
    "sag": "auto", "saga": "auto", "lbfgs": "auto",
}  # fmt: skip


class LeastSquaresRegressor(EnergyRegressor):
    """A linear squared energy solved in closed form, on dense or sparse rows, whole or in chunks.

    Parameters
    ----------
    positive : bool
        Allow no weight below zero.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    energy_ : SquaredEnergy
    intercept_ : float or (n_targets,)
    """

    _accept_sparse: ClassVar[bool | str] = "csr"
    fit_intercept: bool
    positive: bool
    solver: Any
    tol: float
    sums_: dict[str, Any]
    _reports_singular: ClassVar[bool] = False
    coef_ = output_part("W")
    intercept_ = output_part("b")

    def _strength(self, outputs: int) -> Any:
        """α: 0, a number, or one for every output."""
        return 0.0

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        self.__dict__.pop("sums_", None)  # a fit begins anew
        energy = SquaredEnergy(X.shape[1], y.shape[1], bias=self.fit_intercept)
        alpha = self._strength(y.shape[1])
        penalty: L2 | None = None
        if np.ndim(alpha):
            penalty = OutputL2(torch.as_tensor(alpha, dtype=X.dtype, device=X.device))
        elif alpha > 0:
            penalty = L2(float(alpha))
        if self.solver == "sgd":
            solver: Any = averaged_descent(
                X, weight, energy, epochs=getattr(self, "max_iter", None)
            )
        elif isinstance(self.solver, str):
            solver = LeastSquares(
                WAYS[self.solver], self.positive, self._reports_singular, self.tol,
                getattr(self, "max_iter", None),
            )  # fmt: skip
        else:
            solver = self.solver
        return Plan(energy=energy, rule=Naive(), solver=solver, penalty=penalty)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further rows; the result is that of ``fit`` on all rows of these calls.

        Only sums over the rows are kept, so that a table larger than memory is learned chunk by
        chunk, exactly. ``fit`` begins anew.

        Parameters
        ----------
        X, y : rows and targets
        sample_weight : (n_samples,), optional
        """
        self._validate_params()
        first = not hasattr(self, "sums_")
        X_, y_ = further(self, X, y, first, multi_output=True)
        encoded, attributes = self._target(y_)
        weight = self._checked_weight(sample_weight, X_)
        device, _ = places(self, X)
        x, target = tensor(X_, device), tensor(encoded.astype(X_.dtype), device)
        w = None if weight is None else tensor(weight, device)
        sums = RegressionSums.of(x, target, w, self.fit_intercept)
        if first:
            for name, value in attributes.items():
                setattr(self, name, value)
            energy = SquaredEnergy(x.shape[1], target.shape[1], bias=self.fit_intercept)
            self.energy_ = energy.to(device, x.dtype)
        if not first:
            sums = RegressionSums(**self.sums_).plus(sums)
        self.sums_ = vars(sums)
        alpha = torch.as_tensor(self._strength(target.shape[1]), dtype=torch.float64)
        assert isinstance(self.energy_, SquaredEnergy)
        from_sums(self.energy_, sums, alpha, self.positive)
        self.history_ = History(n_iter=1, converged=True, solver="LeastSquares", stop="closed form")
        self.n_iter_ = 1
        for name, value in self._learned(self.energy_).items():
            setattr(self, name, value)
        return self
