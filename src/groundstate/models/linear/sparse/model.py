"""What the lasso and the elastic net have in common."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.basic import SquaredEnergy
from groundstate.learn import L1, L2, ElasticNet, LeastSquares, Naive
from groundstate.learn.solvers.lasso.coordinate_descent import CoordinateDescent
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_part
from groundstate.models.linear.paths import enet_path
from groundstate.models.roles import EnergyRegressor

MAX_ITER = 1000


class SparseLinearRegressor(EnergyRegressor):
    """A linear squared energy whose weights are pulled to zero.

    Parameters
    ----------
    alpha : float
        Strength of the penalty; the intercept is not penalised. 0 is least squares.
    tol : float
        Duality gap at the end, relative to the mean square of the centred target.
    positive : bool
        Allow no weight below zero.
    device : str or torch.device
        Where predictions are computed; the fit itself runs on the CPU.
    eps : float
        Smallest alpha of the path, relative to the largest.
    alphas : int or array
        How many values along the path, or the values themselves.
    cv : int, splitter, iterable or None
        How many folds (None is 5) of rows in their order, as in scikit-learn, a splitter, or pairs of
        indices. ``groundstate.evaluate.folds`` gives pairs that keep equal rows together.

    Attributes
    ----------
    energy_ : SquaredEnergy
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "selection": [StrOptions({"cyclic", "random"})],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
    }

    _runs_on: Any = "answers"  # coordinate descent is compiled for the CPU
    _accept_sparse: ClassVar[bool | str] = "csr"
    _column_is_flat: ClassVar[bool] = True
    coef_ = output_part("W")
    intercept_ = output_part("b")
    fit_intercept: bool
    max_iter: Any
    tol: float
    positive: bool
    precompute: Any
    path = staticmethod(enet_path)

    def _penalised(
        self, X: Tensor, y: Tensor, weight: Tensor | None, alpha: float, l1_ratio: float
    ) -> Plan:
        """The parts for one strength; without an L1 part the closed form is the better solver."""
        energy = SquaredEnergy(X.shape[1], y.shape[1], bias=self.fit_intercept)
        strength = alpha * (float(len(X)) if weight is None else float(weight.sum()))
        if strength == 0:
            warnings.warn(
                "With alpha=0, this is least squares; use LinearRegression",
                UserWarning,
                stacklevel=7,
            )
        if strength * l1_ratio == 0 and not self.positive:
            ridge = strength * (1 - l1_ratio)
            dense = X.to_dense() if X.layout == torch.sparse_csr else X
            return Plan(
                energy=energy, rule=Naive(), solver=LeastSquares(),
                penalty=L2(ridge) if ridge else None, data={"x": dense, "y": y},
            )  # fmt: skip
        solver = CoordinateDescent(
            max_iter=self.max_iter or MAX_ITER, tol=self.tol, positive=self.positive,
            precompute=self._gram(),
        )  # fmt: skip
        penalty = L1(strength) if l1_ratio == 1 else ElasticNet(strength, l1_ratio)
        return Plan(energy=energy, rule=Naive(), solver=solver, penalty=penalty)

    def _gram(self) -> Any:
        """True where the whole Gram matrix is asked for, else "auto"."""
        asked = self.precompute
        return True if np.ndim(asked) == 2 or (not isinstance(asked, str) and asked) else "auto"

    def _go_on(self, energy: Energy) -> None:
        """Begin at the weights of the last fit, where it had the same shape."""
        last: Any = getattr(self, "energy_", None)
        weights: Any = energy.W
        if last is not None and last.W.shape == weights.shape:
            with torch.no_grad():
                weights.copy_(last.W)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        learned: dict[str, Any] = {}
        found = getattr(self, "history_", None)
        if found is not None and "dual_gap" in found.extra:
            gaps, epochs = found.extra["dual_gap"], found.extra["epochs"]
            learned["dual_gap_"] = gaps[0] if self._flat_target else gaps
            learned["n_iter_"] = max(1, int(max(epochs)))
        return learned

    @property
    def sparse_coef_(self) -> csr_matrix:
        """``coef_`` as a sparse matrix, ``(1, n_features)`` or ``(n_targets, n_features)``."""
        return csr_matrix(self.coef_)
