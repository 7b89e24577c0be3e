r"""Brute force on small spaces: all energies listed, all integrals on a grid.

The oracle of ``gradcheck``: it calls the energy on values and uses none of its abilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from groundstate.energy.base import Energy, batch_size
from groundstate.energy.spaces import Real, Space

LIMIT = 2**16  # grid points or listed values per row
_POINTS = {1: 8001, 2: 241}  # points per real axis, by number of real axes
_REACH = {1: 25.0, 2: 6.0}  # half width of the grid of u; x = sinh(u) reaches far


def rows_of(energy: Energy, given: Mapping[str, Tensor]) -> int:
    return batch_size(given) if given else energy.rows or 1


def energies(energy: Energy, names: tuple[str, ...], given: Mapping[str, Tensor]) -> Tensor:
    """e for all joint values of finite variables, ``(B, K)``, first variable most significant."""
    values, _ = _grid(energy, names)
    return _evaluate(energy, values, given)


def log_partition(
    energy: Energy, names: tuple[str, ...], given: Mapping[str, Tensor], T: float = 1.0
) -> Tensor | None:
    """log Z over finite and up to two real dimensions, ``(B,)``; None where it is too large."""
    spaces = [energy.spaces[n] for n in names]
    axes = sum(math.prod(s.shape) for s in spaces if isinstance(s, Real))
    listed = math.prod(s.size for s in spaces if s.is_finite)
    if any(not s.is_finite and not isinstance(s, Real) for s in spaces) or axes > 2:
        return None
    if listed * (_POINTS[axes] ** axes if axes else 1) > 4 * LIMIT:
        return None
    values, log_volume = _grid(energy, names, axes)
    return torch.logsumexp(log_volume - _evaluate(energy, values, given) / T, 1)


def _grid(
    energy: Energy, names: tuple[str, ...], axes: int = 0
) -> tuple[dict[str, Tensor], Tensor]:
    """Joint values by name, each ``(K, *event)``, and the log volume of each, ``(K,)``."""
    values: dict[str, Tensor] = {}
    log_volume = torch.zeros(1, dtype=torch.float64)
    for name in names:
        own, volume = _axis_points(energy.spaces[name], axes)
        k, n = len(log_volume), len(own)
        values = {m: u.repeat_interleave(n, 0) for m, u in values.items()}
        values[name] = own.repeat(k, *(1,) * (own.ndim - 1))
        log_volume = log_volume.repeat_interleave(n) + volume.repeat(k)
    return values, log_volume


def _axis_points(space: Space, axes: int) -> tuple[Tensor, Tensor]:
    if not isinstance(space, Real):
        own = space.enumerate(None, torch.float64)
        return own, torch.zeros(len(own), dtype=torch.float64)
    u = torch.linspace(-_REACH[axes], _REACH[axes], _POINTS[axes], dtype=torch.float64)
    log_h = math.log(float(u[1] - u[0]))
    if space.bounded:  # x = low + (high - low) σ(u)
        assert space.low is not None and space.high is not None
        width = space.high - space.low
        x = space.low + width * torch.sigmoid(u)
        jacobian = (
            math.log(width) - torch.nn.functional.softplus(u) - torch.nn.functional.softplus(-u)
        )
    elif space.low is not None:  # x = low + exp(u)
        x, jacobian = space.low + u.exp(), u
    else:
        x, jacobian = torch.sinh(u), torch.cosh(u).log()
    d = math.prod(space.shape)
    points = torch.cartesian_prod(*[x] * d).reshape(-1, d)
    volume = torch.cartesian_prod(*[jacobian + log_h] * d).reshape(-1, d).sum(1)
    return points.reshape(-1, *space.shape), volume


def _evaluate(energy: Energy, values: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Tensor:
    rows = rows_of(energy, given)
    k = len(next(iter(values.values())))
    out = []
    with torch.no_grad():
        for i in range(rows):
            one = {n: v[i : i + 1].expand(k, *v.shape[1:]) for n, v in given.items()}
            out.append(energy(**one, **values))
    return torch.stack(out)
