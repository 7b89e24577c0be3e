r"""The run of a single fit: its steps, and what is read from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from operator import mul
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from groundstate.compute.dropout import keyed_dropout
from groundstate.compute.foreign.torch import foreach_lerp_
from groundstate.compute.random import GOLDEN, seeded
from groundstate.compute.thread_policy import for_steps
from groundstate.learn.base import Batch, Problem
from groundstate.learn.callbacks import Callback, Monitor
from groundstate.learn.stops import Patience
from groundstate.learn.train import guard as guard
from groundstate.learn.train import state as states
from groundstate.learn.train.capture import CapturedStep, captured_step
from groundstate.learn.train.checkpoint import Checkpoint
from groundstate.learn.train.compile import Compiled
from groundstate.learn.train.dense import WrittenStep, written_step
from groundstate.learn.train.engine import Engine
from groundstate.learn.train.feed import Feed, grouped
from groundstate.learn.train.fsdp import FullyShared, unfuse
from groundstate.learn.train.norms import synchronised
from groundstate.learn.train.optimizers import Update, couples_decay
from groundstate.learn.train.penalty import Regulariser
from groundstate.learn.train.precision import Precision
from groundstate.learn.train.schedules import Factor, resolve, watcher
from groundstate.learn.train.shards import Shards
from groundstate.learn.train.turns import Turns

if TYPE_CHECKING:
    from groundstate.learn.train.stochastic import Stochastic


class Training(Engine):
    """The run of one member: gradients in place, by whatever takes the step."""

    decays = True  # L2 may become the optimiser's weight decay

    def __init__(self, settings: Stochastic, problem: Problem) -> None:
        super().__init__(settings, problem)
        self.energy, self.rule = problem.energy, problem.rule
        self.device = self.energy.placement()[0]
        if problem.is_resident:
            guard.check_labels(self.energy, problem.resident)
        self.generator = problem.key.fold("noise").torch(self.device)
        self.feed = Feed(
            problem, settings.batch_size, replacement=settings.replacement,
            drop_last=settings.drop_last, bucket=settings.bucket,
        )  # fmt: skip
        self.per_epoch = -(-self.feed.steps // settings.accumulate)  # 0 when unknown
        self.shards = Shards()
        self.spread: FullyShared | None = None
        if settings.shard == "fsdp" and self.shards.world > 1:
            self.spread = FullyShared(self.energy, self.rule)
            self.energy = self.spread.work
        dtype = self.energy.placement()[1]
        self.precision = Precision(settings.precision, self.device, dtype)
        self.compiled = Compiled(self.energy, settings.compile)
        self.theta: list[Tensor] = [p for p in self.energy.parameters() if p.requires_grad]
        self._make_optimizers()
        self.plain = self.precision.half is None and not self.compiled.active
        self.mask = problem.key.fold("mask", self.shards.rank).low
        self.lent = states.global_generators(self.device)
        self.losses: list[Tensor] = []  # of the current epoch and not read yet, on the device
        self.values: list[float] = []  # of the current epoch, read
        self.weights: list[float] = []
        self.first = math.nan
        self.stop = Patience(tol=settings.tol, patience=settings.patience, relative=True)
        self.mean: list[Tensor] = []
        self.averaged = 0
        self.program: WrittenStep | CapturedStep | None = None
        self.written: WrittenStep | CapturedStep | None = None

    def _make_optimizers(self) -> None:
        settings, make = self.settings, self.settings.optimizer
        assert callable(make)
        self.penalty = self.problem.penalty
        clipped = settings.clip_norm is not None or settings.clip_value is not None
        self.omega = Regulariser(
            self.penalty,
            self.energy,
            self.feed.total_weight,
            decay=self.decays and not clipped and couples_decay(make),
            prox=settings.prox,
        )
        if self.spread is not None:
            self.omega.check_spread()
        self.turns = Turns(self.rule, self.energy, make, settings.lr)
        self.joint = self.turns.main()
        self.progress.learned = self.joint
        self.optimizer = make(self.omega.groups(self.joint), settings.lr)
        if self.spread is not None:
            unfuse(self.optimizer)
        self.bases = [float(g["lr"]) for g in self.optimizer.param_groups]
        self.update = Update(self.optimizer)
        self.plateau = watcher(settings.schedule)
        self.factor: Factor | None = None
        if settings.schedule is not None and self.plateau is None:
            self.factor = resolve(settings.schedule, max(1, self.per_epoch) * settings.max_epochs)
        self.applied = 1.0

    # --- the loop ------------------------------------------------------------------------

    def begin(self, stack: ExitStack) -> None:
        settings = self.settings
        self.was_training = self.energy.training
        self.energy.train()
        self.rule.train()
        n = stack.enter_context(for_steps(self._macs(), self.device))
        self.history.about = states.about(self, n)
        stack.enter_context(self.precision.products())
        stack.enter_context(synchronised(self.energy, settings.sync_norm))
        stack.enter_context(states.deterministic(settings.deterministic))
        key = self.problem.key.fold("mask")
        stack.enter_context(seeded(key))
        # one network drops the same units alone and in a population; shards drop their own
        own = key if self.shards.world == 1 else key.fold(self.shards.rank)
        stack.enter_context(keyed_dropout(self.energy, own, strict=False))
        self.moving = any(True for _ in self.energy.buffers())  # which a look must not change
        self.program = written_step(self) or captured_step(self)
        if self.spread is not None:
            stack.callback(self.spread.wake)

    def watching(self) -> list[Callback]:
        return [*self.problem.callbacks, *([self.plateau] if self.plateau else [])]

    def finish(self) -> None:
        if self.averaged:
            for p, mean in zip(self.theta, self.mean, strict=True):
                p.detach().copy_(mean)
            self.gather()
        self.problem.energy.train(self.was_training)
        self.history.about["skipped"] = self.precision.skipped

    def _macs(self) -> float:
        """Multiply-adds of a forward pass, roughly: every weight meets every row once."""
        rows = self.settings.batch_size or (self.problem.rows if self.problem.is_resident else 256)
        return float(rows) * sum(p.numel() for p in self.joint if p.ndim > 1)

    def steps(self, monitor: Monitor) -> Iterator[None]:
        run, many = self.progress, self.settings.accumulate
        self.terms: Any = None
        self.written = self.program if self.program and self.program.plain() else None
        # who looks at θ after every step sees it whole; a checkpoint gathers when it writes
        looking = any(not isinstance(c, Checkpoint) for c in monitor.steppers)
        if self.spread is not None and not looking:
            self.spread.sleep()
        batches = self.feed.epoch(run.epoch, run.step * many)
        for group in grouped(batches, many):
            if run.total_steps == 0:
                guard.check_outputs(self.energy, self.rule.events(group[0][0]))
            self.terms = self._step(*group[0]) if many == 1 else self._accumulated(group)
            self.advance()
            if monitor.steppers:
                run.loss, (run.batch, run.weight, _) = self.losses[-1], group[-1]
                if looking:
                    self.gather()
            if run.total_steps % self.settings.log_every == 0:
                self.read()
            yield

    def agree(self, stop: bool) -> bool:
        return self.shards.agree(stop, self.device)

    def settled(self, objective: float) -> bool:
        if self.settings.tol is None or not self.rule.is_objective or not self.stop(objective)[0]:
            return False
        self.history.converged = True
        self.history.stop = f"objective changed by less than tol={self.settings.tol}"
        return True

    # --- one step ------------------------------------------------------------------------

    def _step(self, batch: Batch, weight: Tensor | None, total: float) -> Any:
        self._prepare()
        if self.turns:
            self._play(True, batch, weight, total)
        objective, terms = self._forward(batch, weight, total)
        objective = self._penalised(objective)
        self._backward(objective)
        self._finish(objective.detach(), batch, weight, total)
        return terms

    def _accumulated(self, group: Sequence[tuple[Batch, Tensor | None, float]]) -> Any:
        """One step on several batches: each counts by its share of the weight."""
        self._prepare()
        if self.turns:
            self._play(True, *group[0])
        total = math.fsum(t for _, _, t in group)
        recorded: Tensor | None = None
        terms: Any = None
        for i, (batch, weight, part) in enumerate(group):
            objective, terms = self._forward(batch, weight, part)
            objective = objective * (part / total)
            if i == 0:
                objective = self._penalised(objective)
            self._backward(objective)
            recorded = objective.detach() if recorded is None else recorded + objective.detach()
        assert recorded is not None
        self._finish(recorded, *group[-1][:2], total)
        return terms

    def _prepare(self) -> None:
        run = self.progress
        if self.factor is not None or run.factor != self.applied:
            self._set_rate()
        # what modules draw from torch's global generator depends on the seed and the step alone
        seed = (self.mask + run.total_steps * GOLDEN) % 2**63
        for lent in self.lent:
            lent.manual_seed(seed)
        for p in self.joint:
            p.grad = None

    def _forward(
        self, batch: Batch, weight: Tensor | None, total: float
    ) -> tuple[Tensor, Callable[[], Any]]:
        found = None if self.written is None else self.written(batch, weight, total)
        if found is not None:  # the gradients are at θ; nothing to differentiate
            return found
        if self.plain:
            try:
                return self.rule.mean(self.energy, batch, weight, total, self.generator)
            except ValueError as error:
                advice = guard.too_few_to_normalise(error, batch, self.settings.batch_size)
                raise (error if advice is None else advice) from None
        rows = len(next(iter(batch.values())))
        try:
            with self.precision.autocast(), self.compiled.batch(rows):
                objective, terms = self.rule.mean(self.energy, batch, weight, total, self.generator)
        except Exception as error:
            advice = guard.too_few_to_normalise(error, batch, self.settings.batch_size)
            if advice is not None:
                raise advice from None
            if not self.compiled.active:
                raise
            self.compiled.give_up(error)
            self.plain = self.precision.half is None
            self.program = self.written = written_step(self)
            return self._forward(batch, weight, total)
        return objective if objective.dtype == torch.float64 else objective.float(), terms

    def _penalised(self, objective: Tensor) -> Tensor:
        apart = self.penalty is None or self.spread is not None
        term = None if apart else self.omega.differentiable()
        return objective if term is None else objective + self._shared(term)

    def _shared(self, value: Tensor) -> Tensor:
        """The part of one process in a value that all of them know."""
        return value if self.shards.world == 1 else value / self.shards.world

    def _backward(self, objective: Tensor) -> None:
        if not objective.requires_grad:  # a part without rows of this process
            return
        scaler = self.precision.scaler
        (objective if scaler is None else scaler.scale(objective)).backward()

    def _finish(self, objective: Tensor, batch: Batch, weight: Tensor | None, total: float) -> None:
        """From gradients to the next θ."""
        settings, scaler = self.settings, self.precision.scaler
        if self.feed.sharded and self.spread is None:  # else the backward pass has summed them
            self.shards.gradients(self.joint)
        if self.spread is not None and self.omega.gradient:
            objective = objective + self.omega.pull(None if scaler is None else scaler.scale)
        if scaler is not None and (settings.clip_norm or settings.clip_value):
            scaler.unscale_(self.optimizer)  # else the optimiser does it in its own pass
        if settings.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.joint, settings.clip_norm)
        if settings.clip_value is not None:
            torch.nn.utils.clip_grad_value_(self.joint, settings.clip_value)
        if self.penalty is not None:
            rest = self.omega.rest()
            objective = objective if rest is None else objective + self._shared(rest)
        if scaler is None:
            self.update()
        else:
            scaler.advance(self.update)
        if self.omega.proximal:
            self.omega.prox(self.optimizer)
        if self.turns:
            self._play(False, batch, weight, total)
        if settings.average is not None:
            self._accumulate()
        self.losses.append(objective)
        self.weights.append(total)

    def _play(self, before: bool, batch: Batch, weight: Tensor | None, total: float) -> None:
        """The turn of the rule's other players."""
        run, share = self.progress, None
        if self.feed.sharded:
            share = 1.0 if weight is None else float(weight.sum()) / total
        scale = run.lr / self.settings.lr
        self.turns.play(before, run.total_steps, batch, self.generator, scale, share)

    def gather(self) -> None:
        """Bring a spread θ back into the energy that callbacks and the caller see."""
        if self.spread:
            self.spread.gather()

    def _set_rate(self) -> None:
        run = self.progress
        self.applied = run.factor
        scale = run.factor
        if self.factor is not None:
            done = run.epoch * self.per_epoch + run.step if self.per_epoch else run.epoch
            scale *= self.factor(done)
        for group, base in zip(self.optimizer.param_groups, self.bases, strict=True):
            group["lr"] = base * scale
        run.lr = self.settings.lr * scale

    def _accumulate(self) -> None:
        assert self.settings.average is not None
        run = self.progress
        if run.epoch < (1 - self.settings.average) * self.settings.max_epochs:
            return
        values = [p.detach() for p in self.theta]
        self.averaged += 1
        self.mean = self.mean or [v.clone() for v in values]
        foreach_lerp_(self.mean, values, 1 / self.averaged)

    # --- reading -------------------------------------------------------------------------

    def read(self) -> None:
        """Bring the losses of the last steps to the host, and stop where one is not finite."""
        if not self.losses:
            return
        many = self.losses[0].ndim  # of several steps each
        stacked = torch.cat(self.losses) if many else torch.stack(self.losses)
        fresh: list[float] = self.shards.values(stacked).tolist()
        self.losses, before = [], len(self.values)
        self.values += fresh
        finite = list(map(math.isfinite, fresh))
        if all(finite):
            return
        skips = self.precision.scaler is not None and any(finite)
        if not skips:  # with loss scaling, a step that overflows is skipped
            self._stop_at(before + finite.index(False))

    def _stop_at(self, step: int) -> None:
        run, many = self.progress, self.settings.accumulate
        rows = self.feed.rows(run.epoch, step * many, many)
        raise guard.not_finite(self.values[step], step, run.epoch, rows, run.lr, self.saved)

    @property
    def saved(self) -> Any:
        """The newest checkpoint of this run, if it writes any."""
        found = (c.newest for c in self.problem.callbacks if isinstance(c, Checkpoint))
        return next((path for path in found if path is not None), None)

    def close(self, seconds: float) -> float:
        """Read the epoch's numbers, on all processes the same."""
        history, run = self.history, self.progress
        self.read()
        self.shards.buffers(self.energy)
        self.gather()
        losses, weights = self.values, self.weights
        self.values, self.weights = [], []
        history.objective += losses
        history.seconds.append(seconds)
        total = math.fsum(weights)
        run.examples += total
        if self.terms is not None:
            states.record(self, self.terms)
        if not all(map(math.isfinite, losses)):
            weights = [w if math.isfinite(v) else 0.0 for v, w in zip(losses, weights, strict=True)]
            losses = [v if math.isfinite(v) else 0.0 for v in losses]
            total = math.fsum(weights)
        objective = math.fsum(map(mul, losses, weights)) / total
        if self.rule.is_objective:
            self.first = objective if math.isnan(self.first) else self.first
            guard.check_progress(self.first, objective, run.epoch, self.settings.lr, self.saved)
        return objective

    def state(self) -> dict[str, Any]:
        return states.pack(self)

    def load(self, state: dict[str, Any]) -> None:
        states.unpack(self, state)
