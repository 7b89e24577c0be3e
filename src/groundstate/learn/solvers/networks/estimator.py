r"""How a network behind an estimator learns: rows in canonical order, a held-out part, a stopping rule."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.rows import count, home, real_dtype, take
from groundstate.compute.rows.distinct import merged
from groundstate.compute.thread_policy import for_steps
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, NotConverged
from groundstate.learn.base import Batch, History, Problem
from groundstate.learn.solvers.lbfgs import LBFGS
from groundstate.learn.solvers.networks.descent import Descent
from groundstate.learn.solvers.networks.stopping import (
    EstimatorStopping,
    MeanLossStopping,
    Rates,
    Score,
)
from groundstate.learn.stops import Patience
from groundstate.learn.train.stochastic import Stochastic
from groundstate.registry import solvers


@solvers.register(
    formula=r"\theta \leftarrow \theta - \eta\,\mathrm{opt}(\nabla J_{\text{batch}}),\quad "
    r"\text{until } J \text{ or a held-out score rests}",
    make=lambda energy: NetworkTraining(Stochastic(lr=2e-2, max_epochs=60, tol=None)),
)
@dataclass(frozen=True)
class NetworkTraining:
    r"""Lower :math:`J(\theta)` as ``Stochastic`` or ``LBFGS`` do, from rows in canonical order.

    Mini-batches and the held-out part are cuts of the weight line. Where a step takes all rows,
    equal ones are merged and sums run in the order of their hash: weights are repetitions and order
    does not matter, to the last bit.

    Parameters
    ----------
    solver : what makes the steps
    tol, patience, rates, power : see ``EstimatorStopping``; used with a stochastic solver
    held_out : share of the rows that decides when to stop; 0: the objective decides
    stratify : whether the held-out part has the same shares of the labels y
    score : of the held-out rows
    shuffle : False keeps the mini-batches of the first epoch for all
    seen : rows that earlier runs have seen
    warns : whether to warn when all epochs have passed before it stops
    targets : K > 1 reports and watches the mean over K targets, see ``MeanLossStopping``
    parts : which rows are learned from (0), watched (1) or left out (2), ``(N,)``; None cuts the weight
        line. Series need it: their held-out part is the end
    sums_scores : whether the score is that of the held-out rows of all processes; where it is not, several
        processes hold nothing out
    offset : of rows and weights, what is added to the reported losses: the constant between two
        conventions of one loss
    """

    solver: Stochastic | LBFGS = field(default_factory=lambda: Stochastic(tol=None))
    tol: float = 1e-4
    patience: float = 10
    held_out: float = 0.0
    stratify: bool = False
    score: Score | None = None
    rates: Rates = "constant"
    power: float = 0.5
    shuffle: bool = True
    seen: float = 0.0
    warns: bool = True
    targets: int = 1
    offset: Callable[[Batch, Tensor | None], float] | None = None
    parts: Tensor | None = None
    sums_scores: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        if not problem.is_resident:
            if self.held_out > 0:
                return (
                    "early stopping holds rows out, which a stream of rows cannot; watch the loss"
                )
            if not isinstance(self.solver, Stochastic) or not self.shuffle:
                return "a stream of rows is learned from in mini-batches that are shuffled"
        return self.solver.reason_against(problem)

    def waiting(self, size: int = 1) -> Patience:
        """The count of epochs without an improvement, for so many members."""
        return Patience(size, tol=self.tol, patience=self.patience + 1, inclusive=True)

    def run(self, problem: Problem) -> History:
        if not problem.is_resident:
            total = float(getattr(problem.data, "total", 1.0))
            return self._mini_batches(problem, {}, None, None, total)
        alone = current().world == 1
        data, weight = problem.resident, problem.sample_weight
        watched: tuple[Batch, Tensor] | None = None
        cuts = self.held_out > 0 and isinstance(self.solver, Stochastic)
        if cuts and (alone or self.sums_scores):
            if self.parts is None:
                parts = held_out_parts(data, weight, self.held_out, problem.key, self.stratify)
            else:
                parts = _given_parts(self.parts, weight)
            data, weight, watched = _cut(data, parts)
        total = replace(problem, data=data, sample_weight=weight).total_weight
        size = getattr(self.solver, "batch_size", None)
        if alone and (size is None or size >= total):
            data, summed = merged(data, weight)
            weight = None if bool((summed == 1).all()) else summed
        inner = replace(problem, data=data, sample_weight=weight)
        if not isinstance(self.solver, Stochastic):
            size = sum(p.numel() for p in inner.energy.parameters())
            with for_steps(size * total, inner.energy.placement()[0]):
                history = self.solver.run(inner)
            history.extra["loss"] = list(history.objective)
            return self._relabelled(history, data, weight)
        if alone and not self.shuffle and size is not None and size < total:
            inner = replace(inner, data=_fixed(data, weight, size, problem.key), sample_weight=None)
        return self._mini_batches(inner, data, weight, watched, total)

    def _mini_batches(
        self,
        problem: Problem,
        data: Batch,
        weight: Tensor | None,
        watched: tuple[Batch, Tensor] | None,
        total: float,
    ) -> History:
        """Steps until the objective, or the score of the rows that are watched, rests."""
        assert isinstance(self.solver, Stochastic)
        size = self.solver.batch_size
        optimizer: Any = self.solver.optimizer
        given: dict[str, Any] = {
            "descent": optimizer if isinstance(optimizer, Descent) else None,
            "rates": self.rates,
            "power": self.power,
            "rows": total,
            "seen": self.seen,
        }
        how = self.tol, self.patience, self.score if watched is not None else None
        if self.targets > 1:
            part = None if size is None or size >= total else float(size)
            stopping: EstimatorStopping = MeanLossStopping(
                *how, *(watched or (None, None)), targets=self.targets, size=part, **given
            )
        else:
            stopping = EstimatorStopping(*how, *(watched or (None, None)), **given)
        history = self.solver.run(replace(problem, callbacks=(stopping, *problem.callbacks)))
        epochs = self.solver.max_epochs
        if self.warns and epochs > 1 and history.stop == "max_epochs" and self.patience < math.inf:
            warnings.warn(
                f"training stopped at max_iter={epochs} epochs before the objective rested; raise "
                "max_iter, or set n_iter_no_change=inf to ask for exactly that many",
                NotConverged,
                stacklevel=2,
            )
        history.extra["seen"] = [stopping.seen]
        return self._relabelled(history, data, weight)

    def _relabelled(self, history: History, data: Batch, weight: Tensor | None) -> History:
        history.solver = "NetworkTraining"
        if self.offset is not None and data:
            extra = self.offset(data, weight)
            history.extra["loss"] = [value + extra for value in history.extra.get("loss", ())]
        return history


def held_out_parts(
    data: Batch, weight: Tensor | None, share: float, key: Key, stratify: bool
) -> NDArray[np.float64]:
    """Weights of the rows to learn from and to watch; equal rows are on one side.  # (2, N)"""
    reduce = current()
    given = None if weight is None else weight.detach().cpu().double()
    if given is None and reduce.world > 1:  # others may have weights
        given = torch.ones(count(next(iter(data.values()))), dtype=torch.float64)
    line, here = WeightLine.gathered(row_hash(*data.values()), given, reduce)
    labels = _labels(data.get("y")) if stratify else None
    if labels is not None:
        labels = reduce.gather(torch.from_numpy(labels)).numpy()
    parts = line.cut(key.fold("validation"), share, stratify=labels)
    rows, watched = (parts > 0).sum(1)
    if rows == 0 or watched < 2:
        raise DataError(
            f"the held-out part is too small: validation_fraction={share} of {line.n_distinct} "
            f"different rows leaves {watched}; give more rows, a larger fraction, or "
            "early_stopping=False"
        )
    return parts[:, here]


