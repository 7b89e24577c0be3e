r"""Many energies of one shape learned as one tensor program.

Member p lowers its own objective :math:`J_p(\theta_p)` with its own step size, penalty, seed and row
weights. The members meet in one step because :math:`\nabla_\Theta \sum_p J_p(\theta_p)` has member
p's gradient in row p. The result is what P separate fits give.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.batches import Batches, stack_batches
from groundstate.compute.hashing import row_hash
from groundstate.compute.line import WeightLine
from groundstate.compute.optimizers import SGD, Adam, StackedOptimizer
from groundstate.compute.population import Population
from groundstate.compute.random import Key
from groundstate.compute.training import Step
from groundstate.energy.base import Energy
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn.base import History, Rule
from groundstate.learn.penalties import L2
from groundstate.learn.trainer import Stochastic, adam, sgd

OPTIMIZERS: dict[Any, Callable[..., StackedOptimizer]] = {adam: Adam, sgd: SGD}


class _Objective(nn.Module):
    """One member: its energy and the rule; the penalty is added by the step."""

    def __init__(self, energy: Energy, rule: Rule) -> None:
        super().__init__()
        self.energy, self.rule = energy, rule

    def forward(self, batch: Mapping[str, Tensor], weight: Tensor | None) -> Tensor:
        if weight is None:
            return self.rule.mean(self.energy, batch)[0]
        total = weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)
        return torch.dot(self.rule(self.energy, batch).loss, weight) / total


@dataclass
class _Stopper:
    """Early stopping of each member on its own held-out rows."""

    weight: Tensor  # (P, N)
    patience: int
    best: Tensor  # (P,)
    age: Tensor  # (P,) epochs since the best
    kept: Tensor  # (P, D)

    def __call__(self, values: Tensor, flat: Tensor, running: Tensor) -> Tensor:
        better = (values < self.best) & running
        self.best = torch.where(better, values, self.best)
        self.age = torch.where(better, 0, self.age + 1)
        self.kept = torch.where(better[:, None], flat, self.kept)
        return self.age >= self.patience


def fit_population(
    energies: Sequence[Energy],
    data: Mapping[str, Tensor],
    rule: Rule,
    solver: Stochastic | None = None,
    *,
    lr: Sequence[float] | None = None,
    strength: Sequence[float] | float = 0.0,
    sample_weight: Tensor | None = None,
    validation_weight: Tensor | None = None,
    patience: int = 10,
    random_state: Sequence[Any] | Any = None,
    device: str | torch.device | None = None,
    capture: bool = False,
) -> list[History]:
    r"""Learn P energies at once, in place; the same as P calls of ``fit`` with ``Stochastic``.

    Parameters
    ----------
    energies : the members, of one shape
    data : tensors by name, ``(N, *event)``, seen by all
    rule : an exact learning rule; each member has its own copy
    solver : ``Stochastic`` settings shared by all; ``optimizer`` is ``adam`` or ``sgd``
    lr : ``(P,)`` step sizes; None takes the solver's
    strength : one number or ``(P,)``: L2 penalty, as ``L2(strength)``
    sample_weight : ``(N,)`` or ``(P, N)``; a fold is a row of weights with zeros
    validation_weight : ``(P, N)``; when given, a member stops after ``patience`` epochs without a
        better held-out loss and gets its best parameters back
    random_state : one seed for all, or P of them
    device : where to train; None leaves the members where they are
    capture : record the step as a CUDA graph

    Returns
    -------
    one ``History`` per member, with the epoch objectives

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic
    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> members = [LinearEnergy(1, 2) for _ in range(3)]
    >>> histories = fit_population(
    ...     members, {"x": x, "y": torch.tensor([0, 1])}, SoftMin(),
    ...     Stochastic(max_epochs=5, tol=None), lr=[0.01, 0.1, 1.0], random_state=0)
    >>> [h.objective[-1] > 0.5 for h in histories]
    [True, False, False]
    """
    solver = solver or Stochastic()
    _check(energies, data, rule, solver)
    run = _Run(energies, data, rule, solver, lr, strength, sample_weight, random_state, device)
    return run.run(validation_weight, patience, capture)


def _check(
    energies: Sequence[Energy], data: Mapping[str, Tensor], rule: Rule, solver: Stochastic
) -> None:
    if not energies:
        raise ShapeError("a population needs at least one energy")
    rule.require(energies[0], data)
    if not rule.is_exact(energies[0], data):
        raise Unsupported(
            f"{type(rule).__name__} is not exact on {type(energies[0]).__name__}: a population "
            "shares no randomness between members; fit them one after the other"
        )
    if solver.optimizer not in OPTIMIZERS:
        raise Unsupported("a population is trained with optimizer=adam or sgd (groundstate.learn)")
    unknown = [n for n in ("clip", "average") if getattr(solver, n) is not None]
    if unknown:
        raise Unsupported(f"{' and '.join(unknown)} is not there for populations; leave it None")


class _Run:
    def __init__(
        self,
        energies: Sequence[Energy],
        data: Mapping[str, Tensor],
        rule: Rule,
        solver: Stochastic,
        lr: Sequence[float] | None,
        strength: Sequence[float] | float,
        sample_weight: Tensor | None,
        random_state: Sequence[Any] | Any,
        device: str | torch.device | None,
    ) -> None:
        p = len(energies)
        self.energies, self.solver = energies, solver
        place = torch.device(device) if device is not None else energies[0].placement()[0]
        self.data = {name: v.to(place) for name, v in data.items()}
        self.rows = next(iter(data.values())).shape[0]
        self.dtype = energies[0].placement()[1]
        self.weights = _per_member(sample_weight, p, self.rows)
        totals = [float(self.rows) if w is None else float(w.sum()) for w in self.weights]
        seeds: list[Any]
        if isinstance(random_state, Sequence):
            seeds = list(random_state)
            self.keys = [Key.of(seed) for seed in seeds]
        else:
            seeds = [random_state] * p
            self.keys = [Key.of(random_state)] * p  # one draw even when the seed is None
        strengths = [float(strength)] * p if isinstance(strength, float | int) else list(strength)
        for name, values in (("lr", lr or seeds), ("strength", strengths), ("random_state", seeds)):
            if len(values) != p:
                raise ShapeError(f"{name} has {len(values)} entries for {p} members")
        members = [_Objective(energy, copy.deepcopy(rule)) for energy in energies]
        self.population = Population(members, place)
        scale = [s / t for s, t in zip(strengths, totals, strict=True)]
        self.ridge = self._ridge(scale) if any(strengths) else None
        self.rates = torch.full((p,), solver.lr) if lr is None else torch.tensor(list(lr))
        self.shared = len(set(self.keys)) == 1 and (
            sample_weight is None or sample_weight.ndim == 1
        )
        self.lines = self._lines()

    def _ridge(self, scale: list[float]) -> Tensor:
        """The curvature of each member's penalty in each parameter.  # (P, D)"""
        ridge = torch.zeros_like(self.population.flat)
        views = self.population.views(ridge)
        column = torch.tensor(scale, dtype=ridge.dtype, device=ridge.device)
        for name, _, _ in L2().penalised(self.energies[0]):
            view = views[f"energy.{name}"]
            view += column.view(-1, *[1] * (view.ndim - 1))
        return ridge

    def _lines(self) -> list[WeightLine] | None:
        size = self.solver.batch_size
        largest = max(self.rows if w is None else float(w.sum()) for w in self.weights)
        if size is None or size >= largest:
            return None
        hashes = row_hash(*(v.reshape(len(v), -1) for v in self.data.values()))
        count = 1 if self.shared else len(self.weights)
        return [WeightLine(hashes, w) for w in self.weights[:count]]

    def _optimizer(self) -> StackedOptimizer:
        same = len(set(self.rates.tolist())) == 1 and self._even()
        lr: Any = float(self.rates[0]) if same else self.rates
        return OPTIMIZERS[self.solver.optimizer](self.population.flat, lr=lr)

    def _even(self) -> bool:
        """Whether all members have the same number of batches in an epoch."""
        if self.lines is None or self.shared:
            return True
        assert self.solver.batch_size is not None
        return len({math.ceil(li.total / self.solver.batch_size - 1e-9) for li in self.lines}) == 1

    def batches(self, epoch: int) -> Iterator[tuple[Any, Tensor | None, Tensor | None]]:
        """Batches with their weights and, where some members sit out, the mask of the others."""
        if self.lines is None:
            stacked = self._stacked_weights()
            yield self.data, stacked, None
            return
        device = self.population.flat.device
        assert self.solver.batch_size is not None
        per_line: list[Batches] = [
            line.batches(key.fold("epoch", epoch), self.solver.batch_size, device)
            for line, key in zip(self.lines, self.keys, strict=False)
        ]
        if self.shared:
            for rows, weight in per_line[0]:
                w = None if weight is None else weight.to(self.dtype)
                yield {k: v[rows] for k, v in self.data.items()}, w, None
            return
        rows, weights = stack_batches(per_line)  # (K, P, B)
        weights = weights.to(self.dtype)
        sits_out = (weights.sum(-1) == 0).any(1).tolist()
        for index, weight, uneven in zip(rows, weights, sits_out, strict=True):
            mask = weight.sum(-1) > 0 if uneven else None
            yield {k: v[index] for k, v in self.data.items()}, weight, mask

    def _stacked_weights(self) -> Tensor | None:
        if all(w is None for w in self.weights):
            return None
        device = self.population.flat.device
        if self.shared:
            assert self.weights[0] is not None
            return self.weights[0].to(device, self.dtype)
        assert all(w is not None for w in self.weights)
        return torch.stack([w for w in self.weights if w is not None]).to(device, self.dtype)

    def run(self, validation: Tensor | None, patience: int, capture: bool) -> list[History]:
        population, solver = self.population, self.solver
        optimizer = self._optimizer()
        shared = self.shared or self.lines is None

        def loss(params: Any, buffers: Any, batch: Any, weight: Any) -> Tensor:
            result: Tensor = population.call(params, buffers, batch, weight)
            return result

        step = Step(population, loss, optimizer, shared=shared, capture=capture, ridge=self.ridge)
        p = len(population)
        histories = [History(solver="Stochastic") for _ in range(p)]
        stopper = self._stopper(validation, patience)
        best, stale = torch.full((p,), math.inf, dtype=torch.float64), torch.zeros(p)
        for epoch in range(solver.max_epochs):
            start = time.perf_counter()
            self._set_rate(optimizer, epoch)
            objective = self._epoch(step, optimizer, epoch)
            running = optimizer.active[:, 0].cpu()
            seconds = time.perf_counter() - start
            for history, value, runs in zip(
                histories, objective.tolist(), running.tolist(), strict=True
            ):
                if runs:
                    history.objective.append(value)
                    history.seconds.append(seconds)
                    history.n_iter += 1
            done = torch.zeros(p, dtype=torch.bool)
            if stopper is not None:
                values = self._validate(loss, stopper.weight)
                done |= stopper(values, population.flat, optimizer.active[:, 0]).cpu()
            elif solver.tol is not None:
                enough = solver.tol * objective.abs().clamp_min(1.0)
                stale = torch.where(objective < best - enough, 0.0, stale + 1)
                best = torch.minimum(best, objective)
                done |= stale >= solver.patience
            if bool((done & running).any()):
                optimizer.stop(done.to(population.flat.device))
                for i in (done & running).nonzero()[:, 0].tolist():
                    histories[i].converged, histories[i].stop = True, "plateau"
                if not bool(optimizer.active.any()):
                    break
        if stopper is not None:
            population.flat.copy_(stopper.kept)
        self._write_back()
        return histories

    def _epoch(self, step: Step, optimizer: StackedOptimizer, epoch: int) -> Tensor:
        losses, weights = [], []
        p = len(self.population)
        for batch, weight, mask in self.batches(epoch):
            before = None if mask is None else [t.clone() for t in optimizer.state()]
            losses.append(step(batch, weight))
            if before is not None and mask is not None:
                for tensor, saved in zip(optimizer.state(), before, strict=True):
                    if tensor.ndim == 0:
                        continue  # a count of the fused step, which uneven members do not use
                    keep = mask.view(-1, *[1] * (tensor.ndim - 1))
                    torch.where(keep, tensor, saved, out=tensor)
            rows = float(next(iter(batch.values())).shape[0 if step.shared else 1])
            total = torch.full((p,), rows) if weight is None else weight.sum(-1)
            weights.append(total.to(losses[-1].device).expand(p))
        loss, w = torch.stack(losses).double(), torch.stack(weights).double()
        return ((loss * w).sum(0) / w.sum(0)).cpu()

    def _set_rate(self, optimizer: StackedOptimizer, epoch: int) -> None:
        if self.solver.schedule is not None:
            factor = self.solver.schedule(epoch / self.solver.max_epochs)
            optimizer.set_lr(self.rates * factor)

    def _stopper(self, validation: Tensor | None, patience: int) -> _Stopper | None:
        if validation is None:
            return None
        flat = self.population.flat
        p = len(self.population)
        if validation.shape != (p, self.rows):
            raise ShapeError(
                f"validation_weight must be ({p}, {self.rows}), got {tuple(validation.shape)}"
            )
        start = torch.full((p,), math.inf, device=flat.device, dtype=self.dtype)
        age = torch.zeros(p, device=flat.device)
        return _Stopper(validation.to(start), patience, start, age, flat.clone())

    @torch.no_grad()
    def _validate(self, loss: Any, weight: Tensor) -> Tensor:
        return self.population.losses(loss, self.data, weight)

    @torch.no_grad()
    def _write_back(self) -> None:
        for i, energy in enumerate(self.energies):
            for name, parameter in energy.named_parameters():
                parameter.copy_(self.population.params[f"energy.{name}"][i])


def _per_member(weight: Tensor | None, p: int, rows: int) -> list[Tensor | None]:
    if weight is None:
        return [None] * p
    if weight.shape == (rows,):
        return [weight] * p
    if weight.shape == (p, rows):
        return list(weight.unbind())
    raise ShapeError(f"sample_weight must be ({rows},) or ({p}, {rows}), got {tuple(weight.shape)}")


__all__ = ["fit_population"]
