r"""The ends of the temperature scale: ``T=0`` is the minimum, ``T=inf`` the uniform distribution."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.errors import Unsupported
from groundstate.infer.base import Draws, Free, FreeEnergy, Method, Query
from groundstate.math.info.free_energy import boltzmann_logits


def logits(table: Tensor, T: float) -> Tensor:
    """Logits :math:`-e/T` of a table ``(B, K)``, with the limits taken exactly."""
    if T == 0:
        first = torch.nn.functional.one_hot(table.argmin(-1), table.shape[-1])
        return torch.zeros_like(table).masked_fill(first == 0, -math.inf)
    return boltzmann_logits(table, T)


def coldest(query: Query, method: Method) -> FreeEnergy:
    r"""``F`` at T=0: :math:`\min_v e`, differentiated with the minimiser held fixed."""
    found = method.minimise(query)
    values = {name: v.detach() for name, v in found.values.items()}
    return FreeEnergy(query.evaluate(values), "exact" if found.exact else "upper")


def hottest(query: Query, free: Free, method: Method | None) -> FreeEnergy:
    """The mean energy over all values, the limit of ``F + T log K``."""
    from groundstate.infer.exact.chain import Chain
    from groundstate.infer.exact.enumerate import Enumerate

    if method is None:
        options: tuple[Method, ...] = (Chain(), Enumerate())
    else:
        options = (method,)
    reasons = []
    for option in options:
        if not isinstance(option, (Chain, Enumerate)):
            reasons.append(f"{type(option).__name__} has no limit T=inf")
            continue
        reason = option.reason_against(query.energy, "marginalise", free, query.given)
        if reason is None:
            return option.marginalise(query)
        reasons.append(f"{type(option).__name__}: {reason}")
    raise Unsupported(
        f"the mean energy of {', '.join(query.free)} of {type(query.energy).__name__} at T=inf "
        f"cannot be listed ({'; '.join(reasons)}); use a finite temperature"
    )


def frozen(query: Query, method: Method, n: int) -> Draws:
    """``n`` copies of the minimiser: the distribution at T=0."""
    found = method.minimise(query)
    values = {name: v.detach().expand(n, *v.shape) for name, v in found.values.items()}
    energy = found.energy.detach().expand(n, -1)
    return Draws(values, energy, "exact" if found.exact else "approximate")


@torch.no_grad()
def uniform(query: Query, n: int) -> Draws:
    """Draws of the uniform distribution: at T=inf only what is forbidden still matters."""
    from groundstate.infer.exact.closed import energies_of

    generator = query.generator or Key.of(None).torch(query.device)
    values: dict[str, Tensor] = {}
    for name in query.free:
        space, b = query.space(name), query.rows
        flat = space.draw(n * b, generator=generator, device=generator.device, dtype=query.dtype)
        flat = flat.to(query.device)
        v = flat.reshape(n, b, *space.shape)
        if name in query.masks:
            v = torch.where(query.masks[name], v, query.given[name])
        values[name] = v
    energy = energies_of(query, values)
    if bool(torch.isposinf(energy).any()):
        raise Unsupported(
            f"{type(query.energy).__name__} forbids some values (+inf), so its distribution at T=inf is "
            "not uniform on the space; use a large finite temperature"
        )
    return Draws(values, energy, "exact")
