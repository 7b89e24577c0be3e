r"""Finite product spaces as integers in mixed radix.

Every finite space is a product of coordinates with a small alphabet, so a joint value of several
variables is one code in ``0..K-1``: the first variable and its first coordinate most significant.
With masks only the unknown coordinates of a row take part; the known ones stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from groundstate.energy.spaces import Binary, Finite, Levels, Sequence, Space


def alphabet(space: Space) -> int | None:
    """Number of values of one coordinate, or None for a continuum."""
    if isinstance(space, Finite):
        return space.n
    if isinstance(space, Binary):
        return 2
    if isinstance(space, Sequence):
        return alphabet(space.item)
    if isinstance(space, Levels) and len(set(space.sizes)) == 1 and space.is_finite:
        return space.sizes[0]
    return None


def unknown_of(
    spaces: Mapping[str, Space], masks: Mapping[str, Tensor], lengths: Tensor | None
) -> dict[str, Tensor]:
    """Masks of the unknown coordinates; items behind a row's length are never unknown."""
    masks = dict(masks)
    if lengths is not None:
        for name, space in spaces.items():
            if isinstance(space, Sequence):
                at = torch.arange(space.max_length, device=lengths.device)
                inside = (at < lengths[:, None]).reshape(
                    len(lengths), space.max_length, *(1,) * len(space.item.shape)
                )
                inside = inside.expand(len(lengths), *space.shape)
                masks[name] = masks[name] & inside if name in masks else inside
    return masks


def count(spaces: Mapping[str, Space], masks: Mapping[str, Tensor]) -> float:
    """Number of joint values a row can take at most; ``inf`` when a space is a continuum."""
    digits = 0.0
    total = 1.0
    for name, space in spaces.items():
        a = alphabet(space)
        if a is None:
            return math.inf
        m = math.prod(space.shape)
        if name in masks:
            m = int(masks[name].flatten(1).sum(1).max()) if masks[name].ndim > 1 else 1
        digits += m * math.log10(max(a, 1))
        if digits > 300:  # of long texts, more than a float counts
            return math.inf
        total *= float(a) ** m
    return total


class Grid:
    """The joint values of finite variables, decoded from codes a chunk at a time.

    Parameters
    ----------
    spaces : the variables in order of significance
    masks : unknown coordinates ``(B, *event)`` of the partly known variables
    known : values ``(B, *event)`` of the partly known variables
    """

    def __init__(
        self,
        spaces: Mapping[str, Space],
        masks: Mapping[str, Tensor] | None = None,
        known: Mapping[str, Tensor] | None = None,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype,
    ) -> None:
        self.spaces = dict(spaces)
        self.masks = dict(masks or {})
        self.known = dict(known or {})
        self.device, self.dtype = device, dtype
        self.radix: dict[str, tuple[int, int]] = {}  # name -> (alphabet, coordinates)
        self.place: dict[str, Tensor] = {}  # name -> (B, m) positions of unknown coordinates
        self.used: dict[str, Tensor] = {}  # name -> (B, m) whether the row has that many
        for name, space in self.spaces.items():
            a = alphabet(space)
            assert a is not None
            m = math.prod(space.shape)
            if name in self.masks:
                flat = self.masks[name].reshape(len(self.masks[name]), -1)  # (B, D)
                m = int(flat.sum(1).max())
                # a stable sort puts the unknown positions first and keeps their order
                order = torch.sort(flat.to(torch.uint8), dim=1, descending=True, stable=True)
                self.place[name] = order.indices[:, :m]
                self.used[name] = order.values[:, :m].bool()
            self.radix[name] = (a, m)
        self.size = math.prod(a**m for a, m in self.radix.values())

    @property
    def varies(self) -> bool:
        """Whether rows have different values, because of masks."""
        return bool(self.masks)

    def digits(self, codes: Tensor) -> dict[str, Tensor]:
        """Digits of each variable, ``(c, m)``."""
        found: dict[str, Tensor] = {}
        rest = codes
        for name in reversed(self.spaces):
            a, m = self.radix[name]
            weights = torch.tensor([a**i for i in range(m - 1, -1, -1)], device=codes.device)
            found[name] = (rest[:, None] // weights) % a
            rest = rest // a**m
        return found

    def shared(self, codes: Tensor) -> dict[str, Tensor]:
        """Values ``(c, *event)`` of whole variables, in the order of the spaces."""
        digits = self.digits(codes)
        return {
            name: digits[name].to(space.dtype(self.dtype)).reshape(len(codes), *space.shape)
            for name, space in self.spaces.items()
        }

    def rows(self, codes: Tensor, batch: int) -> tuple[dict[str, Tensor], Tensor | None]:
        """Values ``(B*c, *event)`` of every row, and which codes exist for it, ``(B, c)``."""
        c = len(codes)
        if not self.varies:
            return {
                name: v.repeat(batch, *(1,) * (v.ndim - 1))
                for name, v in self.shared(codes).items()
            }, None
        digits, values = self.digits(codes), {}
        exists = torch.ones(batch, c, dtype=torch.bool, device=codes.device)
        for name, space in self.spaces.items():
            d = digits[name].to(space.dtype(self.dtype))  # (c, m)
            if name not in self.masks:
                values[name] = d.repeat(batch, 1).reshape(batch * c, *space.shape)
                continue
            flat = self.known[name].reshape(batch, 1, -1).repeat(1, c, 1)  # (B, c, D)
            m = d.shape[1]
            place = self.place[name][:, None, :].expand(batch, c, m)
            used = self.used[name][:, None, :]  # (B, 1, m)
            # padded digits write the known value back, and only their code zero exists
            kept = torch.gather(flat, 2, place)
            flat.scatter_(2, place, torch.where(used, d.to(flat.dtype).expand(batch, c, m), kept))
            exists &= (used | (d == 0)).all(2)
            values[name] = flat.reshape(batch * c, *space.shape)
        return values, exists

    def take(self, codes: Tensor) -> dict[str, Tensor]:
        """The value of one code per row, ``codes`` ``(n, B)`` -> ``(n, B, *event)``."""
        n, batch = codes.shape
        if not self.varies:
            return {
                name: v.reshape(n, batch, *self.spaces[name].shape)
                for name, v in self.shared(codes.reshape(-1)).items()
            }
        digits, values = self.digits(codes.reshape(-1)), {}
        for name, space in self.spaces.items():
            d = digits[name].to(space.dtype(self.dtype)).reshape(n, batch, -1)  # (n, B, m)
            if name in self.masks:
                flat = self.known[name].reshape(1, batch, -1).repeat(n, 1, 1)
                place = self.place[name].expand(n, -1, -1)
                kept = torch.gather(flat, 2, place)
                flat.scatter_(2, place, torch.where(self.used[name], d.to(flat.dtype), kept))
                d = flat
            values[name] = d.reshape(n, batch, *space.shape)
        return values

    def codes(self, values: Mapping[str, Tensor]) -> Tensor:
        """Codes of joint values ``(..., *event)`` of whole variables."""
        total: Tensor | None = None
        for name, space in self.spaces.items():
            a, m = self.radix[name]
            v = values[name]
            flat = v.reshape(*v.shape[: v.ndim - len(space.shape)], -1).long()  # (..., m)
            weights = torch.tensor([a**i for i in range(m - 1, -1, -1)], device=flat.device)
            code = (flat * weights).sum(-1)
            total = code if total is None else total * a**m + code
        assert total is not None
        return total
