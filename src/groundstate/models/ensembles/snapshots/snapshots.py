"""What snapshot ensembles share: θ of one stochastic run, kept every few steps, as members."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.compose.committee import CommitteeClassEnergy, CommitteeMeanEnergy
from groundstate.errors import Unsupported
from groundstate.learn import Naive, SoftMin
from groundstate.learn import fit as learn
from groundstate.learn.base import History, Problem
from groundstate.learn.posterior.snapshots import Snapshots
from groundstate.learn.train.stochastic import Stochastic, sgd
from groundstate.models import settings
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.traits import Traits


@dataclass(frozen=True)
class SnapshotRun:
    """Learn a member's plan, then run SGD from there at a constant rate; every so many-th θ is kept."""

    plan: Plan
    n_snapshots: int
    every: int
    burn_in: int
    learning_rate: float
    batch_size: int

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, CommitteeClassEnergy | CommitteeMeanEnergy):
            return "it fits the members of a committee"
        inner = Problem(self.plan.energy, self.plan.rule, problem.data, penalty=self.plan.penalty)
        return Stochastic().reason_against(inner)

    def run(self, problem: Problem) -> History:
        own, committee = self.plan.energy, problem.energy
        assert isinstance(committee, CommitteeClassEnergy | CommitteeMeanEnergy)
        own.to(*committee.placement(dict(problem.resident)))
        data, weight, penalty = problem.resident, problem.sample_weight, self.plan.penalty
        learn(own, data, self.plan.rule, self.plan.solver, sample_weight=weight, penalty=penalty,
              random_state=problem.key.fold("start"))  # fmt: skip
        wanted = self.burn_in + self.every * self.n_snapshots
        steps = max(1, -(-problem.total_weight // self.batch_size))
        kept = Snapshots(self.every, self.n_snapshots, start=self.burn_in)
        solver = Stochastic(sgd, self.learning_rate, self.batch_size, tol=None,
                            max_epochs=int(-(-wanted // steps)))  # fmt: skip
        watchers = (_Stop(kept, wanted), *problem.callbacks)
        inner = Problem(own, self.plan.rule, data, weight, penalty, watchers, problem.key)
        committee.add(own)  # who watches sees the model as it is
        history = solver.run(inner)
        committee.empty()
        for m in range(len(kept.draws)):
            member = deepcopy(own)
            with torch.no_grad():
                for name, value in kept.draws.named(m).items():
                    member.get_parameter(name).copy_(value)
            committee.add(member)
        history.n_iter, history.solver, history.stop = wanted, "SnapshotRun", "steps"
        return history


class _Stop(Snapshots):
    """Snapshots that end the run after the last one."""

    def __init__(self, kept: Snapshots, wanted: int) -> None:
        self.inner, self.wanted = kept, wanted

    def on_begin(self, run: Any) -> None:
        self.inner.on_begin(run)

    def on_step(self, run: Any) -> bool:  # type: ignore[override]
        self.inner.on_step(run)
        return bool(run.total_steps >= self.wanted)

    def on_epoch(self, run: Any) -> None:
        return None

    def state(self) -> dict[str, Any]:
        return self.inner.state()

    def load(self, state: dict[str, Any]) -> None:
        self.inner.load(state)


class SnapshotModel(EnergyEstimator):
    r"""One model with gradients, many of its parameters.

    Parameters
    ----------
    n_snapshots : int
    every : int
        Steps between snapshots.
    burn_in : int
        Steps before the first.
    learning_rate : float or None
        None takes the largest at which no step of a linear model overshoots,
        :math:`1/(1 + \max_i\|x_i\|^2)`.
    batch_size : int
        Rows (units of weight) of a step.
    device : str or torch.device

    Attributes
    ----------
    members_ : list of energies, one per snapshot
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_snapshots": [Interval(Integral, 1, None, closed="left")],
        "every": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
    }

    traits = Traits(
        scaled_target=True,
        space={
            "n_snapshots": settings.Whole(5, 30),
            "burn_in": settings.Whole(5, 50, log=True),
            "every": settings.Whole(1, 20, log=True),
        },
    )

    _runs_on: Any = "cpu"  # the model that is stepped may be any
    energy_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_snapshots: int = 10,
        every: int = 10,
        burn_in: int = 20,
        learning_rate: float | None = None,
        batch_size: int = 32,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _base(self) -> Any:
        """The model unless one was given."""
        raise TypeError(f"{type(self).__name__} must define _base()")

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        base = self._base() if self.estimator is None else clone(self.estimator)
        classes = not y.is_floating_point()
        if not isinstance(base, EnergyEstimator):
            raise Unsupported(
                f"{type(base).__name__} has no energy with gradients to take snapshots of; use a "
                "model of groundstate such as LogisticRegression or Ridge"
            )
        if classes:
            base.classes_ = self.classes_
        base.n_features_in_ = X.shape[1]
        plan = base._build(X, y, weight)
        rate = self.learning_rate
        if rate is None:  # no step of a linear model overshoots: its curvature is at most this
            seen = X if weight is None else X[weight > 0]
            rate = 1.0 / (1.0 + float(seen.square().sum(1).max()))
        run = SnapshotRun(plan, self.n_snapshots, self.every, self.burn_in, rate, self.batch_size)
        if classes:
            return Plan(CommitteeClassEnergy(X.shape[1], len(self.classes_)), SoftMin(), run)
        return Plan(CommitteeMeanEnergy(X.shape[1], y.shape[1]), Naive(), run)

    @property
    def members_(self) -> list[Any]:
        """The kept models as energies."""
        return list(self.energy_.members)

    def __len__(self) -> int:
        return len(self.energy_.members)

    classes_: Any
