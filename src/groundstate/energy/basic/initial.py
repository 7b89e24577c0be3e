"""Deterministic initial values."""

from __future__ import annotations

import torch
from torch import Tensor


def seeded(generator: torch.Generator | None) -> torch.Generator:
    """The generator itself, or one with a fixed seed."""
    return torch.Generator().manual_seed(0) if generator is None else generator


def normal(*shape: int, scale: float, generator: torch.Generator | None) -> Tensor:
    """Draws of a standard deviation; none are made where it is zero."""
    if scale == 0:
        return torch.zeros(*shape)
    generator = seeded(generator)
    return scale * torch.randn(*shape, generator=generator)
