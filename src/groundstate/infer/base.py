r"""The shared language of inference: a question, its answers, and the methods that give them.

A question fixes some variables of an energy (*given*) and asks about the rest (*free*):
minimise :math:`\min_v e`, marginalise :math:`F = -T\log\int e^{-e/T}\,dv`, or sample
:math:`v \sim e^{-e/T}/Z`. A method is a frozen dataclass of settings that says, before any
computation, why it cannot answer a question (``reason_against``) or answers it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from groundstate.compute.display import Displayed, span
from groundstate.compute.rows import Rows, describe, floating_dtype, in_memory
from groundstate.energy.base import Energy, batch_size, shapes_of
from groundstate.energy.spaces import Real, Sequence, Simplex, Space
from groundstate.errors import ShapeError, Unsupported

Operation = Literal["minimise", "marginalise", "sample"]
OPERATIONS: tuple[Operation, ...] = ("minimise", "marginalise", "sample")
Free = str | tuple[str, ...] | Mapping[str, Tensor]
Kind = Literal["exact", "upper", "lower", "estimate"]


@dataclass(frozen=True)
class Query:
    """A validated question to an energy.

    Attributes
    ----------
    energy : Energy
    free : names of the free variables, in the order of ``energy.spaces``
    given : observed values by name, each ``(B, *event)``; a partly free variable is in both
    masks : for partly free variables, which coordinates are unknown, ``(B, *event)`` bool
    T : temperature
    init : optional start values by name
    generator : source of randomness
    """

    energy: Energy
    free: tuple[str, ...]
    given: Mapping[str, Tensor]
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    T: float = 1.0
    init: Mapping[str, Tensor] | None = None
    generator: torch.Generator | None = None

    @property
    def rows(self) -> int:
        if self.given:
            return batch_size(self.given)
        if self.energy.rows is not None:
            return self.energy.rows
        if self.init:
            return batch_size(self.init)
        return self.energy.rows or 1

    @property
    def device(self) -> torch.device:
        return self.energy.placement(self.given)[0]

    @property
    def dtype(self) -> torch.dtype:
        return self.energy.placement(self.given)[1]

    @property
    def fixed(self) -> dict[str, Tensor]:
        """Given values of the variables that are wholly known, plus context arguments."""
        return {name: v for name, v in self.given.items() if name not in self.free}

    def space(self, name: str) -> Space:
        return self.energy.spaces[name]

    def start(self, name: str, restarts: int = 1) -> Tensor:
        """Start values of a free variable, ``(rows*restarts, *event)``; knowns stay in place.

        ``init`` is used for the first start, a draw of the space for the others.
        """
        n = self.rows * restarts
        space = self.space(name)
        if self.init is not None and name in self.init and restarts == 1:
            value = self.init[name].clone()
        else:
            value = space.draw(n, generator=self.generator, device=self.device, dtype=self.dtype)
            if self.init is not None and name in self.init:
                value[: self.rows] = self.init[name]
        if name in self.masks:
            repeat = (restarts, *(1,) * (value.ndim - 1))
            mask, known = self.masks[name].repeat(repeat), self.given[name].repeat(repeat)
            value = torch.where(mask, value, known.to(value.dtype))
        return value

    def evaluate(self, values: Mapping[str, Tensor]) -> Tensor:
        """``e(given, values)``, ``(B,)``, checked: NaN and −inf raise ``FloatingPointError``."""
        return check_energies(self.energy(**{**self.fixed, **values}), self.energy)


@dataclass(frozen=True)
class Minimum(Displayed):
    """Answer of ``minimise``: detached values ``(B, *event)`` and their energy ``(B,)``."""

    values: dict[str, Tensor]
    energy: Tensor
    exact: bool
    converged: Tensor  # (B,) bool
    n_iter: int
    trace: Tensor | None = None  # (n_iter + 1, B), non-increasing
    path: dict[str, Tensor] | None = None  # (n_iter + 1, B, *event), of methods that record it

    def __getitem__(self, name: str) -> Tensor:
        return self.values[name]

    def _facts(self) -> dict[str, object]:
        return {
            "rows": len(self.energy),
            "energy": span(self.energy),
            "exact": self.exact,
            "converged": f"{int(self.converged.sum())} of {len(self.converged)}",
            "iterations": self.n_iter,
            **self.values,
        }


@dataclass(frozen=True)
class FreeEnergy(Displayed):
    """Answer of ``marginalise``: ``value`` ``(B,)``, differentiable in θ and the given."""

    value: Tensor
    kind: Kind
    stderr: Tensor | None = None  # (B,) for estimates
    info: dict[str, Any] = field(default_factory=dict)  # e.g. ess, pareto_k

    def _facts(self) -> dict[str, object]:
        error = None if self.stderr is None else span(self.stderr)
        return {
            "rows": len(self.value),
            "value": span(self.value),
            "kind": self.kind,
            "stderr": error,
            **self.info,
        }


@dataclass(frozen=True)
class Draws(Displayed):
    """Answer of ``sample``: values ``(n, B, *event)``, detached, with their energies ``(n, B)``."""

    values: dict[str, Tensor]
    energy: Tensor
    kind: Literal["exact", "asymptotic", "weighted", "approximate"]
    accept: Tensor | None = None  # (B,) mean acceptance
    log_weight: Tensor | None = None  # (n, B)
    state: Any = None  # restarts the chain when passed as init

    def __getitem__(self, name: str) -> Tensor:
        return self.values[name]

    def _facts(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            **self.values,
            "energy": span(self.energy),
            "acceptance": None if self.accept is None else span(self.accept),
            "log weights": self.log_weight,
        }


class Method:
    """A way to answer; subclasses are frozen dataclasses and fill in what they support."""

    operations: ClassVar[frozenset[str]] = frozenset()
    exact: ClassVar[bool] = False

    def reason_against(
        self,
        energy: Energy,
        operation: str,
        free: Free,
        given: Mapping[str, Tensor] | None = None,
    ) -> str | None:
        """Why this method cannot answer, or None when it can. Computes nothing."""
        if operation not in self.operations:
            return f"{type(self).__name__} does not {operation}"
        names, masks = split_free(free)
        return self._against(energy, operation, energy.ordered(names), masks)

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        return None

    def answer(
        self,
        operation: str,
        energy: Energy,
        free: Free,
        given: Mapping[str, Tensor] | None = None,
        **options: Any,
    ) -> Any:
        """What ``groundstate.infer.minimise``, ``marginalise`` or ``sample`` answers with this method.

        Composed energies ask so: they are given a method and know nothing of this room.
        """
        from groundstate.infer import dispatch

        return dispatch.QUESTIONS[operation](energy, free, given, method=self, **options)

    def minimise(self, query: Query) -> Minimum:
        raise Unsupported(f"{type(self).__name__} does not minimise")

    def marginalise(self, query: Query) -> FreeEnergy:
        raise Unsupported(f"{type(self).__name__} does not marginalise")

    def sample(self, query: Query, n: int) -> Draws:
        raise Unsupported(f"{type(self).__name__} does not sample")


def split_free(free: Free) -> tuple[tuple[str, ...], dict[str, Tensor]]:
    """Names and masks of a ``Free`` argument."""
    if isinstance(free, str):
        return (free,), {}
    if isinstance(free, Mapping):
        masks = {name: mask for name, mask in free.items() if isinstance(mask, Tensor)}
        return tuple(free), masks
    return tuple(free), {}


def ask(
    energy: Energy,
    free: Free,
    given: Mapping[str, Tensor] | None = None,
    *,
    T: float = 1.0,
    init: Mapping[str, Tensor] | None = None,
    generator: torch.Generator | None = None,
) -> Query:
    """Check a question and give it its canonical form; every error names what was passed."""
    names, masks = split_free(free)
    given = dict(given or {})
    known = [*energy.spaces, *energy.context]
    for name in (*names, *given):
        if name not in known:
            raise ValueError(
                f"{type(energy).__name__} has no variable {name!r}; its variables are "
                f"{', '.join(energy.spaces)}"
            )
    if not names:
        raise ValueError("nothing is free: name at least one variable to infer")
    for name in names:
        if name in given and name not in masks:
            raise ValueError(
                f"{name!r} is both free and given; to fill in some coordinates only, pass "
                f"free={{{name!r}: mask}} with True where the value is unknown"
            )
        if name in masks and name not in given:
            raise ValueError(f"{name!r} is partly free: its known coordinates must be in given")
    missing = [n for n in energy.spaces if n not in names and n not in given]
    if missing:
        raise ValueError(
            f"{', '.join(map(repr, missing))} of {type(energy).__name__} is neither free nor "
            f"given; add it to free, give it a value, or use energy.marginal({missing[0]!r}) or "
            f"energy.minimal({missing[0]!r})"
        )
    if not T >= 0:
        raise ValueError(f"temperature must be in [0, inf], got T={T}")
    check_values(energy, given)
    for name, mask in masks.items():
        if mask.dtype != torch.bool or mask.shape != given[name].shape:
            raise ShapeError(
                f"the mask of {name!r} must be bool of shape {tuple(given[name].shape)}, got "
                f"{mask.dtype} {tuple(mask.shape)}"
            )
    ordered = energy.ordered(names)
    query = Query(energy, ordered, given, masks, float(T), init, generator)
    if math.isinf(T) and not all(has_uniform(energy.spaces[n]) for n in ordered):
        raise ValueError(
            "T=inf is the uniform distribution, which exists on finite or bounded spaces only"
        )
    return query


def has_uniform(space: Space) -> bool:
    """Whether a uniform distribution exists: the space is finite or bounded."""
    if isinstance(space, Sequence):
        return has_uniform(space.item)
    return (
        space.is_finite or isinstance(space, Simplex) or (isinstance(space, Real) and space.bounded)
    )


def check_values(energy: Energy, values: Mapping[str, Rows]) -> None:
    """Same batch size, right event shape, one device, the energy's floating dtype."""
    if not values:
        return
    batch_size(values)
    device, dtype = energy.placement(values)
    for name, v in values.items():
        if not in_memory(v):
            continue  # what the files hold shows when they are read
        space = energy.spaces.get(name)
        if space is not None and not space.fits(v):
            got = tuple(v.shape) if isinstance(v, Tensor) else describe(v)
            raise ShapeError(
                f"{name!r} must {space.expected()} for {space!r}, got {got} "
                f"(all: {shapes_of(values)})"
            )
        if v.device != device:
            raise ValueError(
                f"{name!r} is on {v.device} but {type(energy).__name__} is on {device}; move one "
                "with .to(...)"
            )
        own = floating_dtype(v)
        if own is not None and own != dtype:
            raise TypeError(
                f"{name!r} is {own} but {type(energy).__name__} is {dtype}; convert one with "
                ".to(...)"
            )


