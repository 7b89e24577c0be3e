r"""Stacks of transformer blocks: encoders, decoders, and both together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.nn.architectures import architecture
from groundstate.nn.attention.block import TransformerBlock
from groundstate.nn.attention.cache import KVCache
from groundstate.nn.attention.embed import embedding, normal, place, placed
from groundstate.nn.attention.multi_head import Keys
from groundstate.nn.attention.positions import RoPE
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import linear


class _Stack(nn.Module):
    """Blocks in a row and a last norm; encoder and decoder differ in masks and context."""

    cross = False

    def __init__(
        self,
        dim: int,
        heads: int,
        layers: int,
        ff: int | None = None,
        activation: str = "relu",
        norm: str = "layer",
        norm_first: bool = False,
        *,
        final_norm: bool = True,
        rope: RoPE | None = None,
        kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        eps: float = 1e-5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.layers, self.ff = dim, heads, layers, ff
        self.eps = eps
        self.activation, self.norm, self.norm_first = activation, norm, norm_first
        self.final_norm, self.kv_heads, self.bias, self.dropout = (
            final_norm,
            kv_heads,
            bias,
            dropout,
        )
        self._rope = (rope,)  # a tuple: the blocks hold it
        generator = generator or torch.Generator().manual_seed(0)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                dim, heads, ff, activation, norm, norm_first, self.cross, rope=rope,
                kv_heads=kv_heads, bias=bias, dropout=dropout, eps=eps, generator=generator,
            )
            for _ in range(layers)
        )  # fmt: skip
        last = nn.LayerNorm(dim, eps) if norm == "layer" else nn.RMSNorm(dim)
        self.last = last if final_norm else nn.Identity()

    @property
    def rope(self) -> RoPE | None:
        """As given."""
        return self._rope[0]

    def cache(self, rows: int, length: int, *, window: int | None = None) -> KVCache:
        """Empty room for ``length`` positions of every layer."""
        weight = next(self.parameters())
        return KVCache(
            self.layers, rows, self.kv_heads or self.heads, length, self.dim // self.heads,
            window=window, device=weight.device, dtype=weight.dtype,
        )  # fmt: skip

    def _run(self, x: Tensor, context: Any, *args: Any, **options: Any) -> Tensor:
        for i, block in enumerate(self.blocks):
            own = context if context is None or isinstance(context, Tensor) else context[i]
            x = block(x, own, *args, layer=i, **options)
        out: Tensor = self.last(x)
        return out


@blocks.register(
    make=lambda: TransformerEncoder(4, 2, 2, 6, "gelu"),
    batch=rows_of(3, 4),
    formula=r"\mathrm{LN}(f_L\circ\dots\circ f_1(x))",
)
class TransformerEncoder(_Stack):
    r"""Blocks whose positions all see each other, :math:`\mathrm{LN}(f_L\circ\dots\circ f_1(x))`.

    Parameters
    ----------
    dim, heads, layers, ff, activation, norm, norm_first, rope, kv_heads, bias, dropout, eps : see
        ``TransformerBlock``
    final_norm : a norm behind the last block
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> TransformerEncoder(8, 2, 3)(torch.ones(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        cache: KVCache | None = None,
    ) -> Tensor:
        """``(B, T, dim)`` to the same; ``causal`` makes it the stack of a language model."""
        return self._run(x, None, mask, causal=causal, cache=cache)


class TransformerDecoder(_Stack):
    r"""Blocks that see their past and a context: causal self-attention, attention to the context,
    position-wise network.

    Parameters as ``TransformerEncoder``.

    Examples
    --------
    >>> TransformerDecoder(8, 2, 3)(torch.ones(2, 5, 8), torch.ones(2, 7, 8)).shape
    torch.Size([2, 5, 8])
    """

    cross = True

    def forward(
        self,
        x: Tensor,
        context: Tensor | Sequence[Keys],
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Tensor:
        """``(B, T', dim)`` and context ``(B, T, dim)`` (or its ``keys``) to ``(B, T', dim)``."""
        return self._run(x, context, mask, context_mask, causal=True, cache=cache)

    def keys(self, context: Tensor) -> list[Keys]:
        """Keys and values of a context in every layer, to be kept while tokens come."""
        layers: list[Any] = list(self.blocks)
        return [block.look.keys(context) for block in layers]


def _pair(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    return tuple(torch.randint(1, 7, (2, n), generator=generator) for n in (5, 4))  # type: ignore[return-value]


@architecture(
    "seq2seq_transformer",
    kind="text",
    inputs=_pair,
    small={"src_vocab": 7, "tgt_vocab": 7, "dim": 8, "heads": 2, "layers": 1},
)
class Transformer(nn.Module):
    r"""Encoder and decoder with embeddings: scores of the next target token.

    .. math:: c = \mathrm{Enc}(\sqrt D\,E_{src}[x] + P),\qquad
              f_{t'} = W\,\mathrm{Dec}(\sqrt D\,E_{tgt}[y_{<t'}] + P,\ c)_{t'}

    Inputs of the decoder are targets shifted by a begin token, so that output t' predicts
    target t' from those before it.

    Parameters
    ----------
    src_vocab, tgt_vocab : numbers of tokens
    dim, heads, layers, ff : sizes of both stacks
    positions : "sinusoidal", "learned", "rope" or "none"
    max_len : positions of "learned"
    tied : share the target embedding with the output map
    padding : token number that is no token; its positions are not attended to
    dropout, activation, norm_first : see ``TransformerBlock``
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = Transformer(11, 13, dim=8, heads=2, layers=2)
    >>> net(torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 4, dtype=torch.int64)).shape
    torch.Size([2, 4, 13])
    """

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        dim: int = 512,
        heads: int = 8,
        layers: int = 6,
        ff: int | None = None,
        positions: str = "sinusoidal",
        *,
        max_len: int = 512,
        tied: bool = False,
        padding: int | None = None,
        activation: str = "relu",
        norm_first: bool = False,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.src_vocab, self.tgt_vocab, self.dim, self.heads = src_vocab, tgt_vocab, dim, heads
        self.layers, self.ff, self.max_len, self.tied = layers, ff, max_len, tied
        self.positions, self.padding, self.activation = positions, padding, activation
        self.norm_first, self.dropout = norm_first, dropout
        options: dict[str, Any] = {
            "ff": ff, "activation": activation, "norm_first": norm_first, "dropout": dropout,
            "rope": RoPE(dim // heads) if positions == "rope" else None, "generator": generator,
        }  # fmt: skip
        self.encoder = TransformerEncoder(dim, heads, layers, **options)
        self.decoder = TransformerDecoder(dim, heads, layers, **options)
        self.source = embedding(src_vocab, dim, generator, padding)
        self.target = embedding(tgt_vocab, dim, generator, padding)
        self.place_source = placed(positions, max_len, dim, generator)
        self.place_target = placed(positions, max_len, dim, generator)
        self.score = linear(dim, tgt_vocab, bias=False)
        with torch.no_grad():
            self.score.weight.copy_(normal((tgt_vocab, dim), dim**-0.5, generator))
        if tied:
            self.score.weight = self.target.weight

    def encode(self, src: Tensor) -> tuple[Tensor, Tensor | None]:
        """Context ``(B, T, dim)`` of source tokens and the mask of its real positions."""
        mask = None if self.padding is None else (src != self.padding)[:, None, None]
        x = self.place_source(self.source(src) * math.sqrt(self.dim))
        return self.encoder(F.dropout(x, self.dropout, self.training), mask), mask

    def decode(
        self,
        tgt: Tensor,
        context: Tensor | Sequence[Keys],
        context_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Scores ``(B, T', tgt_vocab)`` of the tokens after each of ``tgt`` ``(B, T')``."""
        start = 0 if cache is None else cache.length
        x = place(self.place_target, self.target(tgt) * math.sqrt(self.dim), start)
        out: Tensor = self.score(
            self.decoder(
                F.dropout(x, self.dropout, self.training), context, None, context_mask, cache=cache
            )
        )
        return out

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        return self.decode(tgt, *self.encode(src))

    def start(self, src: Tensor, length: int | None = None) -> dict[str, Any]:
        """The memory before the first target token: keys and values of the encoded source in every
        layer, and room for those of ``length`` target tokens, by default ``max_len``."""
        context, mask = self.encode(src)
        known = torch.stack([torch.stack(pair, 1) for pair in self.decoder.keys(context)], 1)
        memory = {"kv": self.decoder.cache(len(src), length or self.max_len), "known": known}
        return (
            memory if mask is None else {**memory, "real": mask}
        )  # known: (B, layers, 2, H, T, d)

    def step(self, token: Tensor, cache: Mapping[str, Any]) -> tuple[Tensor, Mapping[str, Any]]:
        """Scores ``(B, tgt_vocab)`` after these next tokens, ``(B,)`` or ``(B, T')``."""
        tokens = token[:, None] if token.ndim == 1 else token
        known = [Keys(layer[:, 0], layer[:, 1]) for layer in cache["known"].unbind(1)]
        return self.decode(tokens, known, cache.get("real"), cache["kv"])[:, -1], cache

    @torch.no_grad()
    def alignment(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Where the last layer looks in the source, mean over heads, ``(B, T', T)``."""
        block: Any = self.decoder.blocks[-1]
        seen: list[Any] = []
        hook = block.look.register_forward_pre_hook(lambda layer, given: seen.append(given))
        try:
            self(src, tgt)
        finally:
            hook.remove()
        weights: Tensor = block.look(*seen[0], need_weights=True)[1]
        return weights.mean(1)
