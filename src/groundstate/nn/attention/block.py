r"""One layer of a transformer: attention, then a network for each position, with skips and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.attention.cache import KVCache
from groundstate.nn.attention.multi_head import Keys, MultiHeadAttention
from groundstate.nn.attention.positions import RoPE
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_, linear

NORMS = ("layer", "rms")
SPECIAL: dict[str, Callable[[], nn.Module]] = {
    "swiglu": nn.SiLU,
    "gelu_tanh": lambda: nn.GELU("tanh"),  # GPT-2's
}


@blocks.register(
    make=lambda: FeedForward(4, 6, activation="gelu"),
    batch=rows_of(3, 4),
    formula=r"W_2\,\sigma(W_1x+b_1)+b_2",
)
class FeedForward(nn.Module):
    r"""The same two layers at every position, :math:`W_2\,\sigma(W_1x+b_1)+b_2`; "swiglu" is
    :math:`W_2\,(\mathrm{silu}(W_1x)\odot W_3x)`.

    Parameters
    ----------
    dim, hidden : sizes
    activation : a name of ``ACTIVATIONS``, "swiglu", or "gelu_tanh" (GELU by a tanh)
    bias : whether layers have biases
    dropout : of hidden units in training
    generator : source of the initial weights; None is a fixed seed
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        activation: str = "relu",
        *,
        bias: bool = True,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.hidden, self.activation = dim, hidden, activation
        self.bias, self.dropout = bias, dropout
        self.gated = activation == "swiglu"
        self.up = linear(dim, 2 * hidden if self.gated else hidden, bias)
        self.act = SPECIAL[activation]() if activation in SPECIAL else make_activation(activation)
        self.down = linear(hidden, dim, bias)
        init_(self, "xavier", generator)

    def forward(self, x: Tensor) -> Tensor:
        if self.gated:
            gate, value = self.up(x).chunk(2, -1)
            h = self.act(gate) * value
        else:
            h = self.act(self.up(x))
        out: Tensor = self.down(F.dropout(h, self.dropout, self.training))
        return out

    def extra_repr(self) -> str:
        return f"{self.dim}, {self.hidden}, {self.activation}"


