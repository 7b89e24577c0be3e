r"""A denoiser of codes that looks at tokens: what is to be generated, as a sequence of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.denoise.time import LevelEmbedding


class TokenDenoiser(nn.Module):
    r"""Layers that the noise level scales and shifts, each followed by cross-attention,

    .. math:: h \leftarrow h + P\,\mathrm{softmax}(Q(h)\,K(c)^\top/\sqrt e)\,V(c),

    over L tokens c and one learned token that stands for nothing; a context of zeros (unknown) is that
    one alone. The head starts at 0.

    Parameters
    ----------
    d : size of a row
    q : size of the context y, the tokens one after the other
    tokens : their number L, a divisor of q
    hidden : units of the layers
    activation : of the layers
    outputs : per coordinate: 1, or 2 where variances are learned
    embedding : size of keys and values, and of the embedding of the level
    heads : of the attention
    n_steps : number T of levels

    Examples
    --------
    >>> net = TokenDenoiser(2, q=6, tokens=3, hidden=(8,))
    >>> net(torch.ones(4, 2), torch.tensor([1, 2, 3, 4]), torch.zeros(4, 6)).abs().max().item()
    0.0
    """

    def __init__(
        self,
        d: int,
        q: int,
        tokens: int = 1,
        hidden: Sequence[int] = (128, 64),
        activation: str = "silu",
        outputs: int = 1,
        embedding: int = 64,
        heads: int = 4,
        n_steps: int = 1000,
    ) -> None:
        super().__init__()
        if tokens < 1 or q < 1 or q % tokens:
            raise ValueError(f"a context of {q} numbers cannot be {tokens} tokens of equal size")
        if embedding % heads:
            raise ValueError(f"heads={heads} must divide embedding={embedding}")
        self._settings = {"d": d, "q": q, "tokens": tokens, "hidden": list(hidden),
                          "activation": activation, "outputs": outputs, "embedding": embedding,
                          "heads": heads, "n_steps": n_steps}  # fmt: skip
        self.tokens, self.heads = tokens, heads
        self.embed = LevelEmbedding(embedding, 0, n_steps)
        self.read = nn.Linear(q // tokens, embedding)
        self.places = nn.Parameter(0.02 * torch.randn(tokens, embedding))
        self.nothing = nn.Parameter(0.02 * torch.randn(1, 1, embedding))
        sizes = [d, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, hidden, strict=False))
        self.films = nn.ModuleList(nn.Linear(embedding, 2 * b) for b in hidden)
        self.asks = nn.ModuleList(nn.Linear(b, embedding) for b in hidden)
        self.pairs = nn.ModuleList(nn.Linear(embedding, 2 * embedding) for _ in hidden)
        self.backs = nn.ModuleList(nn.Linear(embedding, b) for b in hidden)
        self.act = make_activation(activation)
        self.head = nn.Linear(sizes[-1] + d, outputs * d)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def config(self) -> dict[str, Any]:
        return dict(self._settings)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        rows = len(x)
        cond = self.act(self.embed(t, None))
        seen = self.read(y.reshape(rows, self.tokens, -1)) + self.places
        seen = torch.cat([self.nothing.expand(rows, -1, -1), seen], 1)  # (B, L + 1, e)
        known = torch.ones(rows, 1 + self.tokens, dtype=torch.bool, device=x.device)
        known[:, 1:] = (y != 0).any(1, keepdim=True)
        h = x
        for layer, film, ask, pair, back in zip(
            self.layers, self.films, self.asks, self.pairs, self.backs, strict=True
        ):
            scale, shift = film(cond).chunk(2, 1)
            h = self.act(layer(h)) * (1 + scale) + shift
            keys, values = (self._heads(v) for v in pair(seen).chunk(2, -1))
            found = nn.functional.scaled_dot_product_attention(
                self._heads(ask(h)[:, None]), keys, values, attn_mask=known[:, None, None]
            )
            h = h + back(found.transpose(1, 2).reshape(rows, -1))
        out: Tensor = self.head(torch.cat([h, x], 1))
        return out

    def _heads(self, v: Tensor) -> Tensor:
        """``(B, heads, n, e / heads)`` of ``(B, n, e)``."""
        return v.reshape(*v.shape[:2], self.heads, -1).transpose(1, 2)
