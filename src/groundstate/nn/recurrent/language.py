r"""Recurrent language models: the state is all that is known of the past."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, tokens
from groundstate.nn.attention.embed import embedding
from groundstate.nn.recurrent.recurrent import Recurrent, State


class RecurrentLM(nn.Module):
    r"""Scores of the next token from a recurrent state.

    .. math:: h_t = \phi(E[x_t], h_{t-1}),\qquad f_t = E W h_t + b,\qquad
              p(x_{t+1}\mid x_{\le t}) = \operatorname{softmax}(f_t)

    The state before the first token is learned.

    Parameters
    ----------
    vocab : number of tokens
    cell : "gru", "lstm" or "rnn"
    dim, hidden, layers : sizes
    dropout : of embeddings, states and between layers in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = RecurrentLM(11, "gru", 8, 16)
    >>> net(torch.ones(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 11])
    """

    def __init__(
        self,
        vocab: int = 256,
        cell: str = "gru",
        dim: int = 256,
        hidden: int = 512,
        layers: int = 1,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.vocab, self.cell, self.dim, self.hidden = vocab, cell, dim, hidden
        self.layers, self.dropout = layers, dropout
        self.embed = embedding(vocab, dim, generator)
        self.core = Recurrent(
            cell, dim, hidden, layers, learn_h0=True, dropout=dropout, generator=generator
        )
        self.out = nn.Parameter(_uniform((dim, hidden), hidden**-0.5, generator))
        self.bias = nn.Parameter(torch.zeros(vocab))

    def _scores(self, states: Tensor) -> Tensor:
        h = F.linear(F.dropout(states, self.dropout, self.training), self.out)
        return F.linear(h, self.embed.weight, self.bias)

    def _inputs(self, tokens: Tensor) -> Tensor:
        if tokens.ndim != 2:
            raise ShapeError(f"RecurrentLM takes tokens (batch, length), got {tuple(tokens.shape)}")
        return F.dropout(self.embed(tokens), self.dropout, self.training)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores ``(B, T, vocab)`` of the token after each of ``tokens`` ``(B, T)``."""
        return self._scores(self.core(self._inputs(tokens)))

    def start(self, rows: int, x: None = None) -> dict[str, Tensor]:
        """The state before the first token, rows first."""
        return _packed(self.core.start(rows))

    def step(
        self, token: Tensor, cache: Mapping[str, Tensor]
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Scores ``(B, vocab)`` after these next tokens, ``(B,)`` or several, ``(B, T)``."""
        tokens = token[:, None] if token.ndim == 1 else token
        h = cache["h"].transpose(0, 1).contiguous()
        state: State = (h, cache["c"].transpose(0, 1).contiguous()) if "c" in cache else h
        out, state = self.core.run(self._inputs(tokens), None, state)
        return self._scores(out[:, -1]), _packed(state)


def _packed(state: State) -> dict[str, Tensor]:
    parts = {"h": state} if isinstance(state, Tensor) else {"h": state[0], "c": state[1]}
    return {name: part.transpose(0, 1) for name, part in parts.items()}


def _uniform(shape: tuple[int, int], bound: float, generator: torch.Generator) -> Tensor:
    return (2 * torch.rand(shape, generator=generator, device=generator.device) - 1) * bound


_SMALL = {"vocab": 11, "dim": 6, "hidden": 8}


@architecture("gru_lm", kind="text", inputs=tokens(11, 5), small=_SMALL)
def gru_lm(
    vocab: int = 256,
    dim: int = 256,
    hidden: int = 512,
    layers: int = 1,
    *,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> RecurrentLM:
    """A language model of gated recurrent units."""
    return RecurrentLM(vocab, "gru", dim, hidden, layers, dropout=dropout, generator=generator)


@architecture("lstm_lm", kind="text", inputs=tokens(11, 5), small=_SMALL)
def lstm_lm(
    vocab: int = 256,
    dim: int = 256,
    hidden: int = 512,
    layers: int = 1,
    *,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> RecurrentLM:
    """A language model of long short-term memory."""
    return RecurrentLM(vocab, "lstm", dim, hidden, layers, dropout=dropout, generator=generator)
