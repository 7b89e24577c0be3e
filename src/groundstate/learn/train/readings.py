"""What a run finds out about itself: losses and terms, brought to the host when somebody looks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import mul
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from groundstate.learn.train import guard as guard

if TYPE_CHECKING:
    from groundstate.learn.train.run import Training

WAIT = 0.1  # seconds at most between two looks at numbers that nobody waits for


@dataclass
class _Epoch:
    """A finished epoch whose numbers are not all on the host yet."""

    number: int
    lr: float
    values: list[float]
    losses: list[Tensor]
    weights: list[float]
    terms: Tensor | None  # (2,)


class Readings:
    """The numbers of one run. Reading them waits for the device, so those of epochs that nobody looks
    at stay there for a while; when they are read, and checked, changes none of them.

    Attributes
    ----------
    losses : of the current epoch and not read yet, on the device; a number, or those of several steps
    values : of the current epoch, read
    weights : of the steps of the current epoch
    first : objective of the first epoch
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        self.losses: list[Tensor] = []
        self.values: list[float] = []
        self.weights: list[float] = []
        self.first = math.nan
        self._finished: list[_Epoch] = []
        self._looked = time.perf_counter()

    def add(self, loss: Tensor, weight: float) -> None:
        """Keep the loss of a step."""
        self.losses.append(loss)
        self.weights.append(weight)

    def keep(self, values: list[float], weights: list[float], terms: Tensor) -> None:
        """An epoch whose numbers are on the host, and that nobody waits for."""
        run = self.training.progress
        epoch = _Epoch(run.epoch, run.lr, [], [], weights, terms)
        self._take(epoch.values, values, epoch.number, epoch.lr)
        self._finished.append(epoch)

    def close(self, terms: Tensor | None, watched: bool) -> float:
        """End the epoch; its objective, NaN where nobody watches and it was not read yet."""
        run = self.training.progress
        self._finished.append(
            _Epoch(run.epoch, run.lr, self.values, self.losses, self.weights, terms)
        )
        self.values, self.losses, self.weights = [], [], []
        late = time.perf_counter() - self._looked > WAIT
        return self.read() if watched or late else math.nan

    def read(self) -> float:
        """Bring all that waits to the host, and stop where a loss is not finite; the objective of the
        last epoch that was finished, NaN where none was.
        """
        training, finished = self.training, self._finished
        waiting = [loss for epoch in finished for loss in epoch.losses] + self.losses
        found: Iterator[float] = iter(())
        if waiting:  # numbers, or each of several steps
            together = torch.cat(waiting) if waiting[0].ndim else torch.stack(waiting)
            found = iter(training.shards.values(together).tolist())
        kept = [epoch.terms for epoch in finished if epoch.terms is not None]
        terms = iter(torch.stack(kept).tolist() if kept else ())
        self._finished, self.losses, objective = [], [], math.nan
        for epoch in finished:
            fresh = list(islice(found, len(epoch.weights) - len(epoch.values)))
            self._take(epoch.values, fresh, epoch.number, epoch.lr)
            training.history.objective += epoch.values
            if epoch.terms is not None:
                positive, contrast = next(terms)
                training.history.positive.append(positive)
                training.history.contrast.append(contrast)
            objective = self._objective(epoch)
            if training.progress.keeps_losses:
                training.history.extra.setdefault("loss", []).append(objective)
        self._take(self.values, list(found), training.progress.epoch, training.progress.lr)
        self._looked = time.perf_counter()
        return objective

    def _take(self, values: list[float], fresh: list[float], epoch: int, lr: float) -> None:
        """Losses of an epoch behind those that were read before; the first bad one ends the run."""
        training, before = self.training, len(values)
        values += fresh
        finite = list(map(math.isfinite, fresh))
        skips = training.precision.scaler is not None and any(finite)
        if all(finite) or skips:  # with loss scaling, a step that overflows is skipped
            return
        step, many = before + finite.index(False), training.settings.accumulate
        rows = training.feed.rows(epoch, step * many, many)
        raise guard.not_finite(values[step], step, epoch, rows, lr, training.saved)

    def _objective(self, epoch: _Epoch) -> float:
        training = self.training
        values, weights = epoch.values, epoch.weights
        if not all(map(math.isfinite, values)):
            weights = [w if math.isfinite(v) else 0.0 for v, w in zip(values, weights, strict=True)]
            values = [v if math.isfinite(v) else 0.0 for v in values]
        objective = math.fsum(map(mul, values, weights)) / math.fsum(weights)
        if training.rule.is_objective:
            self.first = objective if math.isnan(self.first) else self.first
            lr = training.settings.lr
            guard.check_progress(self.first, objective, epoch.number, lr, training.saved)
        return objective