def check_energies(e: Tensor, energy: Energy, what: str = "energy") -> Tensor:
    """Return ``e``; NaN or −inf raises ``FloatingPointError`` naming the first bad row."""
    # one pass when all is well: the least value is NaN if any is
    if not e.numel() or float(e.detach().amin()) > -math.inf:
        return e
    bad = torch.isnan(e) | (e == -math.inf)
    if bool(bad.any()):
        row = int(bad.reshape(e.shape[0], -1).any(1).nonzero()[0])
        raise FloatingPointError(
            f"the {what} of {type(energy).__name__} is {e.reshape(e.shape[0], -1)[row].tolist()} "
            f"in row {row}; energies are real or +inf"
        )
    return e


def check_possible(e: Tensor, energy: Energy) -> Tensor:
    """A row of a table ``(B, K)`` whose values are all +inf has no distribution: ``ValueError``."""
    impossible = torch.isposinf(e.detach().amin(-1))
    if bool(impossible.any()):
        row = int(impossible.nonzero()[0, 0])
        raise ValueError(
            f"every value of {type(energy).__name__} is forbidden (+inf) in row {row}; at least "
            "one value needs a finite energy"
        )
    return e


__all__ = [
    "OPERATIONS",
    "Draws",
    "Free",
    "FreeEnergy",
    "Kind",
    "Method",
    "Minimum",
    "Operation",
    "Query",
    "ask",
    "check_energies",
    "check_possible",
    "check_values",
    "replace",
    "split_free",
]
