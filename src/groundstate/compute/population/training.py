"""The training loop of a population: one step for all members, captured on a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.population.optimizers import StackedOptimizer
from groundstate.compute.population.stack import Loss, Population
from groundstate.compute.random import Key, seeded
from groundstate.compute.recorded import Recorder
from groundstate.errors import NotApplicable, Unsupported


class Step:
    r"""One optimisation step of all members.

    Parameters
    ----------
    population : Population
    loss : callable(params, buffers, batch, weight) -> scalar
        One member's loss.
    optimizer : StackedOptimizer
    shared : bool, default True
        Whether all members see the same rows.
    capture : bool, default False
        Record the step as a CUDA graph at the first call with each shape of batch and replay it
        afterwards: no launch costs. Needs a GPU and a loss without synchronisation.
    compile : bool, default False
        Pass the loss through ``torch.compile``.
    ridge : Tensor, (P, D), optional
        Adds :math:`\tfrac12 \sum_d r_{pd} \theta_{pd}^2` to the loss of member p, without autograd:
        its gradient is one product.
    work : callable(batch, weight, grad) -> losses, optional
        Writes the gradients (P, D) itself; `loss` is then not used.
    """

    def __init__(
        self,
        population: Population,
        loss: Loss,
        optimizer: StackedOptimizer,
        *,
        shared: bool = True,
        capture: bool = False,
        compile: bool = False,
        ridge: Tensor | None = None,
        work: Callable[[Any, Tensor | None, Tensor], Tensor] | None = None,
    ) -> None:
        if capture and population.flat.device.type != "cuda":
            raise Unsupported(
                f"capture=True records a CUDA graph, but the population is on "
                f"{population.flat.device}; use capture=False or device='cuda'."
            )
        self.population, self.optimizer = population, optimizer
        self.shared, self.capture = shared, capture
        losses = population.losses
        self._losses = torch.compile(losses) if compile else losses
        self._loss = loss
        self._grad = torch.zeros_like(population.flat)
        self._ridge, self._work = ridge, work
        self._recorder = Recorder(self._run, self._state)

    def __call__(self, batch: Any, weight: Tensor | None = None) -> Tensor:
        """Do the step and return the losses before it.  # (P,)"""
        if not self.capture:
            return self._run(batch, weight)
        kind = self.optimizer.masked, self.optimizer.fused
        try:
            losses: Tensor = self._recorder(batch, weight, key=kind)
        except NotApplicable as reason:
            if not self._recorder.recordings:  # else it is one more size of batch
                self.capture = False
                warnings.warn(
                    f"the step was not recorded as a CUDA graph: {reason}; training goes on without",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return self._run(batch, weight)
        return losses.clone()

    def _run(self, batch: Any, weight: Tensor | None) -> Tensor:
        optimizer, buffers = self.optimizer, self.population.buffers
        frozen = {n: b.clone() for n, b in buffers.items()} if optimizer.masked else {}
        if self._work is not None:
            losses = self._work(batch, weight, self._grad)
        else:
            losses = self._losses(self._loss, batch, weight, self.shared)
            self.population.gradient(losses, self._grad)
            losses = losses.detach()
        if self._ridge is not None:
            pull = self._ridge * self.population.flat
            self._grad += pull
            losses = losses + 0.5 * torch.linalg.vecdot(pull, self.population.flat)
        if optimizer.lasso is not None:
            losses = losses + torch.linalg.vecdot(optimizer.lasso, self.population.flat.abs())
        optimizer.step(self._grad)
        for name, before in frozen.items():
            mask = optimizer.active.view(-1, *[1] * (before.ndim - 1))
            torch.where(mask, buffers[name], before, out=buffers[name])
        return losses

    def _state(self) -> list[Tensor]:
        return [*self.optimizer.state(), *self.population.buffers.values()]


def train(
    population: Population,
    loss: Loss,
    batches: Callable[[int], Iterable[tuple[Any, Tensor | None]]],
    optimizer: StackedOptimizer,
    epochs: int,
    *,
    stop: Callable[[int, Tensor], Tensor | None] | None = None,
    shared: bool = True,
    capture: bool = False,
    compile: bool = False,
    key: Key | None = None,
) -> Tensor:
    """Train all members; return their mean losses of every epoch, (epochs run, P).

    Parameters
    ----------
    population, loss, optimizer, shared, capture, compile
        As in `Step`.
    batches : callable(epoch) -> iterable of (batch, weight)
        The steps of an epoch; ``weight`` is (B,), (P, B) or None.
    epochs : int
    stop : callable(epoch, losses) -> mask of members to stop, or None
        Asked after each epoch with its mean losses (P,); a stopped member keeps its parameters.
    key : Key, optional
        Stream of dropout and other noise inside the modules; without it they draw from torch's
        global generator.
    """
    step = Step(population, loss, optimizer, shared=shared, capture=capture, compile=compile)
    history: list[Tensor] = []
    with seeded(key) if key is not None else nullcontext():
        for epoch in range(epochs):
            losses = [step(batch, weight) for batch, weight in batches(epoch)]
            history.append(torch.stack(losses).mean(0))
            done = None if stop is None else stop(epoch, history[-1])
            if done is not None:
                optimizer.stop(done)
                if not bool(optimizer.active.any()):
                    break
    return torch.stack(history)
