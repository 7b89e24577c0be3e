r"""Inference inside learning: which method computes a term, decided before any computation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.exact import exact_free_energy, marginal_way, minimum_way
from groundstate.errors import Unsupported
from groundstate.infer import dispatch
from groundstate.infer.base import Method, Operation
from groundstate.learn.base import Batch

if TYPE_CHECKING:
    from groundstate.learn.rules.common import Plan


def choose(
    energy: Energy,
    operation: Operation,
    free: tuple[str, ...],
    approximate: tuple[Method, ...] = (),
) -> tuple[Method | None, str | None]:
    """The method that will run and None, or None and the reason why none does."""
    try:
        return dispatch.choose(energy, operation, free), None
    except Unsupported as error:
        for method in approximate:
            if method.reason_against(energy, operation, free) is None:
                return method, None
        reason = str(error).replace("named with method=", "named with approximate=")
    return None, reason


def hide(
    energy: Energy,
    latents: tuple[str, ...],
    how: Any,
    T: float,
    approximate: tuple[Method, ...],
) -> tuple[Energy, bool]:
    """The energy of the other variables, latents summed or minimised out, and whether exactly."""
    if not latents:
        return energy, True
    if how == "minimise" or T == 0:
        method, _ = choose(energy, "minimise", latents)
        exact = method is not None and method.exact
        known = minimum_way(energy, latents) is not None
        return energy.minimal(*latents, method=None if known else method), exact
    if marginal_way(energy, latents, T) is not None:
        return energy.marginal(*latents, T=T), how == "marginalise"
    method, _ = choose(energy, "marginalise", latents, approximate)
    if method is None:
        return energy, False  # a bound stands in for the sum
    return energy.marginal(*latents, T=T, method=method), method.exact and how == "marginalise"


def minimum(plan: Plan, batch: Batch, generator: torch.Generator | None) -> Tensor:
    """The lowest energy over the contrasted variables, ``(B,)``, with the envelope gradient."""
    known = plan.known(batch)
    start = {name: batch[name] for name in plan.over}
    found = dispatch.minimise(
        plan.view, plan.over, known, method=plan.method, init=start, generator=generator
    )
    rows = start[plan.over[0]].shape[0]
    winner = {name: spread(v, rows) for name, v in found.values.items()}
    return plan.view(**known, **winner)


def free_energy_of(
    energy: Energy,
    free: tuple[str, ...],
    known: Mapping[str, Tensor],
    T: float,
    method: Method | None,
    generator: torch.Generator | None,
) -> Tensor:
    """``F`` over ``free``, ``(B,)`` or ``(1,)``, differentiable in θ."""
    if method is None or method.exact:
        value = exact_free_energy(energy, free, known, T)
        if value is not None:
            return value
    return dispatch.marginalise(energy, free, known, T=T, method=method, generator=generator).value


def theta_free(energy: Energy, free: tuple[str, ...], T: float = 1.0) -> bool:
    """Whether the normaliser over ``free`` is declared and does not depend on θ.

    Asked of one drawn row: a normaliser without θ comes without a graph.
    """
    names = energy.ordered(free)
    if T == 1 and energy.normalised == frozenset(names):
        return True
    declared = energy.ability("log_partition", *names)
    if declared is None or T == 0 or math.isinf(T):
        return False
    device, dtype = energy.placement()
    generator = torch.Generator(device=device).manual_seed(0)
    given = {
        name: space.draw(1, generator=generator, device=device, dtype=dtype)
        for name, space in energy.spaces.items()
        if name not in names
    }
    try:
        with torch.enable_grad():
            value: Tensor = declared(**given, T=T)
    except Unsupported:
        return False
    return not value.requires_grad


@contextmanager
def held(module: nn.Module) -> Iterator[None]:
    """Hold the parameters of a module: nothing computed inside has a gradient in them."""
    learned = [p for p in module.parameters() if p.requires_grad]
    for p in learned:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in learned:
            p.requires_grad_(True)


def spread(v: Tensor, rows: int) -> Tensor:
    """One answer for all rows when nothing was given."""
    return v if v.shape[0] == rows else v.expand(rows, *v.shape[1:])


def suggested(energy: Energy) -> tuple[Method, ...]:
    """Approximate sums worth naming for this energy: a grid in few dimensions, else draws."""
    from groundstate.infer.exact.quadrature import Quadrature
    from groundstate.infer.sampling.importance import Importance

    return (Quadrature(points=16), Importance(n=64))


__all__ = [
    "choose",
    "free_energy_of",
    "held",
    "hide",
    "minimum",
    "replace",
    "spread",
    "suggested",
    "theta_free",
]
