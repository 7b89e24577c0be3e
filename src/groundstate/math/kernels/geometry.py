r"""What kernels read off two sets of rows: squared distances and dot products, computed once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

EXACT_WIDTH = 32  # up to this many features differences are formed, which loses no digits


class Geometry:
    r"""Pairs of rows :math:`(x_i, z_j)`; with ``z=None`` the pairs of x with itself.

    Leading axes are batches: ``x`` of shape ``(..., n, d)``.

    Attributes
    ----------
    x, z : Tensor, ``(..., n, d)``, ``(..., m, d)``
    same : whether z is x, draw for draw, so that noise is on the diagonal
    """

    def __init__(self, x: Tensor, z: Tensor | None = None) -> None:
        self.x, self.same = x, z is None
        self.z = x if z is None else z
        self._squared: Tensor | None = None
        self._dot: Tensor | None = None

    def shape(self) -> tuple[int, ...]:
        return (*self.x.shape[:-1], self.z.shape[-2])

    def squared(self, scale: Any) -> Tensor:
        r""":math:`\sum_k (x_{ik} - z_{jk})^2/\ell_k^2` for one ℓ or one per feature."""
        if isinstance(scale, Tensor) and scale.ndim:
            if scale.shape[0] != self.x.shape[-1]:
                raise ValueError(
                    f"the kernel has {scale.shape[0]} length scales for {self.x.shape[-1]} features"
                )
            return self._of(self.x / scale, self.z if self.same else self.z / scale)
        return self.plain() * (1.0 / scale**2)

    def plain(self) -> Tensor:
        """Squared distances at length one."""
        if self._squared is None:
            self._squared = self._of(self.x, self.z)
        return self._squared

    def distance(self, scale: Any) -> Tensor:
        """Square root of ``squared`` with derivative zero at distance zero."""
        d2 = self.squared(scale)
        apart = d2 != 0  # NaN stays NaN: a row with a gap is like no other
        return torch.where(apart, torch.where(apart, d2, 1.0).sqrt(), 0.0)

    def dot(self) -> Tensor:
        if self._dot is None:
            self._dot = self.x @ self.z.mT
        return self._dot

    def _of(self, x: Tensor, z: Tensor) -> Tensor:
        z = x if self.same else z
        plain = not (torch.is_grad_enabled() and (x.requires_grad or z.requires_grad))
        if plain and x.device.type == "cpu" and x.shape[-1] <= EXACT_WIDTH:
            mode = "donot_use_mm_for_euclid_dist"
            return torch.cdist(x, z, compute_mode=mode).square_()
        return squared_by_product(x, z, self.same)

    def diagonal(self, value: Any) -> Tensor:
        """A number on the diagonal where z is x, zero elsewhere."""
        if not self.same:
            return self.x.new_zeros(1, 1).expand(self.shape())
        value = value if isinstance(value, Tensor) else self.x.new_tensor(value)
        return torch.diag_embed(value.expand(self.x.shape[:-1]))


def squared_by_product(x: Tensor, z: Tensor, same: bool) -> Tensor:
    """Squared distances from one matrix product, about the mean so that offsets cost no digits."""
    centre = z.mean(-2, keepdim=True).detach()
    x = x - centre
    z = x if same else z - centre
    a = x.square().sum(-1)
    b = a if same else z.square().sum(-1)
    d2 = (a[..., :, None] + b[..., None, :] - 2 * (x @ z.mT)).clamp(min=0)
    if same:
        n = x.shape[-2]
        d2 = d2.masked_fill(torch.eye(n, dtype=torch.bool, device=x.device), 0.0)
    return d2
