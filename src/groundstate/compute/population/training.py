"""One optimisation step of all members of a population, recorded on a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.population.optimizers import StackedOptimizer
from groundstate.compute.population.stack import Loss, Population
from groundstate.compute.recorded import Recorder
from groundstate.errors import NotApplicable, Unsupported

Work = Callable[[Any, Tensor | None, Tensor], Tensor]


class Step:
    r"""One optimisation step of all members.

    Parameters
    ----------
    population : Population
    work : callable(batch, weight, grad) -> losses
        Writes the gradients (P, D); `by_vmap` makes one of a member's loss.
    optimizer : StackedOptimizer
    capture : bool, default False
        Record the step as a CUDA graph at the first call with each shape of batch and replay it
        afterwards: no launch costs. Needs a GPU; work that cannot be recorded runs as it is.
    ridge : Tensor, (P, D), optional
        Adds :math:`\tfrac12 \sum_d r_{pd} \theta_{pd}^2` to the loss of member p, without autograd:
        its gradient is one product.
    targets : int, default 1
        Losses are reported as the mean over so many targets, penalties apart.
    """

    def __init__(
        self,
        population: Population,
        work: Work,
        optimizer: StackedOptimizer,
        *,
        capture: bool = False,
        ridge: Tensor | None = None,
        targets: int = 1,
    ) -> None:
        if capture and population.flat.device.type != "cuda":
            raise Unsupported(
                f"capture=True records a CUDA graph, but the population is on "
                f"{population.flat.device}; use capture=False or device='cuda'."
            )
        self.population, self.optimizer, self.capture = population, optimizer, capture
        self._work, self._ridge, self.targets = work, ridge, targets
        self._grad = torch.zeros_like(population.flat)
        self._recorder = Recorder(self._run, self._state)

    def __call__(
        self, batch: Any, weight: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Do the step for the members in the mask; the losses before it.  # (P,)"""
        if mask is None:
            return self._taken(batch, weight)
        state = self._state()
        before = [t.clone() for t in state]
        losses = self._taken(batch, weight)
        for tensor, saved in zip(state, before, strict=True):
            if tensor.ndim:  # the count of the fused step is not used by uneven members
                keep = mask.view(-1, *[1] * (tensor.ndim - 1))
                torch.where(keep, tensor, saved, out=tensor)
        return losses

    def _taken(self, batch: Any, weight: Tensor | None) -> Tensor:
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
                    stacklevel=3,
                )
            return self._run(batch, weight)
        return losses.clone()

    def _run(self, batch: Any, weight: Tensor | None) -> Tensor:
        optimizer, buffers, flat = self.optimizer, self.population.buffers, self.population.flat
        frozen = {n: b.clone() for n, b in buffers.items()} if optimizer.masked else {}
        losses = self._work(batch, weight, self._grad)
        losses = losses if self.targets == 1 else losses / self.targets
        if self._ridge is not None:
            pull = self._ridge * flat
            self._grad += pull
            losses = losses + 0.5 * torch.linalg.vecdot(pull, flat)
        if optimizer.lasso is not None:
            losses = losses + torch.linalg.vecdot(optimizer.lasso, flat.abs())
        optimizer.step(self._grad)
        for name, before in frozen.items():
            mask = optimizer.active.view(-1, *[1] * (before.ndim - 1))
            torch.where(mask, buffers[name], before, out=buffers[name])
        return losses

    def _state(self) -> list[Tensor]:
        return [*self.optimizer.state(), *self.population.buffers.values()]


def by_vmap(population: Population, loss: Loss, shared: bool = True) -> Work:
    """The work of a step from one member's ``loss(params, buffers, batch, weight)``.

    Parameters
    ----------
    population : Population
    loss : calls the module with ``population.call``
    shared : whether all members see the same rows
    """

    def work(batch: Any, weight: Tensor | None, grad: Tensor) -> Tensor:
        losses = population.losses(loss, batch, weight, shared)
        population.gradient(losses, grad)
        return losses.detach()

    return work
