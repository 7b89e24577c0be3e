"""Vectors of tokens and of their positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.attention.positions import LearnedPositions, SinusoidalPositions

POSITIONS = ("sinusoidal", "learned", "rope", "none")


def embedding(
    tokens: int,
    dim: int,
    generator: torch.Generator,
    padding: int | None = None,
    std: float | None = None,
) -> nn.Embedding:
    """A vector for each token, of standard deviation 1/√dim unless given."""
    weight = normal((tokens, dim), dim**-0.5 if std is None else std, generator)
    layer = nn.Embedding(tokens, dim, padding_idx=padding, _weight=weight)
    if padding is not None and not weight.is_meta:
        with torch.no_grad():
            layer.weight[padding].zero_()
    return layer


def placed(kind: str, max_len: int, dim: int, generator: torch.Generator) -> nn.Module:
    """The module that adds positions to embeddings; rope turns queries and keys instead."""
    if kind not in POSITIONS:
        raise Unsupported(f"positions {kind!r} are not known; use one of {', '.join(POSITIONS)}")
    if kind == "learned":
        return LearnedPositions(max_len, dim, generator=generator)
    return SinusoidalPositions(dim) if kind == "sinusoidal" else nn.Identity()


def place(module: nn.Module, x: Tensor, start: int) -> Tensor:
    """Embeddings with positions from ``start`` on."""
    out: Tensor = x if isinstance(module, nn.Identity) else module(x, start)
    return out


def normal(shape: tuple[int, ...], std: float, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device) * std
