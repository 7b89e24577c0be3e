"""Bayesian ridge regression."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.linear.bayesian import BayesianLinearEnergy
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.linear.evidence import EvidenceUpdates
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_part
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor")
class BayesianRidge(EnergyRegressor):
    r"""Linear regression that keeps the distribution of its weights and chooses its own penalty.

    .. math::
        w \sim N(0, \lambda^{-1}I), \quad y \mid x, w \sim N(w^\top x + b, \alpha^{-1}), \qquad
        S = (\lambda I + \alpha X^\top X)^{-1}, \quad m = \alpha SX^\top y, \qquad
        e(x, y) = -\log N(y;\, m^\top x + b,\, \alpha^{-1} + x^\top Sx) .

    λ and α maximise the evidence (MacKay's updates); x is taken about its mean.

    Parameters
    ----------
    max_iter : int, default=300
        Updates at most; 0 keeps ``alpha_init`` and ``lambda_init``.
    tol : float, default=1e-3
        Summed change of the weights at the end.
    alpha_1, alpha_2 : float, default=1e-6
        Shape and rate of the gamma prior of the precision of the noise.
    lambda_1, lambda_2 : float, default=1e-6
        The same for the precision of the weights.
    alpha_init, lambda_init : float, default=None
        Initial precisions; None is 1/Var(y), and 1.
    compute_score : bool, default=False
        Keep the log evidence of every update in ``scores_``.
    copy_X, verbose
        Accepted for scikit-learn's sake: rows are never overwritten.

    Attributes
    ----------
    coef_ : (n_features,) array, m
    intercept_ : float
    alpha_, lambda_ : float
    sigma_ : (n_features, n_features) array, S
    scores_ : array of log evidences
    X_offset_, X_scale_ : (n_features,) arrays
    energy_ : BayesianLinearEnergy

    Examples
    --------
    >>> from groundstate import BayesianRidge
    >>> X, y = [[1.0], [2.0], [3.0]], [2.0, 3.0, 5.0]
    >>> fixed = {"max_iter": 0, "alpha_init": 1.0, "lambda_init": 1.0, "fit_intercept": False}
    >>> model = BayesianRidge(**fixed).fit(X, y)
    >>> round(model.coef_[0] * 15), round(1 / model.sigma_[0, 0])  # 23/15 and 1/15
    (23, 15)
    """

    traits = Traits(
        space={name: settings.Real(1e-8, 1e-2, log=True) for name in ("alpha_1", "lambda_1")}
    )

    _runs_on: Any = "answers"  # the evidence is climbed on the CPU
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "alpha_1": [Interval(Real, 0, None, closed="left")],
        "alpha_2": [Interval(Real, 0, None, closed="left")],
        "lambda_1": [Interval(Real, 0, None, closed="left")],
        "lambda_2": [Interval(Real, 0, None, closed="left")],
        "alpha_init": [None, Interval(Real, 0, None, closed="neither")],
        "lambda_init": [None, Interval(Real, 0, None, closed="neither")],
        "compute_score": ["boolean"],
    }
    _multi_output: ClassVar[bool] = False

    def __init__(
        self,
        *,
        max_iter: int = 300,
        tol: float = 1e-3,
        alpha_1: float = 1e-6,
        alpha_2: float = 1e-6,
        lambda_1: float = 1e-6,
        lambda_2: float = 1e-6,
        alpha_init: float | None = None,
        lambda_init: float | None = None,
        compute_score: bool = False,
        fit_intercept: bool = True,
        copy_X: bool = True,
        verbose: Any = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        solver = EvidenceUpdates(
            self.max_iter, self.tol, self.alpha_1, self.alpha_2, self.lambda_1, self.lambda_2,
            self.alpha_init, self.lambda_init,
        )  # fmt: skip
        energy = BayesianLinearEnergy(X.shape[1], self.fit_intercept)
        return Plan(energy=energy, rule=NLL(), solver=solver)

    coef_ = output_part("W")
    intercept_ = output_part("b")

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, BayesianLinearEnergy)
        center = energy.center.cpu().numpy().copy()
        learned: dict[str, Any] = {
            "alpha_": float(energy.alpha),
            "lambda_": float(energy.lam),
            "sigma_": energy.S.cpu().numpy().copy(),
            "X_offset_": center,
            "X_scale_": np.ones_like(center),
            "scores_": np.empty(0),
        }
        if self.compute_score and hasattr(self, "history_"):
            learned["scores_"] = np.array(self.history_.extra["evidence"])
        return learned

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means, ``(n_samples,)``; with ``return_std`` also the spread of noise and weights."""
        x, home = self._rows(X)
        energy = self.energy_
        assert isinstance(energy, BayesianLinearEnergy)
        with answering(energy, x):
            mean = home.give(energy.mean(x)[:, 0])
            return (mean, home.give(energy.spread(x)[:, 0])) if return_std else mean
