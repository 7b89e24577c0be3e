r"""The shared language of learning: loss = e − R, and the solvers that lower it.

A rule turns an energy and a batch into a loss per row,
:math:`L = e(\text{data}) - R`, where :math:`R` is large when unwanted values have high energy.
The choice of :math:`R` is the choice of learning rule. A solver lowers the weighted mean
:math:`J(\theta) = \bigl(\sum_i w_i L_i(\theta) + \Omega(\theta)\bigr) / \sum_i w_i`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from groundstate.compute.display import Displayed, span
from groundstate.compute.modules import LightModule
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.rows import count, part
from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.callbacks import Callback

Batch = Mapping[str, Tensor]
Latent = Any  # "marginalise" | "minimise" | learn.Variational


@dataclass
class Terms(Displayed):
    """What a rule returns for a batch.

    ``loss`` is ``(B,)`` and differentiable. ``positive`` (what is lowered) and ``contrast`` (what
    is raised) are ``(B,)`` and computed on first use, so that a training step pays for the loss
    alone. ``loss = positive - contrast`` wherever ``is_objective`` holds.
    """

    loss: Tensor
    parts: Callable[[], tuple[Tensor, Tensor]]
    exact: bool = True
    is_objective: bool = True
    _parts: tuple[Tensor, Tensor] | None = field(default=None, repr=False)

    def _computed(self) -> tuple[Tensor, Tensor]:
        if self._parts is None:
            self._parts = self.parts()
        return self._parts

    @property
    def positive(self) -> Tensor:
        return self._computed()[0]

    @property
    def contrast(self) -> Tensor:
        return self._computed()[1]

    def _facts(self) -> dict[str, object]:
        return {"rows": len(self.loss), "loss": span(self.loss), "exact": self.exact}


class Rule(LightModule):
    """A learning rule; its docstring's first paragraph says what it lowers and what it raises.

    Attributes
    ----------
    over : str, tuple or None
        The contrasted variables; None means ``y`` if the energy has it, else ``x``.
    latent : "marginalise", "minimise" or a ``Variational``
        What happens to variables that are neither contrasted nor in the batch.
    is_objective : bool
        False when only the gradient means something (contrastive divergence).
    """

    over: str | tuple[str, ...] | None = None
    latent: Latent = "marginalise"
    is_objective: bool = True
    needs_gradient: bool = False  # True where evaluating the loss differentiates in a variable
    smooth: bool = True  # False where the loss has kinks in θ (hinges, minima)
    recordable: Any = False  # True where a step that draws is the same kernels each time: no host

    @property
    def stateful(self) -> bool:
        """Whether something of its own stays from step to step: networks, chains, averages."""
        plain = type(self).get_extra_state is nn.Module.get_extra_state
        if plain and not (self._parameters or self._buffers or self._modules):
            return False  # the usual case, without torch's walk
        return bool(self.state_dict())

    def make_room(self, state: Mapping[str, Any]) -> None:
        """Make buffers that exist after the first step only, before a saved state is loaded."""

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        """Whether the loss on such a batch is computed without sampling or search."""
        return True

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        r"""The batch objective :math:`\sum_i w_i L_i / \text{total}` and the terms behind it.

        Without weights it is the plain mean. A rule may override this where the mean is one fused
        operation; the terms are then computed only when asked for.
        """
        terms: Terms = self(energy, batch, generator=generator)
        if weight is None:
            return terms.loss.mean(), lambda: terms
        loss = terms.loss if terms.loss.dtype == weight.dtype else terms.loss.to(weight.dtype)
        return torch.dot(loss, weight) / total, lambda: terms

    def events(self, batch: Batch) -> Batch:
        """The energy's rows in a batch; a rule whose rows are whole tasks flattens them."""
        return batch

    def contrast_is_constant(self, energy: Energy) -> bool:
        """Whether the contrast term does not depend on θ, so that lowering e is enough."""
        return False

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        """The variables this rule contrasts for ``energy``."""
        if self.over is not None:
            names = (self.over,) if isinstance(self.over, str) else tuple(self.over)
            return energy.ordered(names)
        return ("y",) if "y" in energy.spaces else ("x",)

    def latents(self, energy: Energy, batch: Batch | Iterable[str]) -> tuple[str, ...]:
        """The variables of ``energy`` that the batch does not hold."""
        return energy.ordered(set(energy.spaces) - set(batch))

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        """Why this rule cannot train this energy on such a batch, or None. Computes nothing."""
        return None

    def require(self, energy: Energy, batch: Batch) -> None:
        """Raise ``Unsupported`` with the reason, if there is one."""
        reason = self.reason_against(energy, batch)
        if reason is not None:
            raise Unsupported(
                f"{type(self).__name__} cannot train {type(energy).__name__}: {reason}"
            )


@dataclass
class History(Displayed):
    """What a solver did: per-step objective, per-epoch terms, time, and why it stopped."""

    objective: list[float] = field(default_factory=list)
    positive: list[float] = field(default_factory=list)
    contrast: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    solver: str = ""
    stop: str = ""
    extra: dict[str, list[float]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)  # seed, device, threads, versions

    def _facts(self) -> dict[str, object]:
        return {
            "solver": self.solver or None,
            "iterations": self.n_iter,
            "objective": self.objective[-1] if self.objective else None,
            "converged": self.converged,
            "stop": self.stop or None,
            "seconds": math.fsum(self.seconds) if self.seconds else None,
            "logged": " ".join(self.extra) or None,
        }