def _labels(y: Any) -> NDArray[np.int64] | None:
    """The labels of rows that have one each; masks, tags, numbers and no targets have none."""
    one = isinstance(y, Tensor) and y.ndim == 1 and not y.is_floating_point()
    return y.cpu().numpy() if one else None


def _given_parts(parts: Tensor, weight: Tensor | None) -> NDArray[np.float64]:
    own = torch.ones(len(parts)) if weight is None else weight.detach()
    sides = [own.double().cpu() * (parts.cpu() == side) for side in (0, 1)]
    if not all(float(current().sum(side.sum())) > 0 for side in sides):
        raise DataError("a part of the rows, to learn from or to watch, is empty or weighs nothing")
    return torch.stack(sides).numpy()


def _cut(
    data: Batch, parts: NDArray[np.float64]
) -> tuple[Batch, Tensor | None, tuple[Batch, Tensor]]:
    """Rows to learn from with their weights, and rows to watch."""
    sides: list[tuple[Batch, Tensor]] = []
    device, dtype = home(data), real_dtype(data)
    for part in parts:
        own = torch.from_numpy(part)
        index = own.nonzero().squeeze(1)
        rows: dict[str, Any] = {name: take(v, index) for name, v in data.items()}
        sides.append((rows, own[own > 0].to(device, dtype)))
    (kept, w), watched = sides
    return kept, None if bool((w == 1).all()) else w, watched


def _fixed(data: Batch, weight: Tensor | None, size: int, key: Key) -> list[dict[str, Any]]:
    """The mini-batches of one epoch, the same for all."""
    given = None if weight is None else weight.detach().double().cpu().numpy()
    line = WeightLine.of(*data.values(), weights=given)
    out: list[dict[str, Any]] = []
    for rows, own in line.batches(key.fold("epoch", 0), size, home(data)):
        batch: dict[str, Any] = {name: take(v, rows) for name, v in data.items()}
        if own is not None:
            batch["weight"] = own.to(real_dtype(data))
        out.append(batch)
    return out