@blocks.register(
    make=lambda: TransformerBlock(4, 2, 6, "gelu", norm_first=True),
    batch=rows_of(3, 4),
    formula=r"x+\mathrm{MHA}(\mathrm{LN}x),\ x+\mathrm{FF}(\mathrm{LN}x)",
)
class TransformerBlock(nn.Module):
    r"""Attention and a position-wise network, each with a skip and a norm.

    .. math:: \text{post: } \tilde x = \mathrm{LN}(x + \mathrm{MHA}(x)),\;
              y = \mathrm{LN}(\tilde x + \mathrm{FF}(\tilde x)) \qquad
              \text{pre: } \tilde x = x + \mathrm{MHA}(\mathrm{LN}\,x),\;
              y = \tilde x + \mathrm{FF}(\mathrm{LN}\,\tilde x)

    With ``cross`` an attention to the context stands between the two. Weights and outputs agree
    with ``torch.nn.TransformerEncoderLayer`` and ``TransformerDecoderLayer`` (``from_torch``).

    Parameters
    ----------
    dim, heads : of attention
    ff : hidden size of the network, by default 4·dim
    activation : "relu", "gelu", "swiglu" or another name of ``ACTIVATIONS``
    norm : "layer" or "rms"
    norm_first : pre-norm instead of post-norm
    cross : whether the block attends to a context
    kv_heads, rope, qk_norm : see ``MultiHeadAttention``
    bias : whether maps have biases
    dropout : of attention weights, hidden units and branches in training
    eps : of the norms
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> block = TransformerBlock(64, 8, 256)
    >>> block(torch.ones(2, 5, 64)).shape, sum(p.numel() for p in block.parameters())
    (torch.Size([2, 5, 64]), 49984)
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        ff: int | None = None,
        activation: str = "relu",
        norm: str = "layer",
        norm_first: bool = False,
        cross: bool = False,
        *,
        kv_heads: int | None = None,
        rope: RoPE | None = None,
        qk_norm: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        eps: float = 1e-5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise Unsupported(f"norm {norm!r} is not known; use one of {', '.join(NORMS)}")
        generator = generator or torch.Generator().manual_seed(0)
        self.dim, self.heads, self.activation, self.norm = dim, heads, activation, norm
        self.ff, self.norm_first, self.cross, self.bias = ff or 4 * dim, norm_first, cross, bias
        self.kv_heads, self.rope, self.qk_norm = kv_heads, rope, qk_norm
        self.dropout, self.eps = dropout, eps
        options: dict[str, Any] = {"bias": bias, "dropout": dropout, "generator": generator}
        self.attend = MultiHeadAttention(
            dim, heads, kv_heads, rope=rope, qk_norm=qk_norm, **options
        )
        self.attend_norm = _norm(norm, dim, eps)
        self.look = MultiHeadAttention(dim, heads, kv_heads, **options) if cross else None
        self.look_norm = _norm(norm, dim, eps) if cross else None
        self.feed = FeedForward(dim, self.ff, activation, **options)
        self.feed_norm = _norm(norm, dim, eps)

    def forward(
        self,
        x: Tensor,
        context: Tensor | Keys | None = None,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> Tensor:
        """``(B, T, dim)`` to the same; masks and cache as in ``MultiHeadAttention``."""
        if (context is None) == self.cross:
            wants = "a context" if self.cross else "no context (cross=False)"
            raise ShapeError(f"this TransformerBlock takes {wants}")

        def attend(h: Tensor) -> Tensor:
            return self.attend(h, None, mask, bias=bias, causal=causal, cache=cache, layer=layer)

        def look(h: Tensor) -> Tensor:
            assert self.look is not None
            return self.look(h, context, context_mask)

        x = self._add(x, attend, self.attend_norm)
        if self.look_norm is not None:
            x = self._add(x, look, self.look_norm)
        return self._add(x, self.feed, self.feed_norm)

    def _add(self, x: Tensor, branch: Any, norm: nn.Module) -> Tensor:
        if self.norm_first:
            return x + F.dropout(branch(norm(x)), self.dropout, self.training)
        out: Tensor = norm(x + F.dropout(branch(x), self.dropout, self.training))
        return out

    @classmethod
    def from_torch(
        cls, layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
    ) -> TransformerBlock:
        """The same map as a layer of torch with ReLU or GELU."""
        named = {F.relu: "relu", F.gelu: "gelu"}
        if layer.activation not in named:
            raise Unsupported("from_torch takes layers with relu or gelu")
        cross = isinstance(layer, nn.TransformerDecoderLayer)
        made = cls(
            layer.linear1.in_features, layer.self_attn.num_heads, layer.linear1.out_features,
            named[layer.activation], norm_first=layer.norm_first, cross=cross,
            dropout=layer.dropout.p, eps=layer.norm1.eps,
        ).to(layer.linear1.weight)  # fmt: skip
        pairs: list[tuple[nn.Module, nn.Module]] = [
            (made.attend, MultiHeadAttention.from_torch(layer.self_attn)),
            (made.attend_norm, layer.norm1),
            (made.feed.up, layer.linear1),
            (made.feed.down, layer.linear2),
        ]
        if isinstance(layer, nn.TransformerDecoderLayer):
            assert made.look is not None and made.look_norm is not None
            pairs += [
                (made.look, MultiHeadAttention.from_torch(layer.multihead_attn)),
                (made.look_norm, layer.norm2),
                (made.feed_norm, layer.norm3),
            ]
        else:
            pairs.append((made.feed_norm, layer.norm2))
        for own, given in pairs:
            own.load_state_dict(given.state_dict())
        return made


@blocks.register(
    make=lambda: AttentionBlock(4, 6, 2),
    batch=rows_of(3, 4),
    formula=r"\mathrm{LN}(\sigma(W\hat v))+W_rx",
)
class AttentionBlock(nn.Module):
    r"""Attention, a layer and a skip, :math:`\mathrm{LN}(\sigma(W\hat v)) + W_r x` with
    :math:`\hat v` the attention of x to itself and :math:`W_r = I` where sizes agree.

    Parameters
    ----------
    dim, out : sizes of x and of the output, by default equal
    heads : of attention
    activation : :math:`\sigma`
    generator : source of the initial weights; None is a fixed seed
    """

    def __init__(
        self,
        dim: int,
        out: int | None = None,
        heads: int = 1,
        activation: str = "gelu",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.out = dim, out or dim
        self.heads, self.activation = heads, activation
        self.attend = MultiHeadAttention(dim, heads, generator=generator)
        self.layer = linear(dim, self.out)
        self.act = make_activation(activation)
        self.norm = nn.LayerNorm(self.out)
        self.skip = None if self.out == dim else linear(dim, self.out, bias=False)
        init_(self, "xavier", generator)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        skip: Tensor = x if self.skip is None else self.skip(x)
        return self.norm(self.act(self.layer(self.attend(x, None, mask)))) + skip


def _norm(kind: str, dim: int, eps: float) -> nn.Module:
    return nn.LayerNorm(dim, eps=eps) if kind == "layer" else nn.RMSNorm(dim, eps=eps)
