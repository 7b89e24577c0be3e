r"""Proposals :math:`q(v'\mid v)` of the Metropolis sampler, one for each kind of space."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor

from groundstate.energy.spaces import Levels, Real, Sequence, Simplex, Space
from groundstate.errors import Unsupported
from groundstate.infer.exact.grid import alphabet


class Proposal(Protocol):
    r"""How to suggest a new value of one variable.

    ``propose`` returns the suggestion ``(C, *event)`` and the correction
    :math:`\log q(v\mid v') - \log q(v'\mid v)`, ``(C,)``, or None when q is symmetric.
    ``outcomes`` lists all suggestions with their probabilities; only ``kernel_matrix`` needs it.
    """

    def propose(self, v: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor | None]: ...

    def outcomes(self, v: Tensor) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]: ...


class Walk:
    """``v' = v + scale * noise`` on the coordinates that may move; symmetric."""

    def __init__(self, space: Space, mask: Tensor | None, scale: float) -> None:
        self.space, self.mask = space, mask
        self.scale: float | Tensor = scale  # a tensor (B,) when it adapts by row
        self.box = space.item if isinstance(space, Sequence) else space

    def noise(self, n: int, v: Tensor, generator: torch.Generator) -> Tensor:
        size = (n, *v.shape)
        return torch.randn(size, generator=generator, device=v.device, dtype=v.dtype)

    def move(self, v: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.mask is not None:
            noise = noise * self.mask
        return v + _by_row(self.scale, v) * noise, None

    def inside(self, v: Tensor) -> Tensor | None:
        """Rows within the box, ``(C,)``, None when there is none."""
        if isinstance(self.box, Real) and (self.box.low is not None or self.box.high is not None):
            return self.space.contains(v)
        return None

    def propose(self, v: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        return self.move(v, self.noise(1, v, generator)[0])

    def outcomes(self, v: Tensor) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]:
        raise Unsupported("a walk on real values has a continuum of outcomes")


class LogisticWalk(Walk):
    r"""``v' = softmax(log v + scale * noise)`` on a simplex.

    Symmetric in log ratios, so the correction is the ratio of volumes,
    :math:`\sum_i \log v'_i - \log v_i`.
    """

    def move(self, v: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        tiny = torch.finfo(v.dtype).tiny
        old = v.clamp_min(tiny).log()
        new = torch.log_softmax(old + _by_row(self.scale, v) * noise, -1)
        return new.exp(), new.sum(-1) - old.sum(-1)

    def inside(self, v: Tensor) -> Tensor | None:
        return None


def _by_row(scale: float | Tensor, v: Tensor) -> float | Tensor:
    if isinstance(scale, float):
        return scale
    repeated = scale.repeat(v.shape[0] // scale.shape[0])  # (C,)
    return repeated.reshape(-1, *(1,) * (v.ndim - 1))


class OneSite:
    """Change one coordinate, chosen uniformly among those that may move, to another value."""

    def __init__(self, space: Space, mask: Tensor | None) -> None:
        size = alphabet(space)
        assert size is not None
        self.size = size
        self.sites = math.prod(space.shape)
        self.mask = None if mask is None else mask.reshape(mask.shape[0], -1)  # (C, m)

    def noise(self, n: int, v: Tensor, generator: torch.Generator) -> Tensor:
        size = (n, 2, v.shape[0])
        return torch.rand(size, generator=generator, device=v.device, dtype=torch.float64)

    def move(self, v: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.changed(v, self.site(noise[0]), 1 + (noise[1] * (self.size - 1)).long()), None

    def site(self, u: Tensor) -> Tensor:
        """The coordinate picked at uniform ``u`` ``(C,)``; −1 where nothing may move."""
        if self.mask is None:
            return (u * self.sites).long().clamp_max(self.sites - 1)
        count = self.mask.cumsum(1)  # (C, m)
        rank = (u * count[:, -1]).long()
        picked = (count <= rank[:, None]).sum(1)
        return torch.where(count[:, -1] > 0, picked, -1)

    def changed(self, v: Tensor, site: Tensor, by: Tensor | int) -> Tensor:
        """``v`` with ``by`` in 1..K−1 added modulo K at one coordinate per row."""
        if self.size == 1:
            return v
        flat = v.reshape(v.shape[0], -1)
        where = site.clamp_min(0)[:, None]
        old = flat.gather(1, where)
        by = by[:, None] if isinstance(by, Tensor) else by
        new = torch.where(site[:, None] >= 0, (old + by) % self.size, old)
        return flat.scatter(1, where, new.to(flat.dtype)).reshape(v.shape)

    def inside(self, v: Tensor) -> Tensor | None:
        return None

    def propose(self, v: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        return self.move(v, self.noise(1, v, generator)[0])

    def outcomes(self, v: Tensor) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]:
        rows = v.shape[0]
        free = torch.ones(rows, self.sites, dtype=torch.bool, device=v.device)
        if self.mask is not None:
            free = self.mask.expand(rows, -1)
        share = free.double() / free.sum(1, keepdim=True).clamp_min(1)  # (C, m)
        yield (free.sum(1) == 0).double(), v, None
        for i in range(self.sites):
            site = torch.where(free[:, i], i, -1)
            for by in range(1, self.size):
                yield share[:, i] / (self.size - 1), self.changed(v, site, by), None


class OneColumn(OneSite):
    """`OneSite` for columns with numbers of levels of their own; one of numbers takes a normal step."""

    def __init__(self, space: Levels, mask: Tensor | None, scale: float = 1.0) -> None:
        self.sizes = torch.tensor(space.sizes)
        self.scale: float | Tensor = scale  # a tensor (B,) when it adapts by row
        self.sites = len(space.sizes)
        self.mask = None if mask is None else mask.reshape(mask.shape[0], -1)  # (C, m)

    def move(self, v: Tensor, noise: Tensor) -> tuple[Tensor, Tensor | None]:
        site = self.site(noise[0])
        most = self.sizes.to(v.device)[site.clamp_min(0)]
        by = (1 + (noise[1] * (most - 1)).long()).to(v.dtype)
        if bool((self.sizes == 0).any()):
            step = torch.special.ndtri(noise[1].clamp(1e-16, 1 - 1e-16)).to(v.dtype)
            by = torch.where(most == 0, step * _by_row(self.scale, step), by)
        return self.changed(v, site, by), None

    def changed(self, v: Tensor, site: Tensor, by: Tensor | int) -> Tensor:
        where = site.clamp_min(0)[:, None]
        old, size = v.gather(1, where), self.sizes.to(v.device)[where]
        by = by[:, None] if isinstance(by, Tensor) else by
        new = torch.where(size > 0, (old + by) % size.clamp_min(1), old + by)
        new = torch.where((site[:, None] >= 0) & (size != 1), new, old)
        return v.scatter(1, where, new.to(v.dtype))

    def outcomes(self, v: Tensor) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]:
        if bool((self.sizes == 0).any()):
            raise Unsupported("a walk on real values has a continuum of outcomes")
        rows = v.shape[0]
        free = torch.ones(rows, self.sites, dtype=torch.bool, device=v.device)
        if self.mask is not None:
            free = self.mask.expand(rows, -1)
        share = free.double() / free.sum(1, keepdim=True).clamp_min(1)  # (C, m)
        yield (free.sum(1) == 0).double(), v, None
        for i, size in enumerate(self.sizes.tolist()):
            site = torch.where(free[:, i], i, -1)
            if size == 1:
                yield share[:, i], v, None
            for by in range(1, size):
                yield share[:, i] / (size - 1), self.changed(v, site, by), None


def proposal_for(space: Space, mask: Tensor | None, scale: float) -> Any:
    """The default proposal on a space."""
    if isinstance(space, Simplex):
        if mask is not None:
            raise Unsupported("a point of a simplex cannot be known in part")
        return LogisticWalk(space, None, scale)
    if alphabet(space) is not None:
        return OneSite(space, mask)
    if isinstance(space, Levels):
        return OneColumn(space, mask, scale)
    return Walk(space, mask, scale)
