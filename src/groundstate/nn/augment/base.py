r"""Random changes of inputs that keep their meaning, batched, on the device of the batch.

Every example draws its own change. Shapes are kept, and in evaluation mode nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

Rng = torch.Generator | None


class Transform(nn.Module):
    """Base of transforms: ``change`` acts on all examples, ``p`` says on how many it is kept.

    Parameters
    ----------
    p : probability that an example is changed
    label_preserving : whether the label stays right; say False e.g. for mirrored letters
    """

    #: Whether pixels change places: masks and boxes then have to move with them.
    moves: ClassVar[bool] = False

    def __init__(self, p: float = 1.0, label_preserving: bool = True) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be a probability in [0, 1], got {p}")
        self.p, self.label_preserving = p, label_preserving

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        """Change every example of ``x`` ``(B, ...)`` at random."""
        return x

    def forward(self, x: Tensor, generator: Rng = None) -> Tensor:
        if not self.training or self.p == 0:
            return x
        changed = self.change(x, generator)
        if self.p == 1:
            return changed
        chosen = uniform(x, generator) < self.p
        return torch.where(column(chosen, x), changed, x)


class Noise(Transform):
    """Add Gaussian noise of standard deviation ``sigma``."""

    def __init__(self, sigma: float = 0.1, p: float = 1.0, label_preserving: bool = True) -> None:
        super().__init__(p, label_preserving)
        self.sigma = sigma

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return x + self.sigma * noise


class Each(Transform):
    """Any function of one example, such as a transform of torchvision, row by row."""

    moves = True  # it may

    def __init__(
        self, function: Callable[[Tensor], Tensor], p: float = 1.0, label_preserving: bool = True
    ) -> None:
        super().__init__(p, label_preserving)
        self.function = function

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        out = torch.stack([self.function(row) for row in x])
        if out.shape != x.shape:
            raise ValueError(
                f"an augmentation must keep the shape of an example, {tuple(x.shape[1:])}, but "
                f"{self.function} gave {tuple(out.shape[1:])}"
            )
        return out


def uniform(x: Tensor, generator: Rng) -> Tensor:
    return torch.rand(len(x), generator=generator, device=x.device)


def column(v: Tensor, x: Tensor) -> Tensor:
    return v.view(-1, *[1] * (x.ndim - 1))
