"""The run of many members by one program: steps, schedules, stops, state."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.dropout import keyed_dropout, plain_dropouts
from groundstate.compute.foreign.torch import BatchNorm
from groundstate.compute.population.named import optimizer_named
from groundstate.compute.population.optimizers import Adam, StackedOptimizer
from groundstate.compute.population.stack import Population
from groundstate.compute.population.training import Step
from groundstate.compute.random import seeded
from groundstate.compute.rows import take
from groundstate.compute.thread_policy import for_steps
from groundstate.energy.base import Energy
from groundstate.errors import NotApplicable, Unsupported
from groundstate.learn.base import History, Problem, Rule
from groundstate.learn.callbacks import Monitor
from groundstate.learn.penalties.norms import penalised
from groundstate.learn.train.checkpoint import Checkpoint
from groundstate.learn.train.engine import Engine
from groundstate.learn.train.guard import too_few_to_normalise
from groundstate.learn.train.optimizers import of_population, optimizer_of
from groundstate.learn.train.population import state as states
from groundstate.learn.train.population.dense import Objective, dense_program
from groundstate.learn.train.population.each import Each
from groundstate.learn.train.population.feed import Fed, PopulationFeed
from groundstate.learn.train.population.programs import Written, program_of
from groundstate.learn.train.population.steps import Steps
from groundstate.learn.train.population.stop import Stop
from groundstate.learn.train.precision import Precision
from groundstate.learn.train.schedules import resolve
from groundstate.learn.train.stochastic import Stochastic

_NUMBERS = 2**24  # activations of one layer in a validation pass


class PopulationRun(Engine):
    """Members of one shape, trained as one program."""

    def __init__(
        self,
        energies: Sequence[Energy],
        data: Mapping[str, Tensor],
        rule: Rule,
        solver: Stochastic,
        each: Each,
        weights: Sequence[Tensor | None],
        stop: Stop,
        place: torch.device,
        capture: bool,
        backend: str,
        checkpoint: Path | None = None,
        every: int | None = None,
        merge: bool = False,
    ) -> None:
        kept = () if checkpoint is None else (Checkpoint(checkpoint, every_steps=every),)
        super().__init__(solver, Problem(energies[0], rule, data, callbacks=kept, key=each.keys[0]))
        self.energies, self.data, self.each, self.every = energies, data, each, every
        self.dtype = energies[0].placement()[1]
        self.feed = PopulationFeed(data, weights, each.keys, solver.batch_size, self.dtype, merge)
        self.stop = stop
        bare = not any(True for _ in (*rule.parameters(), *rule.buffers()))
        one = copy.deepcopy(rule)
        with ExitStack() as stack:
            if plain_dropouts(energies[0]):
                for energy, key in zip(energies, each.keys, strict=True):
                    stack.enter_context(keyed_dropout(energy, key.fold("mask")))
            members = [Objective(e, one if bare else copy.deepcopy(rule)) for e in energies]
            self.population = Population(members, place)
            self.population.skeleton.train()
            written = partial(dense_program, self.population, energies[0], one, data)
            precision = Precision(solver.precision, place, energies[0].placement()[1])
            self.program = program_of(self.population, data, written, backend, precision)
        self._check_norms()
        self.optimizer = self._optimizer()
        self.compiled: Steps | None = None
        self._make_step(capture)
        self.histories = [History(solver="Stochastic") for _ in energies]
        self.losses: list[Tensor] = []
        self.parts: list[Tensor] = []
        self.good = self.population.flat.clone()  # at the start of the epoch
        stop.begin(self.population)

    # --- pieces --------------------------------------------------------------------------

    def _check_norms(self) -> None:
        norms = any(isinstance(m, BatchNorm) for m in self.energies[0].modules())
        if norms and self.feed.padded:
            raise Unsupported(
                "members with batch normalisation need batches of one size: give them the same total "
                "weight, or use batch_size=None"
            )

    def _optimizer(self) -> StackedOptimizer:
        flat, each = self.population.flat, self.each
        name, settings = of_population(optimizer_of(self.settings.optimizer))
        for key, values in {"lr": each.lr, **each.settings}.items():
            one = len(set(values)) == 1 and self.feed.even
            settings[key] = float(values[0]) if one else values
        optimizer = optimizer_named(name, flat, **settings)
        if isinstance(optimizer, Adam) and not self.feed.even:
            optimizer.paced = False  # its one count of steps is not that of members who sit out
        if each.clip is not None:
            optimizer.set_clip(each.clip)
        self.scheduled = any(s is not None for s in each.schedule)
        if self.scheduled and len({id(s) for s in each.schedule}) > 1:
            optimizer.set_lr(each.lr)
        return optimizer

    def _make_step(self, capture: bool) -> None:
        """What does a step of all members, or many of them at a time."""
        each, optimizer = self.each, self.optimizer
        names = {f"energy.{name}" for name, _, _ in penalised(self.energies[0])}
        totals = np.array(self.feed.totals)
        ridge = np.array(each.strength) / totals if any(each.strength) else None
        lasso = np.array(each.l1) / totals if any(each.l1) else None
        if isinstance(self.program, Written):
            rows = min(self.feed.n, self.settings.batch_size or self.feed.n)
            try:
                self.compiled = Steps(
                    self.program.dense, self.population, optimizer, ridge, lasso, names,
                    dict(self.data), rows, self.stop.targets,
                )  # fmt: skip
                return
            except NotApplicable:
                pass
        if lasso is not None:
            optimizer.lasso = self._matrix(lasso, names)
        pull = None if ridge is None else self._matrix(ridge, names)
        self.step = Step(
            self.population, self._work, optimizer, capture=capture, ridge=pull,
            targets=self.stop.targets,
        )  # fmt: skip

    def _work(self, rows: Tensor | None, weight: Tensor | None, grad: Tensor) -> Tensor:
        batch, shared = self._rows(rows), rows is None or rows.ndim == 1
        try:
            return self.program(batch, weight, grad, shared)
        except ValueError as error:
            one = {name: v if shared else v[0] for name, v in batch.items()}
            advice = too_few_to_normalise(error, one, self.settings.batch_size, drops=False)
            raise (error if advice is None else advice) from None

    def _matrix(self, scale: Any, names: set[str]) -> Tensor:
        """A strength per member as a strength per parameter.  # (P, D)"""
        matrix = torch.zeros_like(self.population.flat)
        column = torch.from_numpy(scale).to(matrix)
        for name, view in self.population.views(matrix).items():
            if name in names:
                view += column.view(-1, *[1] * (view.ndim - 1))
        return matrix

    def _rows(self, rows: Tensor | None) -> dict[str, Any]:
        """The rows of an index (B,) for all members, or (P, B); containers come as P of them."""
        if rows is None:
            return dict(self.data)
        if rows.ndim == 1:
            return {name: take(v, rows) for name, v in self.data.items()}
        flat = rows.reshape(-1)  # index_select is several times quicker than v[rows]
        return {
            name: v.index_select(0, flat).view(*rows.shape, *v.shape[1:])
            if isinstance(v, Tensor)
            else [take(v, own) for own in rows]
            for name, v in self.data.items()
        }

    # --- the loop ------------------------------------------------------------------------

    def begin(self, stack: ExitStack) -> None:
        population = self.population
        rows = self.settings.batch_size or self.feed.n
        # a step is some eight products, and each must be large enough to share
        macs = rows * sum(p.numel() for p in population.params.values() if p.ndim > 2) / 8
        place = population.flat.device
        paced = for_steps(macs, place) if self.compiled is None else self.compiled.running()
        stack.enter_context(paced)
        stack.enter_context(seeded(self.each.keys[0].fold("noise")))

    def alive(self) -> bool:
        return bool(self.optimizer.active.any())

    def steps(self, monitor: Monitor) -> Iterator[None]:
        run = self.progress
        if run.step == 0:
            self.good.copy_(self.population.flat)
        rates = self._rates(run.epoch, run.step) if self.scheduled else None
        size, place = len(self.population), self.population.flat.device
        counted: dict[int, Tensor] = {}
        for fed, losses in self._blocks(rates):
            for rows, weight, _ in fed:
                n = self.feed.n if rows is None else rows.shape[-1]
                if weight is None and n not in counted:
                    counted[n] = torch.full((size,), float(n), device=place)
                self.parts.append(counted[n] if weight is None else weight.sum(-1).expand(size))
            self.losses += losses
            self.advance(len(fed))
            yield

    def _blocks(self, rates: Tensor | None) -> Iterator[tuple[list[Fed], Sequence[Tensor]]]:
        """Steps of this epoch and their losses, single or many at a time."""
        run = self.progress
        feed = self.feed.epoch(run.epoch, run.step)
        if self.compiled is not None:
            for fed, losses in self.compiled.blocks(feed, run.total_steps, self.every, rates):
                yield fed, losses.unbind()
            return
        for k, given in enumerate(feed):
            if rates is not None:
                self.optimizer.pace(rates[k])
            yield [given], [self.step(*given)]

    def _rates(self, epoch: int, skip: int) -> Tensor:
        """Step sizes of the rest of an epoch; a member with fewer rows has steps of its own, and waits
        behind the last of them.  # (K, P, 1)
        """
        table: dict[tuple[int, int], list[float]] = {}
        members = [(id(s), n) for s, n in zip(self.each.schedule, self.feed.own_steps, strict=True)]
        for schedule, (mark, n) in zip(self.each.schedule, members, strict=True):
            if (mark, n) not in table:
                factor = resolve(schedule, max(1, n) * self.settings.max_epochs)
                places = (epoch * n + min(k, n - 1) for k in range(skip, self.feed.steps))
                table[mark, n] = [factor(place) for place in places]
        factors = torch.tensor([table[member] for member in members], dtype=torch.float64)
        rates = factors.T * torch.tensor(self.each.lr, dtype=torch.float64)
        return rates.unsqueeze(2).to(self.optimizer.lr)

    def close(self, seconds: float) -> float:
        """Bring the epoch's numbers to the host: its only synchronisation."""
        losses = torch.stack(self.losses).double()  # (K, P)
        parts = torch.stack(self.parts).double()
        self.losses, self.parts = [], []
        took = torch.where(parts > 0, losses, 0.0)
        objective = ((took * parts).sum(0) / parts.sum(0)).cpu()
        wrong = (~losses.isfinite()) & (parts > 0)
        running = self.optimizer.active[:, 0].cpu()
        failed = wrong.any(0).cpu() & running
        values, live = objective.tolist(), running & ~failed
        for i in live.nonzero()[:, 0].tolist():
            self.histories[i].objective.append(values[i])
            self.histories[i].seconds.append(seconds * len(losses))
        for i in failed.nonzero()[:, 0].tolist():
            step = int(wrong[:, i].int().argmax())
            self.histories[i].stop = (
                f"the loss became {float(losses[step, i])} in step {step} of epoch "
                f"{self.progress.epoch}; lower lr={self.each.lr[i]}, set clip, or scale the inputs"
            )
        for i in running.nonzero()[:, 0].tolist():
            self.histories[i].n_iter += 1
        if bool(failed.any()):
            lost = failed.to(self.population.flat.device)
            self.population.flat.copy_(torch.where(lost[:, None], self.good, self.population.flat))
        finished = self._watched(objective, live)
        for i in (finished & live).nonzero()[:, 0].tolist():
            self.histories[i].converged = True
            self.histories[i].stop = "plateau"
        done = failed | finished
        if bool((done & running).any()):
            self.optimizer.stop(done.to(self.population.flat.device))
        return float(objective[live].mean())

    def _watched(self, objective: Tensor, live: Tensor) -> Tensor:
        """Which members are done by what is watched.  # (P,)"""
        stop, values = self.stop, objective
        if stop.held is not None:
            values = noted = self.held_out(stop.held)
        elif stop.judges:
            self.population.write_back(self.energies, "energy.")
            noted = stop.scores(self.energies, live)
            values = -noted
        else:
            return stop(values, live, self.population)
        for i in live.nonzero()[:, 0].tolist():
            self.histories[i].extra.setdefault("validation", []).append(float(noted[i]))
        return stop(values, live, self.population)

    def settled(self, objective: float) -> bool:
        return not self.alive()

    @torch.no_grad()
    def held_out(self, weight: Tensor) -> Tensor:
        """Each member's loss on its held-out rows, without dropout.  # (P,) on the host"""
        population = self.population
        widest = max([v.shape[1] for v in population.params.values() if v.ndim > 1], default=1)
        chunk = max(1, _NUMBERS // (len(population) * widest))
        total = torch.zeros(len(population), dtype=torch.float64, device=weight.device)
        for at in range(0, self.feed.n, chunk):
            rows = torch.arange(at, min(self.feed.n, at + chunk), device=weight.device)
            part = weight[:, at : at + chunk].contiguous()
            mean = self.program.losses(self._rows(rows), part)
            total += torch.where(part.sum(1) > 0, mean * part.sum(1), 0.0)
        return (total / weight.double().sum(1)).cpu()

    def finish(self) -> None:
        if self.stop.best is not None:
            self.stop.best.give_back(self.population)
        self.population.write_back(self.energies, "energy.")
        for history in self.histories:
            history.stop = history.stop or "max_epochs"

    def state(self) -> dict[str, Any]:
        return states.pack(self)

    def load(self, state: dict[str, Any]) -> None:
        states.unpack(self, state)


__all__ = ["Each", "PopulationRun"]
