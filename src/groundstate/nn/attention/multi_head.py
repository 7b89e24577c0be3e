r"""Several attentions side by side, :math:`\mathrm{concat}_h\,
\mathrm{attn}(xW^q_h, cW^k_h, cW^v_h)\,W_O`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.attention.cache import KVCache
from groundstate.nn.attention.positions import RoPE
from groundstate.nn.attention.scores import attention_weights, dot_product_attention
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_, linear


class Keys(NamedTuple):
    """Keys and values of a context, ``(B, kv_heads, S, dim_head)``, to be asked many times."""

    k: Tensor
    v: Tensor


@blocks.register(
    make=lambda: MultiHeadAttention(4, 2),
    batch=rows_of(3, 4),
    formula=r"\mathrm{concat}_h\,\mathrm{attn}(xW^q_h,cW^k_h,cW^v_h)\,W_O",
)
class MultiHeadAttention(nn.Module):
    r"""Self-attention of x, or attention of x to a context c.

    .. math:: o = \mathrm{concat}_{h}\Bigl(\operatorname{softmax}\bigl(\tfrac{1}{\sqrt{d}}
              (xW^q_h)(cW^k_h)^\top\bigr)\,cW^v_h\Bigr)\,W_O

    Each head has its own projections to d = ``dim_head`` features; the scale is
    :math:`1/\sqrt{d}` of a head. Without positions it does not see the order of c.

    Parameters
    ----------
    dim : features of x and of the output
    heads : number of heads
    kv_heads : heads of keys and values, a divisor of ``heads`` (grouped queries); None: ``heads``
    dim_head : d, by default ``dim // heads``
    bias : whether projections have biases
    rope : a ``RoPE`` that turns queries and keys by their positions
    qk_norm : normalise queries and keys of each head by their root mean square
    dropout : probability of dropping an attention weight in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> layer = MultiHeadAttention(64, 8)
    >>> layer(torch.ones(2, 5, 64)).shape, sum(p.numel() for p in layer.parameters())
    (torch.Size([2, 5, 64]), 16640)
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int | None = None,
        dim_head: int | None = None,
        bias: bool = True,
        rope: RoPE | None = None,
        qk_norm: bool = False,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if dim_head is None and dim % heads:
            raise ShapeError(
                f"{dim} features do not make {heads} equal heads; choose heads that divide dim, "
                "or give dim_head"
            )
        self.dim, self.heads, self.bias, self.dropout = dim, heads, bias, dropout
        self.kv_heads = kv_heads or heads
        self.dim_head = dim_head or dim // heads
        self.qk_norm = qk_norm
        if heads % self.kv_heads:
            raise ShapeError(f"{heads} heads do not share {self.kv_heads} key heads evenly")
        inner, shared = heads * self.dim_head, self.kv_heads * self.dim_head
        self.qkv = linear(dim, inner + 2 * shared, bias)
        self.out = linear(inner, dim, bias)
        self.rope = rope
        self.q_norm = nn.RMSNorm(self.dim_head) if qk_norm else None
        self.k_norm = nn.RMSNorm(self.dim_head) if qk_norm else None
        init_(self, "xavier", generator)

    @classmethod
    def from_torch(cls, layer: nn.MultiheadAttention) -> MultiHeadAttention:
        """The same map as a layer of torch."""
        if layer.bias_k is not None or layer.add_zero_attn or layer.in_proj_weight is None:
            raise Unsupported("from_torch takes layers with kdim = vdim = embed_dim and no bias_kv")
        dim = layer.embed_dim
        made = cls(
            dim, layer.num_heads, bias=layer.in_proj_bias is not None, dropout=layer.dropout
        ).to(layer.in_proj_weight)
        with torch.no_grad():
            made.qkv.weight.copy_(layer.in_proj_weight)
            made.out.weight.copy_(layer.out_proj.weight)
            if layer.in_proj_bias is not None:
                made.qkv.bias.copy_(layer.in_proj_bias)
                made.out.bias.copy_(layer.out_proj.bias)
        return made

    @overload
    def forward(
        self, x: Tensor, context: Tensor | Keys | None = ..., mask: Tensor | None = ..., *,
        bias: Tensor | None = ..., causal: bool = ..., cache: KVCache | None = ...,
        layer: int = ..., need_weights: Literal[False] = ...,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def forward(
        self, x: Tensor, context: Tensor | Keys | None = ..., mask: Tensor | None = ..., *,
        bias: Tensor | None = ..., causal: bool = ..., cache: KVCache | None = ...,
        layer: int = ..., need_weights: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...  # fmt: skip
    def forward(
        self,
        x: Tensor,
        context: Tensor | Keys | None = None,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
        layer: int = 0,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend.

        Parameters
        ----------
        x : ``(B, T, dim)``
        context : ``(B, S, dim)``, or ``keys`` of it; None is x itself
        mask : bool, broadcast to ``(B, heads, T, S)``, True where a query may see a key
        bias : added to scaled scores, broadcast alike
        causal : queries see keys up to their own position
        cache, layer : keys and values of earlier positions, to which x's are added
        need_weights : return ``(o, weights (B, heads, T, S))`` by the explicit path, to look at
        """
        if x.ndim != 3 or x.shape[-1] != self.dim:
            raise ShapeError(
                f"MultiHeadAttention takes (batch, length, {self.dim}), got {tuple(x.shape)}"
            )
        start = 0 if cache is None else cache.seen[layer]
        q, k, v = self._projected(x, context, start)
        if cache is not None:
            k, v = cache.append(layer, k, v)
            if causal and q.shape[-2] == 1:
                causal = False  # all that the cache holds is past
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            weights = attention_weights(q, k, mask, bias=bias, causal=causal)
            shared = v.repeat_interleave(self.heads // self.kv_heads, 1)
            mixed = F.dropout(weights, dropout) @ shared
        else:
            mixed = dot_product_attention(q, k, v, mask, bias=bias, causal=causal, dropout=dropout)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return (out, weights) if need_weights else out

    def _projected(
        self, x: Tensor, context: Tensor | Keys | None, start: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values by head, ``(B, heads, T, dim_head)``, turned by position."""
        inner = self.heads * self.dim_head
        if context is None:  # one product for all three
            q, kv = self.qkv(x).tensor_split((inner,), -1)
            k, v = self._apart(kv, start)
        else:
            shift = self.qkv.bias[:inner] if self.bias else None
            q = F.linear(x, self.qkv.weight[:inner], shift)
            k, v = context if isinstance(context, Keys) else self.keys(context, start)
        q = q.unflatten(-1, (self.heads, self.dim_head)).transpose(1, 2)
        q = q if self.q_norm is None else self.q_norm(q)
        return (q if self.rope is None else self.rope(q, start)), k, v

    def keys(self, context: Tensor, start: int = 0) -> Keys:
        """Keys and values of a context ``(B, S, dim)``, which may be kept while queries come."""
        inner = self.heads * self.dim_head
        shift = self.qkv.bias[inner:] if self.bias else None
        return self._apart(F.linear(context, self.qkv.weight[inner:], shift), start)

    def _apart(self, kv: Tensor, start: int) -> Keys:
        k, v = kv.unflatten(-1, (2, self.kv_heads, self.dim_head)).permute(2, 0, 3, 1, 4)
        k = k if self.k_norm is None else self.k_norm(k)
        return Keys(k if self.rope is None else self.rope(k, start), v)

    def extra_repr(self) -> str:
        shared = "" if self.kv_heads == self.heads else f", kv_heads={self.kv_heads}"
        return f"{self.dim}, heads={self.heads}{shared}"
