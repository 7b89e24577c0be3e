"""What the two estimators of stochastic descent share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.learn import L1, L2, ElasticNet, History
from groundstate.learn import fit as learn
from groundstate.learn.base import Penalty
from groundstate.learn.solvers.online_numba import RATES, OnlineDescent, State
from groundstate.math.losses import PointLoss, loss_of
from groundstate.models.arrays import tensor
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.linear.coefficients import class_part, densify, sparsify
from groundstate.models.validation import further

RESIDUALS = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")


class SGDEstimator(EnergyEstimator):
    """A linear score, a loss of the table and a rate; ``fit`` and ``partial_fit``.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or None
    l1_ratio : float
        Share of the absolute values in "elasticnet".
    max_iter : int
        Epochs at most.
    tol : float or None
        Stop when the mean loss has not fallen by this for ``n_iter_no_change`` epochs.
    shuffle : bool
        A fresh order of the rows each epoch.
    validation_fraction : float
        The share that is held out then.
    n_iter_no_change : int
    average : bool or int
        End at the mean of the weights over all visits, or from this many on.
    device : str or torch.device
        Where to predict; rows are visited on the CPU.

    Attributes
    ----------
    t_ : float, one more than the weight that was visited
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "learning_rate": [StrOptions(set(RATES))],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, None, None, closed="neither")],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
    }

    _accept_sparse: ClassVar[bool | str] = "csr"
    _runs_on: Any = "answers"  # solved on the CPU
    coef_ = class_part("W")
    intercept_ = class_part("b")
    sparsify, densify = sparsify, densify
    _state: State | None = None
    warm_start: bool
    random_state: Any
    t_: float

    def _loss(self: Any) -> PointLoss:
        options = {"huber": "delta", "epsilon_insensitive": "epsilon"}
        options["squared_epsilon_insensitive"] = "epsilon"
        name = options.get(self.loss)
        return loss_of(self.loss, **({name: self.epsilon} if name else {}))

    def _solver(self: Any, **given: Any) -> OnlineDescent:
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise ValueError(
                "learning_rate='optimal' divides by alpha, got alpha=0; use learning_rate='constant' "
                "or 'invscaling' with eta0, or a positive alpha"
            )
        how = {
            "rate": self.learning_rate, "eta0": self.eta0, "power": self.power_t,
            "max_iter": self.max_iter, "tol": self.tol, "patience": self.n_iter_no_change,
            "shuffle": self.shuffle, "average": self.average,
            "validation": self.validation_fraction if self.early_stopping else 0.0,
        }  # fmt: skip
        return OnlineDescent(**{**how, **given})

    def _prior(self: Any, total: float, twice: bool = False) -> Penalty | None:
        """α on the mean loss; two rows ±θ/2 of class energies have half the square of θ."""
        strength = self.alpha * total
        if self.penalty is None or strength == 0:
            return None
        ridge = (2.0 if twice else 1.0) * strength
        if self.penalty == "l2":
            return L2(ridge)
        if self.penalty == "l1":
            return L1(strength)
        share = self.l1_ratio * strength, (1 - self.l1_ratio) * ridge
        return ElasticNet(sum(share), share[0] / sum(share))

    def _plan(self: Any, d: int, total: float, state: State | None, **given: Any) -> Plan:
        raise TypeError(f"{type(self).__name__} must define _plan")

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self._state = State()
        total = float(X.shape[0] if weight is None else weight.double().sum())
        plan = self._plan(X.shape[1], total, self._state)
        last: Any = getattr(self, "energy_", None) if self.warm_start else None
        own: Any = plan.energy
        if last is not None and last.config() == own.config():
            plan.energy.load_state_dict(last.state_dict())
        return plan

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        assert self._state is not None
        self.t_ = self._state.t
        return self

    def _part(self, X: Any, y: Any, sample_weight: Any, first: bool) -> Self:
        """One epoch over further rows, from where the weights are."""
        X_, y_ = further(self, X, y, first)
        target, attributes = self._part_target(np.asarray(y_))
        weight = self._row_weight(target, self._checked_weight(sample_weight, X_))
        total = float(X_.shape[0] if weight is None else weight.sum())
        host = torch.device("cpu")
        if first:
            for name, value in attributes.items():
                setattr(self, name, value)
            self._state, self.n_iter_ = State(), 0
            self.history_ = History(solver="OnlineDescent")
        if self._state is None:  # after a load: from the weights, which are all that is kept
            self._state = State(t=self.t_)
        once = {"max_iter": 1, "validation": 0.0, "quiet": True}
        plan = self._plan(X_.shape[1], total, self._state, **once)
        x = tensor(X_, host)
        if first:
            self.energy_ = plan.energy.to(dtype=x.dtype)
        x = x.to(self.energy_.placement()[1])
        yt = tensor(target, host)
        found = learn(
            self.energy_, {"x": x, "y": yt.to(x.dtype) if yt.is_floating_point() else yt},
            plan.rule, plan.solver, sample_weight=None if weight is None else tensor(weight, host),
            penalty=plan.penalty,
            random_state=Key.of(self.random_state).fold("part", self.n_iter_),
        )  # fmt: skip
        self.n_iter_ += 1
        self.t_ = self._state.t
        self.history_.objective += found.objective
        self.history_.seconds += found.seconds
        for name, value in self._learned(self.energy_).items():
            setattr(self, name, value)
        return self

    def _part_target(self, y: Any) -> tuple[Any, dict[str, Any]]:
        raise TypeError(f"{type(self).__name__} must define _part_target")
