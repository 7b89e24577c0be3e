r"""The two halves of EM: statistics of completed data, and θ from them."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.errors import NotConverged
from groundstate.learn.base import Batch, Problem, Rule, Solver, Terms
from groundstate.learn.penalties.norms import L2, plain_l2
from groundstate.learn.posterior.hidden import Completion
from groundstate.learn.posterior.hidden_bound import BoundCompletion
from groundstate.learn.rules.inner import free_energy_of, theta_free
from groundstate.learn.rules.softmin import SoftMin

HELD = "held distribution"  # column of the completed data that stands for q


def names_of(problem: Problem) -> tuple[str, ...]:
    """The names in the data; of a re-readable stream, those of its first batch."""
    if problem.is_resident:
        return problem.names
    return tuple(k for k in next(iter(problem.data)) if k != "weight")


def completion_of(problem: Problem, latent: str) -> Completion:
    """How the hidden variable is completed: exactly, or by a distribution of the rule's family."""
    bound = getattr(problem.rule, "variational", None)
    if bound is None:
        return Completion(problem.energy, latent)
    return BoundCompletion(problem.energy, latent, bound)


def closed_reason(problem: Problem, latent: str) -> str | None:
    """Why θ does not follow from summed statistics, or None."""
    energy, rule = problem.energy, problem.rule
    name = type(energy).__name__
    if energy.ability("stats") is None or energy.ability("from_stats") is None:
        return f"{name} offers no stats and from_stats; name the M-step, such as inner=LBFGS()"
    if isinstance(rule, SoftMin):
        free = (*rule.contrasted(energy), latent)
        if not theta_free(energy, free, rule.T):
            return (
                f"the normaliser of {name} over {', '.join(energy.ordered(free))} depends on θ; "
                "name the M-step, such as inner=LBFGS()"
            )
    penalty = problem.penalty
    if penalty is not None and not (plain_l2(penalty) and takes_l2(energy)):
        return f"{name} has no closed form with the penalty {type(penalty).__name__}"
    return None


def takes_l2(energy: Energy) -> bool:
    """Whether ``from_stats`` knows an L2 penalty."""
    from_stats = energy.ability("from_stats")
    return from_stats is not None and "l2" in inspect.signature(from_stats).parameters


def contrast_of(problem: Problem, latent: str, batch: Batch) -> Tensor | float:
    r"""What the rule subtracts, :math:`-T\log Z`, ``(B,)`` or ``(1,)``; 0 for ``Naive``."""
    energy, rule = problem.energy, problem.rule
    if not isinstance(rule, SoftMin):
        return 0.0
    over = rule.contrasted(energy)
    free = energy.ordered((*over, latent))
    if rule.T == 1 and energy.normalised == frozenset(free):
        return 0.0
    known = {k: v for k, v in batch.items() if k not in over}
    return free_energy_of(energy, free, known, rule.T, None, None)


