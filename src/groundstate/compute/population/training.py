"""The training loop of a population: one step for all members, captured on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import tree_flatten, tree_map
from groundstate.compute.population.optimizers import StackedOptimizer
from groundstate.compute.population.stack import Loss, Population
from groundstate.compute.random import Key, seeded
from groundstate.errors import Unsupported


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
        self._graphs: dict[Any, tuple[torch.cuda.CUDAGraph, Any, Tensor]] = {}

    def __call__(self, batch: Any, weight: Tensor | None = None) -> Tensor:
        """Do the step and return the losses before it.  # (P,)"""
        return self._replay(batch, weight) if self.capture else self._run(batch, weight)

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

    def _replay(self, batch: Any, weight: Tensor | None) -> Tensor:
        leaves, spec = tree_flatten((batch, weight))
        shapes = tuple(None if t is None else (t.shape, t.dtype) for t in leaves)
        kind = (shapes, str(spec), self.optimizer.masked, self.optimizer.fused)
        if kind not in self._graphs:
            self._graphs[kind] = self._record((batch, weight))
        graph, static, losses = self._graphs[kind]
        for held, given in zip(tree_flatten(static)[0], leaves, strict=True):
            if given is not None:
                held.copy_(given)
        graph.replay()
        return losses.clone()

    def _record(self, inputs: Any) -> tuple[torch.cuda.CUDAGraph, Any, Tensor]:
        static = tree_map(lambda t: None if t is None else t.clone(), inputs)
        state = [*self.optimizer.state(), *self.population.buffers.values()]
        before = [tensor.clone() for tensor in state]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # libraries allocate their workspaces outside the graph
                self._run(*static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            losses = self._run(*static)
        for tensor, saved in zip(state, before, strict=True):
            tensor.copy_(saved)
        return graph, static, losses


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
