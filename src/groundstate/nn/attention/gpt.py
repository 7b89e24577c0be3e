r"""Causal language models: a decoder that predicts the next token."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, tokens
from groundstate.nn.attention.cache import KVCache
from groundstate.nn.attention.embed import embedding, normal, place, placed
from groundstate.nn.attention.positions import RoPE
from groundstate.nn.attention.transformer import TransformerEncoder
from groundstate.nn.blocks.initialise import linear


@architecture(
    "gpt",
    kind="text",
    inputs=tokens(11, 5),
    small={"vocab": 11, "context": 8, "dim": 8, "heads": 2, "layers": 2},
)
class GPT(nn.Module):
    r"""A causal language model: scores of the next token at every position.

    .. math:: h = \mathrm{LN}\bigl(f_L\circ\dots\circ f_1(E[x] + P)\bigr),\qquad
              f_t = E h_t,\qquad p(x_{t+1}\mid x_{\le t}) = \operatorname{softmax}(f_t)

    Pre-norm blocks with GELU. ``step`` continues from a cache, with the same scores as the whole
    sequence at once.

    Parameters
    ----------
    vocab : number of tokens
    context : positions at most (of "learned" positions, and of a cache)
    dim, heads, layers, ff : sizes
    positions : "learned", "rope", "sinusoidal" or "none"
    tied : share the embedding with the output map
    kv_heads, bias, dropout, activation, norm : see ``TransformerBlock``
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = GPT(11, 16, 8, 2, 2)
    >>> net(torch.ones(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 11])
    """

    def __init__(
        self,
        vocab: int = 256,
        context: int = 256,
        dim: int = 384,
        heads: int = 6,
        layers: int = 6,
        ff: int | None = None,
        positions: str = "learned",
        *,
        tied: bool = True,
        kv_heads: int | None = None,
        activation: str = "gelu",
        norm: str = "layer",
        bias: bool = True,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.vocab, self.context, self.dim, self.heads = vocab, context, dim, heads
        self.layers, self.ff, self.positions, self.tied = layers, ff, positions, tied
        self.kv_heads, self.activation, self.norm = kv_heads, activation, norm
        self.bias, self.dropout = bias, dropout
        self.embed = embedding(vocab, dim, generator, std=0.02)
        self.place = placed(positions, context, dim, generator)
        self.stack = TransformerEncoder(
            dim, heads, layers, ff, activation, norm, True, kv_heads=kv_heads, bias=bias,
            dropout=dropout, rope=RoPE(dim // heads) if positions == "rope" else None,
            generator=generator,
        )  # fmt: skip
        self._small(generator)
        self.score = linear(dim, vocab, bias=False)
        self.score.weight = (
            self.embed.weight if tied else nn.Parameter(normal((vocab, dim), 0.02, generator))
        )

    @torch.no_grad()
    def _small(self, generator: torch.Generator) -> None:
        """Initial weights of standard deviation .02, smaller by √(2·layers) at the end of each
        branch: the variance of the stream does not grow with depth."""
        for name, p in self.stack.named_parameters():
            if p.ndim == 2:
                ends = name.endswith(("out.weight", "down.weight"))
                std = 0.02 / math.sqrt(2 * self.layers) if ends else 0.02
                p.copy_(normal(p.shape, std, generator))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Scores ``(B, T, vocab)`` of the token after each of ``tokens`` ``(B, T)``."""
        out: Tensor = self.score(self.hidden(tokens, mask))
        return out

    def hidden(
        self, tokens: Tensor, mask: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """The last layer before the scores, ``(B, T, dim)``."""
        if tokens.ndim != 2:
            raise ShapeError(f"GPT takes tokens (batch, length), got {tuple(tokens.shape)}")
        start = 0 if cache is None else cache.length
        if start + tokens.shape[1] > self.context and self.positions == "learned":
            raise ShapeError(
                f"a sequence of {start + tokens.shape[1]} tokens is longer than the context of "
                f"{self.context}; cut it, or use positions='rope'"
            )
        x = place(self.place, self.embed(tokens), start)
        return self.stack(F.dropout(x, self.dropout, self.training), mask, causal=True, cache=cache)

    def start(
        self, rows: int, x: None = None, *, length: int | None = None, window: int | None = None
    ) -> dict[str, KVCache]:
        """The memory before the first token: room for ``length`` positions, by default the
        context; ``window`` keeps the last ones only."""
        return {"kv": self.stack.cache(rows, length or self.context, window=window)}

    def step(
        self, token: Tensor, cache: Mapping[str, KVCache]
    ) -> tuple[Tensor, Mapping[str, KVCache]]:
        """Scores ``(B, vocab)`` after these next tokens, ``(B,)`` or several, ``(B, T)``, and the
        memory with them in it."""
        tokens = token[:, None] if token.ndim == 1 else token
        return self.score(self.hidden(tokens, None, cache["kv"])[:, -1]), cache
