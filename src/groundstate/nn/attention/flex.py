r"""Masks and biases as functions of positions.

On a GPU torch's FlexAttention then computes only the blocks that a structured mask leaves, and
nothing of size queries × keys is stored. On a CPU, where FlexAttention has no gradient, the same
functions are written out as dense masks and biases. Functions get row b, head h, query q and key k
as integer tensors that broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from groundstate.nn.attention.scores import dot_product_attention

PositionFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def causal_mod(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """Keys up to the query's own position."""
    return q >= k


def window_mod(window: int) -> PositionFunction:
    """The query's own key and the ``window`` − 1 before it."""
    return lambda b, h, q, k: (q >= k) & (q - k < window)


def prefix_mod(length: int) -> PositionFunction:
    """The first ``length`` keys for all, later ones causally."""
    return lambda b, h, q, k: (k < length) | (q >= k)


def document_mod(ids: Tensor, causal: bool = True) -> PositionFunction:
    """Keys of the query's own document; ``ids`` ``(batch, length)``."""

    def mod(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        same = ids[b, q] == ids[b, k]
        return same & (q >= k) if causal else same

    return mod


def alibi_mod(slopes: Tensor) -> PositionFunction:
    """A bias that falls with distance, ``slopes`` ``(heads,)``."""
    return lambda b, h, q, k: -slopes[h] * (q - k).abs()


def flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: PositionFunction | None = None,
    *,
    bias: PositionFunction | None = None,
    scale: float | None = None,
) -> Tensor:
    """Attention of ``(B, heads, T, d)`` with a mask and a bias given as functions of positions.

    >>> q = torch.eye(2)[None, None]
    >>> flex_attention(q, q, q, causal_mod)[0, 0]
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    if q.device.type != "cuda":
        at = _positions(q, k)
        return dot_product_attention(
            q, k, v,
            None if mask is None else mask(*at),
            bias=None if bias is None else bias(*at),
            scale=scale,
        )  # fmt: skip
    from torch.nn.attention.flex_attention import create_block_mask

    block = None
    if mask is not None:
        block = create_block_mask(
            mask, q.shape[0], None, q.shape[-2], k.shape[-2], device=str(q.device)
        )
    add = None if bias is None else lambda score, *at: score + bias(*at)
    out: Tensor = _compiled()(
        q, k, v, score_mod=add, block_mask=block, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return out


def _positions(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Row, head, query and key numbers, each on its own axis of four."""
    sizes = q.shape[0], q.shape[1], q.shape[-2], k.shape[-2]
    numbers = [torch.arange(n, device=q.device) for n in sizes]
    return (
        numbers[0][:, None, None, None], numbers[1][:, None, None],
        numbers[2][:, None], numbers[3],
    )  # fmt: skip


@cache
def _compiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)
