r"""Real variables as one vector per row, with their boxes, simplices and known coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real, Sequence, Simplex, Space
from groundstate.infer.base import Query

LOGIT_REACH = 1.0  # longest step of a logit in one iteration


def bounds(space: Space) -> tuple[float, float]:
    """The box of a real space, infinite where it has none."""
    if isinstance(space, Sequence):
        return bounds(space.item)
    if isinstance(space, Real):
        low = -math.inf if space.low is None else space.low
        return low, math.inf if space.high is None else space.high
    return -math.inf, math.inf


def is_simplex(space: Space) -> bool:
    """Whether values are probability vectors."""
    return isinstance(space, Simplex) or (isinstance(space, Sequence) and is_simplex(space.item))


def no_gradient(energy: Energy, name: str) -> str | None:
    """Why an energy has no gradient in a variable, or None; computes nothing."""
    space = energy.spaces[name]
    if not space.is_real:
        return f"{name!r} in {space!r} is not real, there is no gradient"
    if any(name in getattr(part, "held", ()) for part in energy.modules()):
        return f"{name!r} is held fixed by the energy, no gradient flows into it"
    return None


class Pack:
    """The free real variables of a question as columns of ``(B, D)``.

    Simplices are packed as logits and unpacked by softmax, so a box is the only constraint left.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.sizes = {n: math.prod(query.space(n).shape) for n in query.free}
        self.dim = sum(self.sizes.values())
        edges = [(bounds(query.space(n)), k) for n, k in self.sizes.items()]
        low = [b[0] for b, k in edges for _ in range(k)]
        high = [b[1] for b, k in edges for _ in range(k)]
        self.low = torch.tensor(low, device=query.device, dtype=query.dtype)  # (D,)
        self.high = torch.tensor(high, device=query.device, dtype=query.dtype)
        logits = [is_simplex(query.space(n)) for n, k in self.sizes.items() for _ in range(k)]
        far = torch.tensor([LOGIT_REACH if soft else math.inf for soft in logits])
        # a softmax is flat far out: one long step there would never come back
        self.reach = far.to(self.low) if any(logits) else None  # (D,)
        self.unknown: Tensor | None = None  # (B, D) when some coordinates are known
        if query.masks:
            parts = [
                query.masks[n].reshape(query.rows, -1)
                if n in query.masks
                else torch.ones(query.rows, k, dtype=torch.bool, device=query.device)
                for n, k in self.sizes.items()
            ]
            self.unknown = torch.cat(parts, 1)

    def pack(self, values: Mapping[str, Tensor]) -> Tensor:
        """``(R, *event)`` values to ``(R, D)``."""
        columns = []
        for name in self.sizes:
            v = values[name]
            if is_simplex(self.query.space(name)):
                v = v.clamp_min(torch.finfo(v.dtype).tiny).log()
            columns.append(v.reshape(len(v), -1))
        return torch.cat(columns, 1)

    def unpack(self, u: Tensor) -> dict[str, Tensor]:
        """``(R, D)`` to values ``(R, *event)``."""
        values = {}
        for (name, _), part in zip(
            self.sizes.items(), torch.split(u, list(self.sizes.values()), 1), strict=True
        ):
            v = part.reshape(len(u), *self.query.space(name).shape)
            values[name] = v.softmax(-1) if is_simplex(self.query.space(name)) else v
        return values

    def starts(self, n: int) -> Tensor:
        """``n`` start points for every row, ``(n, B, D)``: the same for each row but for ``init``.

        Shared starts make a row's answer independent of the rows it is asked with.
        """
        query = self.query
        generator = query.generator or Key.of(0).torch(query.device)
        drawn = {
            name: query.space(name)
            .draw(n, generator=generator, device=generator.device, dtype=query.dtype)
            .to(query.device)
            for name in self.sizes
        }
        u = self.pack(drawn)[:, None].repeat(1, query.rows, 1)  # (n, B, D)
        at = 0
        for name, k in self.sizes.items():
            if query.init is not None and name in query.init:
                first = self.pack_one(name, query.init[name])
                u[0, :, at : at + k] = first.expand(query.rows, -1)
            if name in query.masks:
                known = query.given[name].reshape(query.rows, -1)
                hidden = query.masks[name].reshape(query.rows, -1)
                u[:, :, at : at + k] = torch.where(hidden, u[:, :, at : at + k], known)
            at += k
        return u

    def pack_one(self, name: str, v: Tensor) -> Tensor:
        if is_simplex(self.query.space(name)):
            v = v.clamp_min(torch.finfo(v.dtype).tiny).log()
        return v.reshape(len(v), -1)


def squash(u: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Map the line into ``[low, high]``, with the log of the Jacobian of every coordinate.

    A half-line is reached by an exponential, an interval by a sigmoid, the line is left alone.
    """
    above, below = torch.isfinite(low), torch.isfinite(high)
    if not bool(above.any() or below.any()):
        return u, torch.zeros_like(u)
    both = above & below
    lo, hi = low.nan_to_num(neginf=0.0), high.nan_to_num(posinf=0.0)
    width = torch.where(both, hi - lo, torch.ones_like(lo))
    grown = u.clamp(max=80.0).exp()
    v = torch.where(above, lo + grown, torch.where(below, hi - grown, u))
    v = torch.where(both, lo + width * u.sigmoid(), v)
    sigmoids = torch.nn.functional.logsigmoid(u) + torch.nn.functional.logsigmoid(-u)
    log_j = torch.where(above | below, u, torch.zeros_like(u))
    return v, torch.where(both, sigmoids + width.log(), log_j)


def unsquash(v: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The inverse of ``squash``; values at an edge are taken a little inside."""
    above, below = torch.isfinite(low), torch.isfinite(high)
    both = above & below
    lo, hi = low.nan_to_num(neginf=0.0), high.nan_to_num(posinf=0.0)
    tiny = torch.finfo(v.dtype).eps
    u = torch.where(above, (v - lo).clamp_min(tiny).log(), v)
    u = torch.where(below & ~above, (hi - v).clamp_min(tiny).log(), u)
    share = (v - lo) / torch.where(both, hi - lo, torch.ones_like(lo))
    return torch.where(both, share.clamp(tiny, 1 - tiny).logit(), u)