class Penalty(LightModule):
    r"""A prior on θ as :math:`\Omega(\theta) = -\log p(\theta)`, on the scale of the summed loss."""

    smooth: bool = True

    def value(self, energy: Energy) -> Tensor:
        """Ω(θ), a scalar tensor, differentiable in the parameters."""
        raise Unsupported(f"{type(self).__name__} has no value")

    def forward(self, energy: Energy) -> Tensor:
        return self.value(energy)

    def extra_repr(self) -> str:
        kept = {name: getattr(self, name, None) for name in signature(type(self)).parameters}
        numbers = {name: v for name, v in kept.items() if type(v) in (int, float)}
        return ", ".join(f"{name}={value:g}" for name, value in numbers.items())


@dataclass
class Problem:
    """Everything a solver needs: what ``fit`` was asked, checked and placed on one device."""

    energy: Energy
    rule: Rule
    data: Mapping[str, Tensor] | Iterable[Batch]
    sample_weight: Tensor | None = None  # (N,)
    penalty: Penalty | None = None
    callbacks: Sequence[Callback] = ()
    key: Key = field(default_factory=lambda: Key.of(0))

    @property
    def is_resident(self) -> bool:
        """Whether all rows are at hand as tensors."""
        return isinstance(self.data, Mapping)

    @property
    def resident(self) -> Mapping[str, Tensor]:
        """The rows as tensors; only for resident data."""
        assert isinstance(self.data, Mapping)
        return self.data

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.resident)

    @property
    def rows(self) -> int:
        return count(next(iter(self.resident.values())))

    @property
    def total_weight(self) -> float:
        """Sum of the weights over all shards."""
        w = self.sample_weight
        local = float(self.rows) if w is None else float(w.sum())
        shards = current()
        if shards.world == 1:
            return local
        return float(shards.sum(torch.tensor(local, dtype=torch.float64)))

    def chunks(self, rows: int) -> Iterable[tuple[Batch, Tensor | None]]:
        """Consecutive pieces of the data with their weights."""
        if not isinstance(self.data, Mapping):
            for batch in self.data:
                values = {k: v for k, v in batch.items() if k != "weight"}
                yield values, batch.get("weight")
            return
        if rows >= self.rows:  # also keeps sparse rows whole, which cannot be sliced
            yield self.data, self.sample_weight
            return
        for at in range(0, self.rows, rows):
            piece: dict[str, Any] = {k: part(v, at, at + rows) for k, v in self.data.items()}
            w = self.sample_weight
            yield piece, None if w is None else w[at : at + rows]

    def objective(self, chunk_rows: int = 2**18) -> Tensor:
        r""":math:`J(\theta)` over all rows and shards, a scalar without graph."""
        return torch.tensor(self.value_and_gradient([], chunk_rows)[0])

    def value_and_gradient(
        self, parameters: Sequence[Tensor], chunk_rows: int = 2**18
    ) -> tuple[float, Tensor]:
        r""":math:`J(\theta)` and its gradient, flattened in the order of ``parameters``."""
        total_weight = self.total_weight
        size = sum(p.numel() for p in parameters)
        device = self.energy.placement()[0]
        summed = torch.zeros(size + 1, dtype=torch.float64, device=device)
        generator = self.key.fold("objective").torch(device)
        context = torch.enable_grad() if parameters or self.rule.needs_gradient else torch.no_grad()
        with context:
            for batch, weight in self.chunks(chunk_rows):
                loss = self.rule(self.energy, batch, generator=generator).loss
                summed_loss = loss.sum() if weight is None else torch.dot(loss, weight)
                summed += self._flat(summed_loss, parameters)
            summed = current().sum(summed)
            if self.penalty is not None:
                summed = summed + self._flat(self.penalty(self.energy), parameters)
        summed = summed / total_weight
        return float(summed[0]), summed[1:]

    @staticmethod
    def _flat(value: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        head = value.detach().double().reshape(1)
        if not parameters:
            return head
        gradients = torch.autograd.grad(value, parameters, allow_unused=True)
        flat = [
            (torch.zeros_like(p) if g is None else g).reshape(-1).double()
            for g, p in zip(gradients, parameters, strict=True)
        ]
        return torch.cat([head, *flat])


@runtime_checkable
class Solver(Protocol):
    """Lowers the objective of a problem; a frozen dataclass of settings."""

    def reason_against(self, problem: Problem) -> str | None:
        """Why this solver cannot run, or None. Computes nothing."""
        ...

    def run(self, problem: Problem) -> History:
        """Change θ in place and say what was done."""
        ...


Reduction = Literal["none", "mean", "sum"]


def reduced(loss: Tensor, reduction: Reduction, weight: Tensor | None = None) -> Tensor:
    """Weighted mean, weighted sum or the rows themselves."""
    if reduction == "none":
        return loss if weight is None else loss * weight
    total = loss.sum() if weight is None else loss @ weight
    if reduction == "sum":
        return total
    if reduction == "mean":
        return total / (loss.shape[0] if weight is None else weight.sum())
    raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def weighted_mean(loss: Tensor, weight: Tensor | None) -> Tensor:
    return loss.mean() if weight is None else torch.dot(loss, weight) / weight.sum()