class MStep(ABC):
    """Collects completed rows of one pass, then moves θ."""

    def __init__(self, problem: Problem, latent: str) -> None:
        self.problem, self.latent = problem, latent
        self.complete = completion_of(problem, latent)
        self.T = 1.0
        self.sums: dict[str, Tensor] = {}

    def begin(self, T: float) -> None:
        """Forget the last pass."""
        self.T, self.sums = T, {}

    @abstractmethod
    def collect(self, batch: Batch, weight: Tensor | None) -> Tensor:
        """Keep what the M-step needs of these rows; their free energies F ``(B,)``."""

    @abstractmethod
    def finish(self) -> None:
        """Move θ with q held fixed."""

    @torch.no_grad()
    def add(self, batch: Batch, weight: Tensor | None) -> None:
        """One chunk of the E-step."""
        F = self.collect(batch, weight)
        self._accumulate("J", batch, weight, F)

    def _accumulate(self, name: str, batch: Batch, weight: Tensor | None, F: Tensor) -> None:
        J = (F - contrast_of(self.problem, self.latent, batch)).double()
        if weight is None:
            pair = torch.stack([J.sum(), J.new_tensor(float(len(J)))])
        else:
            w = weight.double()
            pair = torch.stack([J @ w, w.sum()])
        self.sums[name] = self.sums[name] + pair if name in self.sums else pair

    @torch.no_grad()
    def close(self) -> float:
        """Sum over shards; J of the pass."""
        self.sums = current().sum_dict(self.sums)
        return self._mean(self.sums.pop("J"))

    def _mean(self, pair: Tensor) -> float:
        total, weight = pair.tolist()
        if total != total or total == -float("inf"):
            raise FloatingPointError(
                f"the free energy of {type(self.problem.energy).__name__} became {total} in EM; "
                "look for NaN in the data or a component that collapsed on one row"
            )
        self.weight = weight
        penalty = self.problem.penalty
        if penalty is not None:
            total += float(penalty(self.problem.energy))
        return float(total / weight)

    @torch.no_grad()
    def between(self, held: list[tuple[Tensor, Tensor]], chunk_rows: int) -> float:
        """J at the θ of now under distributions held from before."""
        kept, self.sums = self.sums, {}
        chunks = self.problem.chunks(chunk_rows)
        for (column, entropy), (batch, weight) in zip(held, chunks, strict=True):
            J = self.complete.expected(batch, column, self.T) - self.T * entropy
            self._accumulate("J", batch, weight, J)
        J_now = self.close()
        self.sums = kept
        return J_now


class ClosedM(MStep):
    """θ from summed statistics: ``stats`` of completed rows, then ``from_stats``."""

    def __init__(self, problem: Problem, latent: str) -> None:
        super().__init__(problem, latent)
        stats, from_stats = problem.energy.ability("stats"), problem.energy.ability("from_stats")
        assert stats is not None and from_stats is not None
        self.stats: Callable[..., dict[str, Tensor]] = stats
        self.from_stats: Callable[..., None] = from_stats

    def collect(self, batch: Batch, weight: Tensor | None) -> Tensor:
        distribution, F = self.complete.distribution(batch, self.T)
        for k, v in self.stats(weight, **batch, **{self.latent: distribution}).items():
            name = f"stats {k}"
            self.sums[name] = self.sums[name] + v if name in self.sums else v
        return F

    def finish(self) -> None:
        self.set_theta({k.removeprefix("stats "): v for k, v in self.sums.items()})

    def set_theta(self, stats: dict[str, Tensor]) -> None:
        penalty = self.problem.penalty
        with torch.no_grad():
            if isinstance(penalty, L2):
                self.from_stats(stats, l2=penalty.strength)
            else:
                self.from_stats(stats)


class Completed(Rule):
    r""":math:`L = E_q[e] - R` with q held fixed. Lowers e on the completed data, raises e where the
    rule of the incomplete data does.
    """

    def __init__(self, problem: Problem, complete: Completion, T: float) -> None:
        super().__init__()
        self.problem, self.complete, self.T = problem, complete, T

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        rows = {k: v for k, v in batch.items() if k != HELD}
        positive = self.complete.expected(rows, batch[HELD], self.T)
        contrast = contrast_of(self.problem, self.complete.latent, rows)
        R = torch.as_tensor(contrast, device=positive.device, dtype=positive.dtype)
        return Terms(positive - R, lambda: (positive, R.expand_as(positive)))


class InnerM(MStep):
    """θ by some iterations of a solver on the completed data (generalised EM)."""

    def __init__(self, problem: Problem, latent: str, inner: Solver) -> None:
        super().__init__(problem, latent)
        self.inner = inner

    def begin(self, T: float) -> None:
        super().begin(T)
        self.columns: list[Tensor] = []

    def collect(self, batch: Batch, weight: Tensor | None) -> Tensor:
        column, _ = self.complete.held(batch, self.T)
        self.columns.append(column)
        return self.complete.distribution(batch, self.T)[1]

    def finish(self) -> None:
        problem = self.problem
        completed: dict[str, Any] = {**problem.resident, HELD: torch.cat(self.columns)}
        rule = Completed(problem, self.complete, self.T)
        own = Problem(problem.energy, rule, completed, problem.sample_weight, problem.penalty)
        own.key = problem.key.fold("inner")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)  # a few steps are all that is asked
            self.inner.run(own)
