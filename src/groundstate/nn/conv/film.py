r"""Blocks of denoising U-Nets: residual convolutions that a condition scales and shifts, and attention
between places.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(channels, 8), channels)


class FilmBlock(nn.Module):
    r""":math:`x + \text{conv}(\text{SiLU}((1+a)\odot GN(\text{conv}(\text{SiLU}(GN\,x))) + b))` with scale a
    and shift b from a condition (FiLM); the last convolution starts at 0, so that the block starts as
    the identity.

    Parameters
    ----------
    before, after : channels
    n_dim : 1, 2 or 3 spatial axes
    cond_dim : size of the condition, or None

    Examples
    --------
    >>> FilmBlock(4, 8, 2, 3)(torch.zeros(1, 4, 5, 5), torch.ones(1, 3)).shape
    torch.Size([1, 8, 5, 5])
    """

    def __init__(self, before: int, after: int, n_dim: int, cond_dim: int | None) -> None:
        super().__init__()
        conv = getattr(nn, f"Conv{n_dim}d")
        self.norm1, self.norm2 = group_norm(before), group_norm(after)
        self.conv1, self.conv2 = conv(before, after, 3, padding=1), conv(after, after, 3, padding=1)
        self.skip = nn.Identity() if before == after else conv(before, after, 1)
        self.cond = None if cond_dim is None else nn.Linear(cond_dim, 2 * after)
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, x: Tensor, cond: Tensor | None) -> Tensor:
        h = self.norm2(self.conv1(functional.silu(self.norm1(x))))
        if self.cond is not None and cond is not None:
            scale, shift = self.cond(functional.silu(cond)).chunk(2, 1)
            axes = (1,) * (h.ndim - 2)
            h = h * (1 + scale.reshape(*scale.shape, *axes)) + shift.reshape(*shift.shape, *axes)
        out: Tensor = self.skip(x) + self.conv2(functional.silu(h))
        return out


class PlaceAttention(nn.Module):
    r"""Every place of a map looks at all others, and at tokens of a condition: :math:`x + W\,
    \text{attention}(GN\,x)`, W starts at 0.

    Parameters
    ----------
    channels : of the map
    heads : how many; a divisor of ``channels``
    token_dim : size of the tokens ``(N, L, token_dim)`` that places also look at, or None

    Examples
    --------
    >>> PlaceAttention(8, token_dim=3)(torch.zeros(1, 8, 4, 4), torch.ones(1, 5, 3)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(
        self, channels: int, heads: int | None = None, token_dim: int | None = None
    ) -> None:
        super().__init__()
        self.heads = heads or max(1, channels // 64)
        if channels % self.heads:
            raise ValueError(f"{channels} channels do not part into {self.heads} heads")
        self.norm = group_norm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.tokens = None if token_dim is None else nn.Linear(token_dim, 2 * channels)
        self.out = nn.Linear(channels, channels)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        h = self.norm(x).flatten(2).transpose(1, 2)  # (N, P, C)
        q, k, v = self.qkv(h).chunk(3, -1)
        if self.tokens is not None and tokens is not None:
            more_k, more_v = self.tokens(tokens).chunk(2, -1)
            k, v = torch.cat([k, more_k], 1), torch.cat([v, more_v], 1)
        q, k, v = (u.unflatten(-1, (self.heads, -1)).transpose(1, 2) for u in (q, k, v))
        seen = functional.scaled_dot_product_attention(q, k, v)  # (N, heads, P, C / heads)
        moved = self.out(seen.transpose(1, 2).flatten(2)).transpose(1, 2)
        return x + moved.reshape(x.shape)
