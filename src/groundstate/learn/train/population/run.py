"""One run of a population: steps, schedules, stops, checkpoints."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.dropout import keyed_dropout, plain_dropouts
from groundstate.compute.foreign.torch import BatchNorm
from groundstate.compute.population.optimizers import Adam, StackedOptimizer, optimizer_named
from groundstate.compute.population.stack import Population
from groundstate.compute.population.training import Step
from groundstate.compute.random import seeded
from groundstate.compute.thread_policy import for_steps
from groundstate.energy.base import Energy
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn.base import History, Rule
from groundstate.learn.penalties.norms import penalised
from groundstate.learn.train.guard import too_few_to_normalise
from groundstate.learn.train.population.dense import Objective, dense_program
from groundstate.learn.train.population.each import Each
from groundstate.learn.train.population.feed import Fed, PopulationFeed
from groundstate.learn.train.population.parts import Parts
from groundstate.learn.train.population.steps import parts_of
from groundstate.learn.train.population.stop import Judged, Plateaus, Validation
from groundstate.learn.train.schedules import resolve
from groundstate.learn.train.stochastic import Stochastic
from groundstate.store import Checkpoints

_NUMBERS = 2**24  # activations of one layer in a validation pass


class PopulationRun:
    """Members of one shape, trained as one program."""

    def __init__(
        self,
        energies: Sequence[Energy],
        data: Mapping[str, Tensor],
        rule: Rule,
        solver: Stochastic,
        each: Each,
        weights: Sequence[Tensor | None],
        validation: Tensor | None,
        patience: int,
        place: torch.device,
        capture: bool,
        backend: str,
        rest: Plateaus | None = None,
    ) -> None:
        self.energies, self.data, self.solver, self.each = energies, data, solver, each
        self.dtype = energies[0].placement()[1]
        self.feed = PopulationFeed(data, weights, each.keys, solver.batch_size, self.dtype)
        self.validation_weight, self.patience = validation, patience
        self.plateaus = rest or Plateaus(len(energies), solver.tol, solver.patience)
        bare = not any(True for _ in (*rule.parameters(), *rule.buffers()))
        one = copy.deepcopy(rule)
        with ExitStack() as stack:
            if plain_dropouts(energies[0]):
                for energy, key in zip(energies, each.keys, strict=True):
                    stack.enter_context(keyed_dropout(energy, key.fold("mask")))
            members = [Objective(e, one if bare else copy.deepcopy(rule)) for e in energies]
            self.population = Population(members, place)
            written = dense_program(self.population, energies[0], one, data)
            self.dense = written if backend == "auto" else None
        self.population.skeleton.train()
        self._check_norms()
        self.optimizer = self._optimizer()
        self.together: Parts | None = None
        self.step = self._step(capture)
        self.histories = [History(solver="Stochastic") for _ in energies]
        self.epoch = self.done = 0  # finished epochs, finished steps of this one
        self.losses: list[Tensor] = []
        self.parts: list[Tensor] = []

    # --- pieces --------------------------------------------------------------------------

    def _check_norms(self) -> None:
        norms = any(isinstance(m, BatchNorm) for m in self.energies[0].modules())
        if norms and not self.feed.even:
            raise Unsupported(
                "members with batch normalisation need batches of one size: give them the same total "
                "weight, or use batch_size=None"
            )

    def _optimizer(self) -> StackedOptimizer:
        flat, each = self.population.flat, self.each
        name = getattr(self.solver.optimizer, "__name__", str(self.solver.optimizer))
        settings: dict[str, Any] = {}
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

    def _step(self, capture: bool) -> Callable[[Any, Any, Any], Tensor] | None:
        """One step of all members; None where ``Parts`` does many of them at a time."""
        each, population = self.each, self.population
        names = {f"energy.{name}" for name, _, _ in penalised(self.energies[0])}
        totals = np.array(self.feed.totals)
        ridge = np.array(each.strength) / totals if any(each.strength) else None
        lasso = np.array(each.l1) / totals if any(each.l1) else None
        dense, optimizer = self.dense, self.optimizer
        targets = self.plateaus.targets
        if dense is not None and dense.compiled:
            rows = min(self.feed.n, self.solver.batch_size or self.feed.n)
            self.together = parts_of(dense, optimizer, ridge, lasso, names, dict(self.data), rows)
            for part in (self.together, *getattr(self.together, "parts", ())):
                part.targets = targets
            return None

        def loss(params: Any, buffers: Any, batch: Any, weight: Any) -> Tensor:
            result: Tensor = population.call(params, buffers, batch, weight)
            return result

        def work(rows: Any, weight: Any, grad: Tensor) -> Tensor:
            batch = self._rows(rows)
            if dense is not None:
                return dense(batch["x"], batch["y"], weight, population.views(grad))
            shared = rows is None or rows.ndim == 1
            try:
                losses = population.losses(loss, batch, weight, shared)
            except ValueError as error:
                one = {name: v if shared else v[0] for name, v in batch.items()}
                told = too_few_to_normalise(error, one, self.solver.batch_size, drops=False)
                raise (error if told is None else told) from None
            population.gradient(losses, grad)
            return losses.detach()

        self.loss = loss
        if lasso is not None:
            optimizer.lasso = self._matrix(lasso, names)
        pull = None if ridge is None else self._matrix(ridge, names)
        step = Step(population, loss, optimizer, capture=capture, ridge=pull, work=work)

        def general(rows: Any, weight: Any, mask: Any) -> Tensor:
            if targets == 1:
                return taken(rows, weight, mask)
            flat = population.flat
            pulls = 0.0 if pull is None else 0.5 * torch.linalg.vecdot(pull * flat, flat)
            return (taken(rows, weight, mask) - pulls) / targets + pulls

        def taken(rows: Any, weight: Any, mask: Any) -> Tensor:
            if mask is None:
                return step(rows, weight)
            state = [*optimizer.state(), *population.buffers.values()]
            before = [t.clone() for t in state]
            losses = step(rows, weight)
            for tensor, saved in zip(state, before, strict=True):
                if tensor.ndim:  # the count of the fused step is not used by uneven members
                    keep = mask.view(-1, *[1] * (tensor.ndim - 1))
                    torch.where(keep, tensor, saved, out=tensor)
            return losses

        return general

    def _matrix(self, scale: Any, names: set[str]) -> Tensor:
        """A strength per member as a strength per parameter.  # (P, D)"""
        matrix = torch.zeros_like(self.population.flat)
        column = torch.from_numpy(scale).to(matrix)
        for name, view in self.population.views(matrix).items():
            if name in names:
                view += column.view(-1, *[1] * (view.ndim - 1))
        return matrix

    def _rows(self, rows: Tensor | None) -> dict[str, Tensor]:
        data = self.data
        if rows is None:
            return dict(data)
        if rows.ndim == 1:
            return {name: v.index_select(0, rows) for name, v in data.items()}
        flat = rows.reshape(-1)  # index_select is several times quicker than v[rows]
        return {
            name: v.index_select(0, flat).view(*rows.shape, *v.shape[1:])
            for name, v in data.items()
        }

    # --- the loop ------------------------------------------------------------------------

    def run(self, files: Checkpoints | None = None, every: int | None = None) -> list[History]:
        """Train; with files, go on from the newest and write at epochs and every so many steps."""
        solver, population = self.solver, self.population
        size = len(population)
        rows = solver.batch_size or self.feed.n
        # a step is some eight products, and each must be large enough to share
        macs = rows * sum(p[0].numel() for p in population.params.values() if p.ndim > 2) * size / 8
        held = self.validation_weight
        self.validation = None if held is None else Validation(held, self.patience, population)
        self.good = population.flat.clone()  # at the start of the epoch
        found = None if files is None else files.latest(device=str(population.flat.device))
        if found is not None:
            self.load(found.state)
        place = population.flat.device
        paced = for_steps(macs, place) if self.together is None else self.together.running()
        with paced, seeded(self.each.keys[0].fold("noise")):
            while self.epoch < solver.max_epochs and bool(self.optimizer.active.any()):
                self._epoch(files, every)
        if self.validation is not None:
            self.validation.give_back(population)
        if isinstance(self.plateaus, Judged) and self.plateaus.copies is not None:
            self.plateaus.copies.give_back(population)
        self._write_back()
        for history in self.histories:
            history.stop = history.stop or "max_epochs"
        return self.histories

    def _epoch(self, files: Checkpoints | None, every: int | None) -> None:
        start = time.perf_counter()
        if self.done == 0:
            self.good.copy_(self.population.flat)
        rates = self._rates() if self.scheduled else None
        size, place = len(self.population), self.population.flat.device
        counted: dict[int, Tensor] = {}
        for fed, losses in self._blocks(rates, every if files is not None else None):
            for rows, weight, _ in fed:
                n = self.feed.n if rows is None else rows.shape[-1]
                if weight is None and n not in counted:
                    counted[n] = torch.full((size,), float(n), device=place)
                self.parts.append(counted[n] if weight is None else weight.sum(-1).expand(size))
            self.losses += losses
            self.done += len(fed)
            if files is not None and every is not None and self.done % every == 0:
                files.write(self._place(), self.state())
        self._close(time.perf_counter() - start)
        self.losses, self.parts = [], []
        self.epoch, self.done = self.epoch + 1, 0
        if files is not None:
            files.write(self._place(), self.state())

    def _blocks(
        self, rates: Tensor | None, every: int | None
    ) -> Iterator[tuple[list[Fed], Sequence[Tensor]]]:
        """Steps of this epoch and their losses, single or many at a time."""
        feed = self.feed.epoch(self.epoch, self.done)
        if self.together is not None:
            for fed, losses in self.together.blocks(feed, self.done, every, rates):
                yield fed, losses.unbind()
            return
        assert self.step is not None
        for given in feed:
            if rates is not None:
                self.optimizer.pace(rates[self.done])
            yield [given], [self.step(*given)]

    def _place(self) -> int:
        return self.epoch * max(1, self.feed.steps) + self.done

    def _rates(self) -> Tensor:
        """Step sizes of this epoch.  # (K, P, 1)"""
        total, steps = self.feed.steps * self.solver.max_epochs, self.feed.steps
        first = self.epoch * steps
        table: dict[int, list[float]] = {}
        for schedule in self.each.schedule:
            if id(schedule) not in table:
                factor = resolve(schedule, total)
                table[id(schedule)] = [factor(first + k) for k in range(steps)]
        factors = torch.tensor([table[id(s)] for s in self.each.schedule], dtype=torch.float64)
        rates = factors.T * torch.tensor(self.each.lr, dtype=torch.float64)
        return rates.unsqueeze(2).to(self.optimizer.lr)

    def _close(self, seconds: float) -> None:
        """Bring the epoch's numbers to the host: its only synchronisation."""
        losses = torch.stack(self.losses).double()  # (K, P)
        parts = torch.stack(self.parts).double()
        took = torch.where(parts > 0, losses, 0.0)
        objective = ((took * parts).sum(0) / parts.sum(0)).cpu()
        wrong = (~losses.isfinite()) & (parts > 0)
        running, bad = self.optimizer.active[:, 0].cpu(), wrong.any(0).cpu()
        failed = bad & running
        values = objective.tolist()
        live = (running & ~failed).nonzero()[:, 0].tolist()
        for i in live:
            history = self.histories[i]
            history.n_iter += 1
            history.objective.append(values[i])
            history.seconds.append(seconds)
        for i in failed.nonzero()[:, 0].tolist():
            step = int(wrong[:, i].int().argmax())
            self.histories[i].n_iter += 1
            self.histories[i].stop = (
                f"the loss became {float(losses[step, i])} in step {step} of epoch "
                f"{self.epoch}; lower lr={self.each.lr[i]}, set clip, or scale the inputs"
            )
        if bool(failed.any()):
            lost = failed.to(self.population.flat.device)
            self.population.flat.copy_(torch.where(lost[:, None], self.good, self.population.flat))
        if self.validation is not None:
            scores = self._validate(self.validation.weight)
            finished = self.validation(scores, running & ~failed)
            self._note(live, scores)
        elif isinstance(self.plateaus, Judged):
            self._write_back()
            scores = self.plateaus.scores(self.energies, running & ~failed)
            self._note(live, scores)
            finished = self.plateaus.judge(scores, self.population)
        else:
            finished = self.plateaus(objective)
        for i in (finished & running & ~failed).nonzero()[:, 0].tolist():
            self.histories[i].converged = True
            self.histories[i].stop = "plateau"
        done = failed | finished
        if bool((done & running).any()):
            self.optimizer.stop(done.to(self.population.flat.device))

    def _note(self, live: Sequence[int], scores: Tensor) -> None:
        values = scores.tolist()
        for i in live:
            self.histories[i].extra.setdefault("validation", []).append(values[i])

    @torch.no_grad()
    def _validate(self, weight: Tensor) -> Tensor:
        """Each member's loss on its held-out rows, without dropout.  # (P,) on the host"""
        population = self.population
        widest = max([v.shape[1] for v in population.params.values() if v.ndim > 1], default=1)
        chunk = max(1, _NUMBERS // (len(population) * widest))
        total = torch.zeros(len(population), dtype=torch.float64, device=weight.device)
        population.skeleton.eval()
        for at in range(0, self.feed.n, chunk):
            rows = torch.arange(at, min(self.feed.n, at + chunk), device=weight.device)
            batch, part = self._rows(rows), weight[:, at : at + chunk].contiguous()
            if self.dense is not None:
                mean = self.dense.losses(batch["x"], batch["y"], part)
            else:
                mean = population.losses(self.loss, batch, part)
            total += torch.where(part.sum(1) > 0, mean * part.sum(1), 0.0)
        population.skeleton.train()
        return (total / weight.double().sum(1)).cpu()

    def _write_back(self) -> None:
        self.population.write_back(self.energies, "energy.")

    # --- exact resume --------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything needed to go on to the same bits."""
        histories = [
            [h.objective, h.seconds, h.n_iter, h.converged, h.stop, h.extra] for h in self.histories
        ]
        return {
            "members": len(self.population),
            "optimizer": [t.clone() for t in self.optimizer.state()],
            "active": self.optimizer.active,
            "buffers": dict(self.population.buffers),
            "good": self.good,
            "losses": torch.stack(self.losses) if self.losses else None,
            "parts": torch.stack(self.parts) if self.parts else None,
            "place": [self.epoch, self.done],
            "histories": histories,
            "plateaus": self.plateaus.state(),
            "validation": None if self.validation is None else self.validation.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        if state.get("members") != len(self.population):
            raise ShapeError(
                f"the checkpoint holds {state.get('members')} members, this population has "
                f"{len(self.population)}; resume with the grid that was begun, or use a new folder"
            )
        for tensor, saved in zip(self.optimizer.state(), state["optimizer"], strict=True):
            tensor.copy_(saved)
        self.optimizer.active.copy_(state["active"])
        self.optimizer.masked = not bool(self.optimizer.active.all())
        for name, saved in state["buffers"].items():
            self.population.buffers[name].copy_(saved)
        self.good.copy_(state["good"])
        device = self.population.flat.device
        self.losses = [] if state["losses"] is None else list(state["losses"].to(device))
        self.parts = [] if state["parts"] is None else list(state["parts"].to(device))
        self.epoch, self.done = state["place"]
        for history, saved in zip(self.histories, state["histories"], strict=True):
            objective, seconds, history.n_iter, history.converged, history.stop, extra = saved
            history.objective, history.seconds = list(objective), list(seconds)
            history.extra = {name: list(v) for name, v in extra.items()}
        self.plateaus.load(state["plateaus"], self.population)
        if self.validation is not None:
            self.validation.load(state["validation"])


def files_of(path: str | Path | None, group: int) -> Checkpoints | None:
    """The folder of one group's checkpoints."""
    return None if path is None else Checkpoints(Path(path) / f"group-{group}")


__all__ = ["Each", "PopulationRun", "files_of"]
