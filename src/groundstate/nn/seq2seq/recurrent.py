r"""Encoder and decoder of recurrent states, with a fixed or an attended context."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.architectures import architecture
from groundstate.nn.attention.embed import embedding
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.recurrent.recurrent import Recurrent, State

SCORES = ("dot", "additive")
Memory = Mapping[str, Tensor]


def _pair(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    return tuple(torch.randint(1, 7, (2, n), generator=generator) for n in (5, 4))  # type: ignore[return-value]


@architecture(
    "seq2seq_rnn",
    kind="text",
    inputs=_pair,
    small={"src_vocab": 7, "tgt_vocab": 7, "dim": 4, "hidden": 6, "padding": None},
)
class RecurrentSeq2Seq(nn.Module):
    r"""A recurrent encoder, and a decoder that reads what it wrote and a context.

    .. math:: h_t = \phi(h_{t-1}, x_t),\qquad s_{t'} = \psi(s_{t'-1}, [y_{t'-1}; c_{t'}]),\qquad
              f_{t'} = W[s_{t'}; c_{t'}] + b

    Without attention the context is the last state of the encoder, :math:`c = h_T`, whatever the
    length of the source. With attention each step looks again,

    .. math:: c_{t'} = \sum_t\alpha_{t't}h_t,\qquad \alpha_{t'} = \operatorname{softmax}_t
              \bigl(a(s_{t'-1}, h_t)\bigr),\qquad a = \tfrac{1}{\sqrt H}s^\top h
              \ \text{ or }\ v^\top\tanh(W_ss + W_hh) .

    Parameters
    ----------
    src_vocab, tgt_vocab : numbers of tokens
    dim : size of embeddings
    hidden : H, size of the states
    cell : "gru", "lstm" or "rnn"
    attention : "dot" (True), "additive", or False for the fixed context
    bidirectional : whether the encoder also reads from the end
    padding : token number that is no token
    dropout : of embeddings and states in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = RecurrentSeq2Seq(11, 13, 8, 16)
    >>> src, tgt = torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 4, dtype=torch.int64)
    >>> net(src, tgt).shape, net.alignment(src, tgt).shape
    (torch.Size([2, 4, 13]), torch.Size([2, 4, 5]))
    """

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        dim: int = 128,
        hidden: int = 256,
        cell: str = "gru",
        attention: bool | str = True,
        bidirectional: bool = False,
        *,
        padding: int | None = 0,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        kind = "dot" if attention is True else attention
        if kind is not False and kind not in SCORES:
            raise Unsupported(
                f"attention is a bool or one of {', '.join(SCORES)}, got {attention!r}"
            )
        generator = generator or torch.Generator().manual_seed(0)
        self.src_vocab, self.tgt_vocab, self.dim, self.hidden = src_vocab, tgt_vocab, dim, hidden
        self.cell, self.attention, self.bidirectional = cell, attention, bidirectional
        self.padding, self.dropout, self.kind = padding, dropout, kind
        self.source = embedding(src_vocab, dim, generator, padding)
        self.target = embedding(tgt_vocab, dim, generator, padding)
        self.encoder = Recurrent(
            cell, dim, hidden, bidirectional=bidirectional, generator=generator
        )
        width = self.encoder.out_features
        self.decoder = Recurrent(cell, dim + width, hidden, generator=generator)
        self.bridge = linear(width, hidden) if bidirectional else None
        additive = kind == "additive"
        self.key = linear(width, hidden, False) if additive or (kind and bidirectional) else None
        self.query = linear(hidden, hidden) if additive else None
        self.weigh = linear(hidden, 1, False) if additive else None
        self.score = linear(hidden + width, tgt_vocab)
        for part in (self.bridge, self.key, self.query, self.weigh, self.score):
            if part is not None:
                init_(part, "xavier", generator)

    def encode(self, src: Tensor) -> Memory:
        """What the decoder remembers of source tokens ``(B, T)``, rows first."""
        if src.ndim != 2:
            raise ShapeError(f"source tokens are (batch, length), got {tuple(src.shape)}")
        x = F.dropout(self.source(src), self.dropout, self.training)
        real = torch.ones_like(src, dtype=torch.bool) if self.padding is None else (
            src != self.padding
        )  # fmt: skip
        lengths = None if self.padding is None else real.sum(1)
        states, last = self.encoder.run(x, lengths)
        final = last if isinstance(last, Tensor) else last[0]  # (directions, B, H)
        memory = {"h": self._begin(final)}
        if isinstance(last, tuple):
            memory["c"] = self._begin(last[1])
        if self.kind is False:
            return {**memory, "context": final.transpose(0, 1).flatten(1)}
        keys = states if self.key is None else self.key(states)
        return {**memory, "context": states, "keys": keys, "real": real}

    def _begin(self, final: Tensor) -> Tensor:
        """The first state of the decoder, rows first, ``(B, 1, H)``."""
        rows = final.transpose(0, 1)
        return rows if self.bridge is None else torch.tanh(self.bridge(rows.flatten(1)))[:, None]

    def _weights(self, s: Tensor, memory: Memory) -> Tensor:
        """:math:`\\alpha_{t'}`, ``(B, T)``."""
        if self.query is not None and self.weigh is not None:
            found = self.weigh(torch.tanh(self.query(s)[:, None] + memory["keys"]))[..., 0]
        else:
            found = (memory["keys"] @ s[..., None])[..., 0] / math.sqrt(self.hidden)
        out: Tensor = found.masked_fill(~memory["real"], -math.inf).softmax(-1)
        return out

    def _advance(self, y: Tensor, memory: Memory) -> tuple[Tensor, Tensor | None, Memory]:
        """One step from embeddings ``(B, dim)``: [s; c], attention weights, new memory."""
        context, weights = memory["context"], None
        if self.kind is not False:
            weights = self._weights(memory["h"][:, -1], memory)
            context = (weights[:, None] @ context)[:, 0]
        out, state = self.decoder.step(torch.cat((y, context), -1), _state(memory))
        return torch.cat((out, context), -1), weights, {**memory, **_rows_first(state)}

    def _written(self, tgt: Tensor, memory: Memory) -> tuple[Tensor, list[Tensor]]:
        """[s; c] of all steps with the given targets, ``(B, T', H + width)``, and weights."""
        y = F.dropout(self.target(tgt), self.dropout, self.training)
        if self.kind is False:  # nothing is looked up: one pass
            context = memory["context"][:, None].expand(-1, y.shape[1], -1)
            out, _ = self.decoder.run(torch.cat((y, context), -1), None, _state(memory))
            return torch.cat((out, context), -1), []
        outs, looked = [], []
        for t in range(y.shape[1]):
            out, weights, memory = self._advance(y[:, t], memory)
            outs.append(out)
            if weights is not None:
                looked.append(weights)
        return torch.stack(outs, 1), looked

    def _scores(self, out: Tensor) -> Tensor:
        found: Tensor = self.score(F.dropout(out, self.dropout, self.training))
        return found

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Scores ``(B, T', tgt_vocab)`` of the tokens after each of ``tgt`` ``(B, T')``."""
        return self._scores(self._written(tgt, self.encode(src))[0])

    def alignment(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Where each target step looked, ``(B, T', T)``."""
        if self.kind is False:
            raise Unsupported("a fixed context looks nowhere; use attention=True")
        return torch.stack(self._written(tgt, self.encode(src))[1], 1)

    def start(self, src: Tensor) -> Memory:
        """The memory before the first target token."""
        return self.encode(src)

    def step(self, token: Tensor, cache: Memory) -> tuple[Tensor, Memory]:
        """Scores ``(B, tgt_vocab)`` after these next tokens, ``(B,)`` or ``(B, T')``."""
        y = self.target(token[:, None] if token.ndim == 1 else token)
        for t in range(y.shape[1]):
            out, _, cache = self._advance(y[:, t], cache)
        return self._scores(out), cache


def _state(memory: Memory) -> State:
    h = memory["h"].transpose(0, 1).contiguous()
    return (h, memory["c"].transpose(0, 1).contiguous()) if "c" in memory else h


def _rows_first(state: State) -> dict[str, Tensor]:
    parts = {"h": state} if isinstance(state, Tensor) else {"h": state[0], "c": state[1]}
    return {name: part.transpose(0, 1) for name, part in parts.items()}
