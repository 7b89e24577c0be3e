r"""Loss and gradients on a GPU, recorded once for each size of batch and replayed.

A step whose rule is exact, or says that it can be recorded, is the same kernels every time, with draws
that go on from where the generator stands. Forward and backward pass become one CUDA graph: the same
numbers in the same order, without the launches and without a compiler's half minute. With
``compile=True`` the compiled kernels are what is recorded. Where CUDA cannot record a step, it runs as
it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from groundstate.compute.recorded import Recorder
from groundstate.compute.rows import Rows
from groundstate.errors import NotApplicable
from groundstate.learn.base import Batch, Problem, Terms
from groundstate.learn.train.compile import Compiled
from groundstate.learn.train.dense import untouched

if TYPE_CHECKING:
    from groundstate.learn.train.run import Training


class CapturedStep:
    """Loss and gradients of a batch by replay, written to ``grad`` of the parameters.

    Parameters
    ----------
    training : the run whose steps these are
    """

    def __init__(self, training: Training) -> None:
        self.energy, self.rule = training.energy, training.rule
        self.precision = training.precision
        plain = training.settings.compile is not True  # "reduce-overhead" would record in itself
        self.compiled = Compiled(self.energy, False) if plain else training.compiled
        self.theta = [p for p in training.joint if p.requires_grad]
        self.addresses = [p.data_ptr() for p in self.theta]
        self.generator = training.generator if self.rule.recordable else None
        self.recorder = Recorder(
            self._pass,
            lambda: [*self.energy.buffers(), *self.rule.buffers()],
            generator=self.generator,
            settled=True,
        )
        self.broken = False

    def _pass(self, batch: Batch, weight: Tensor | None, total: float) -> Any:
        self.forget_gradients()
        rows = len(next(iter(batch.values())))
        with self.precision.autocast(), self.compiled.batch(rows):
            loss, terms = self.rule.mean(self.energy, batch, weight, total, self.generator)
            with torch.no_grad():
                found = terms()
                means = torch.stack([v.mean() for v in (found.positive, found.contrast)])
        loss = loss if loss.dtype == torch.float64 else loss.float()
        scaler = self.precision.scaler
        (loss if scaler is None else scaler.scale(loss)).backward()
        return loss.detach(), means, [p.grad for p in self.theta]

    def __call__(
        self, batch: Batch, weight: Tensor | None, total: float
    ) -> tuple[Tensor, Callable[[], Terms]] | None:
        """The objective of the batch, None where its size is one too many or was not recorded."""
        if self.broken:
            return None
        addresses = [p.data_ptr() for p in self.theta]
        if addresses != self.addresses:  # somebody gave a parameter other memory
            self.recorder.forget()
            self.addresses = addresses
        try:
            loss, means, grads = self.recorder(dict(batch), weight, total)
        except NotApplicable as reason:
            self._give_up(reason)
            return None
        for p, grad in zip(self.theta, grads, strict=True):
            p.grad = grad
        positive, contrast = means.clone().split(1)  # the memory is that of the next step, too
        parts = positive, contrast
        return loss.clone(), lambda: Terms(positive - contrast, lambda: parts)

    def _give_up(self, reason: NotApplicable) -> None:
        self.forget_gradients()
        if self.recorder.recordings:  # these go on; one more size of batch is not recorded
            return
        self.broken = True
        warnings.warn(
            f"the step was not recorded as a CUDA graph: {reason}; training goes on without",
            RuntimeWarning,
            stacklevel=2,
        )

    def forget_gradients(self) -> None:
        for p in self.theta:
            p.grad = None

    def plain(self) -> bool:
        """Whether all modules learn and nobody listens to them or to the gradients."""
        return untouched(self.energy)


def _rows(problem: Problem) -> list[Rows]:
    return list(problem.resident.values())


def captured_step(training: Training) -> CapturedStep | None:
    """The recorded step of a run, None where its steps differ in more than their batch."""
    settings, problem = training.settings, training.problem
    rule, energy = training.rule, training.energy
    lasting = any(getattr(m, "mask_per_epoch", False) for m in energy.modules())
    simple = (
        training.device.type == "cuda"
        and settings.compile in (False, True, "reduce-overhead")
        and settings.accumulate == 1
        and problem.is_resident
        and all(isinstance(v, Tensor) or v.of_one_shape for v in _rows(problem))
        and not training.feed.sharded
        and not training.turns
        and not training.omega.gradient
        and not lasting
    )
    if not simple or rule.needs_gradient:
        return None
    alone = not any(True for _ in (*rule.parameters(), *rule.buffers()))
    same = rule.recordable or (alone and rule.is_exact(energy, problem.resident))
    return CapturedStep(training) if same else None
