"""Moves of images and series by whole places, and turns of images."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.nn.augment.base import Rng, Transform, uniform


class Flip(Transform):
    """Mirror along an axis, by default left and right in half of the examples."""

    moves = True

    def __init__(self, axis: int = -1, p: float = 0.5, label_preserving: bool = True) -> None:
        super().__init__(p, label_preserving)
        self.axis = axis

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        return x.flip(self.axis)


class Shift(Transform):
    """Move by up to ``by`` places along every one of the last ``axes`` axes; ``fill`` comes in.

    Images are ``(B, C, H, W)`` with ``axes=2``, series ``(B, C, T)`` or ``(B, T)`` with ``axes=1``.
    """

    moves = True

    def __init__(
        self, by: int = 2, axes: int = 2, fill: float = 0.0, p: float = 1.0,
        label_preserving: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(p, label_preserving)
        if by < 0:
            raise ValueError(f"by is a number of places, at least 0, got {by}")
        self.by, self.axes, self.fill = by, axes, fill

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        if x.ndim <= self.axes:
            raise ValueError(
                f"Shift along {self.axes} axes needs a batch with more axes, got {tuple(x.shape)}"
            )
        for axis in range(x.ndim - self.axes, x.ndim):
            x = self._along(x, axis, generator)
        return x

    def _along(self, x: Tensor, axis: int, generator: Rng) -> Tensor:
        n, rows = x.shape[axis], len(x)
        size = (rows, 1)
        by = torch.randint(-self.by, self.by + 1, size, generator=generator, device=x.device)
        source = torch.arange(n, device=x.device) - by  # (B, n)
        outside = (source < 0) | (source >= n)
        shape = [rows] + [1] * (x.ndim - 1)
        shape[axis] = n
        index = source.clamp(0, n - 1).view(shape).expand_as(x)
        return x.gather(axis, index).masked_fill(outside.view(shape), self.fill)


class Crop(Shift):
    """Cut the original size at a random place out of the example padded by ``padding``."""

    def __init__(
        self, padding: int = 4, axes: int = 2, fill: float = 0.0, p: float = 1.0,
        label_preserving: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(padding, axes, fill, p, label_preserving)


class Rotate(Transform):
    """Turn images ``(B, C, H, W)`` about their middle by up to ± ``degrees``."""

    moves = True

    def __init__(
        self, degrees: float = 15.0, p: float = 1.0, label_preserving: bool = True,
        mode: str = "bilinear",
    ) -> None:  # fmt: skip
        super().__init__(p, label_preserving)
        self.degrees, self.mode = degrees, mode

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        if x.ndim != 4:
            raise ValueError(f"Rotate needs images (B, C, H, W), got {tuple(x.shape)}")
        angle = (2 * uniform(x, generator) - 1) * math.radians(self.degrees)  # (B,)
        c, s = torch.cos(angle), torch.sin(angle)
        aspect = x.shape[2] / x.shape[3]  # the grid is square, the image need not be
        zero = torch.zeros_like(c)
        rows = [torch.stack([c, -s * aspect, zero], 1), torch.stack([s / aspect, c, zero], 1)]
        matrix = torch.stack(rows, 1).to(x.dtype)  # (B, 2, 3)
        grid = functional.affine_grid(matrix, list(x.shape), align_corners=False)
        return functional.grid_sample(x, grid, mode=self.mode, align_corners=False)
