r"""Steps of plain multilayer networks on a GPU, recorded once and replayed.

A small network's step is some twenty kernels of a few microseconds each, and launching them takes
longer than running them. With ``compile="reduce-overhead"`` the forward and backward pass of a
network of dense layers become one CUDA graph per size of batch: the same kernels in the same order,
hence the same numbers, without the launches and without the compiler's half minute.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from groundstate.learn.base import Batch, Terms
from groundstate.learn.train.dense import untouched, written_head, written_layers

if TYPE_CHECKING:
    from groundstate.learn.train.run import Training

_SIZES = 8  # sizes of batches that are recorded; more of them run as they are
_WARM = 3  # passes before recording: libraries allocate their workspaces outside the graph


class _Graph:
    """One recorded pass: where its batch goes, and where its loss and gradients come from."""

    def __init__(self, step: CapturedStep, batch: Batch, weight: Tensor | None, total: float):
        self.batch = {name: value.clone() for name, value in batch.items()}
        self.weight = None if weight is None else weight.clone()
        self.step, self.total = step, total
        buffers = list(step.energy.buffers())
        before = [b.clone() for b in buffers]  # counts of dropout, which a rehearsal moves on
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self._pass()
        torch.cuda.current_stream().wait_stream(side)
        step.forget_gradients()
        self.graph = torch.cuda.CUDAGraph()
        with _no_collection(), torch.cuda.graph(self.graph):
            self.loss = self._pass()
        self.grads = [p.grad for p in step.theta]
        for buffer, saved in zip(buffers, before, strict=True):
            buffer.copy_(saved)

    def _pass(self) -> Tensor:
        step = self.step
        step.forget_gradients()
        with step.precision.autocast():
            loss = step.rule.mean(step.energy, self.batch, self.weight, self.total, None)[0]
        loss = loss if loss.dtype == torch.float64 else loss.float()
        scaler = step.precision.scaler
        (loss if scaler is None else scaler.scale(loss)).backward()
        return loss.detach()

    def __call__(self, batch: Batch, weight: Tensor | None) -> Tensor:
        for name, held in self.batch.items():
            held.copy_(batch[name])
        if self.weight is not None:
            assert weight is not None
            self.weight.copy_(weight)
        self.graph.replay()
        for p, grad in zip(self.step.theta, self.grads, strict=True):
            p.grad = grad
        return self.loss.clone()


@contextmanager
def _no_collection() -> Iterator[None]:
    """A graph of an earlier run that is freed while another is recorded would spoil the recording."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CapturedStep:
    """Loss and gradients of a batch by replay, written to ``grad`` of the parameters.

    Parameters
    ----------
    training : the run whose steps these are
    """

    def __init__(self, training: Training) -> None:
        self.energy, self.rule = training.energy, training.rule
        self.precision = training.precision
        self.theta = list(self.energy.parameters())
        self.addresses = [p.data_ptr() for p in self.theta]
        self.graphs: dict[Any, _Graph] = {}
        self.broken = False

    def __call__(
        self, batch: Batch, weight: Tensor | None, total: float
    ) -> tuple[Tensor, Callable[[], Terms]] | None:
        """The objective of the batch, None where its size is one too many or was not recorded."""
        addresses = [p.data_ptr() for p in self.theta]
        if addresses != self.addresses:  # somebody gave a parameter other memory
            self.graphs, self.addresses = {}, addresses
        shapes = tuple((name, v.shape, v.dtype) for name, v in batch.items())
        kind = (shapes, weight is None, total)
        graph = self.graphs.get(kind)
        if graph is None:
            if self.broken or len(self.graphs) == _SIZES:
                return None
            try:
                graph = self.graphs[kind] = _Graph(self, batch, weight, total)
            except RuntimeError as error:
                self._give_up(error)
                return None
        return graph(batch, weight), lambda: self._terms(batch, weight, total)

    @torch.no_grad()
    def _terms(self, batch: Batch, weight: Tensor | None, total: float) -> Terms:
        """What the rule says of a batch now, without dropout."""
        self.energy.eval()
        try:
            return self.rule.mean(self.energy, batch, weight, total, None)[1]()
        finally:
            self.energy.train()

    def _give_up(self, error: RuntimeError) -> None:
        self.broken = True
        self.forget_gradients()
        warnings.warn(
            f"the step could not be recorded as a CUDA graph ({str(error).splitlines()[0]}); "
            "training goes on through torch.compile",
            RuntimeWarning,
            stacklevel=2,
        )

    def forget_gradients(self) -> None:
        for p in self.theta:
            p.grad = None

    def plain(self) -> bool:
        """Whether all modules learn and nobody listens to them or to the gradients."""
        return untouched(self.energy)


def captured_step(training: Training) -> CapturedStep | None:
    """The recorded step of a run, None where it was not asked for or cannot be recorded."""
    settings, problem = training.settings, training.problem
    wanted = settings.compile == "reduce-overhead" and training.device.type == "cuda"
    simple = (
        wanted
        and settings.accumulate == 1
        and problem.is_resident
        and not training.feed.sharded
        and not training.turns
        and not training.omega.gradient
        and not any(True for _ in training.rule.parameters())
    )
    if not simple or written_layers(training.energy) is None:
        return None
    if written_head(training.energy, training.rule, problem.resident) is None:
        return None
    return CapturedStep(training)


__all__ = ["CapturedStep", "captured_step"]
