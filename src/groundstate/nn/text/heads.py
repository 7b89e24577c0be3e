r"""Networks on tokens of texts: what stands in gaps, labels of texts, labels of their tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Gaps, Ragged, Tokens
from groundstate.compute.rows.ragged import offsets_of
from groundstate.errors import Unsupported
from groundstate.nn.attention.bert import BERT, MaskedBERT, small_
from groundstate.nn.attention.gpt import GPT
from groundstate.nn.blocks.initialise import linear
from groundstate.nn.recurrent.language import RecurrentLM


def padded(tokens: Ragged) -> tuple[Tensor, Tensor]:
    """Tokens ``(B, T)`` and where they are real, ``(B, T)``."""
    values = tokens.padded(0)
    at = torch.arange(values.shape[1], device=values.device)
    return values, at < tokens.lengths[:, None]


def encode(net: nn.Module, tokens: Ragged) -> tuple[Tensor, Tensor]:
    """The vectors of all tokens ``(B, T, dim)`` in a network for texts, and which are real."""
    values, real = padded(tokens)
    if isinstance(net, MaskedBERT):
        return net.bert(values, real), real
    if isinstance(net, BERT):
        return net(values, real), real
    if isinstance(net, GPT):
        return net.hidden(values), real  # behind the end nobody looks
    if isinstance(net, RecurrentLM):
        return net.core(net.embed(values)), real
    raise Unsupported(
        f"{type(net).__name__} gives no vectors of tokens; use BERT, MaskedBERT, GPT or RecurrentLM"
    )


def reads(net: nn.Module) -> bool:
    """Whether ``encode`` knows the vectors of a network's tokens."""
    return isinstance(net, MaskedBERT | BERT | GPT | RecurrentLM)


def width(net: Any) -> int:
    """Features of the vectors that ``encode`` gives."""
    return int(net.hidden if isinstance(net, RecurrentLM) else net.dim)


class FillsGaps(nn.Module):
    r"""Scores of the tokens in the gaps of texts, ``Ragged`` items ``(G, vocab)``.

    Parameters
    ----------
    net : ``MaskedBERT``
    mask : number of the token that marks a gap where none are named

    Examples
    --------
    >>> net = FillsGaps(MaskedBERT(11, 16, 8, 2, 2), mask=1)
    >>> net(Tokens.of(Ragged.of([[3, 1, 4], [1, 1]])))
    2 sequences of 1 to 2 items of shape (11,), float32
    """

    def __init__(self, net: MaskedBERT, mask: int) -> None:
        super().__init__()
        self.net, self.mask = net, mask

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "mask": self.mask}

    def forward(self, x: Tokens) -> Ragged:
        return self.both(x)[0]

    def both(self, x: Tokens) -> tuple[Ragged, Tensor]:
        """Scores of the gaps, and the vectors of all tokens ``(B, T, dim)``."""
        hidden, real = encode(self.net, x.tokens)
        if isinstance(x, Gaps):
            places, offsets = x.places, x.gaps.offsets
        else:
            is_gap = x.tokens.values == self.mask
            places = is_gap.nonzero().squeeze(1)
            offsets = offsets_of(is_gap.long())[x.tokens.offsets]
        return Ragged._of(self.net.scores(hidden[real][places]), offsets), hidden


class LabelsTexts(nn.Module):
    r"""Scores of the labels of a text, :math:`f = W\tanh(W_p h) + b`, with h the vector of the first
    token of an encoder that looks both ways, of the last token of one that looks back.

    Parameters
    ----------
    net : ``MaskedBERT``, ``BERT``, ``GPT`` or ``RecurrentLM``; its heads are not used
    num_classes : number of labels
    dropout : of the pooled vector in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = LabelsTexts(BERT(11, 16, 8, 2, 2), 3)
    >>> net(Tokens.of(Ragged.of([[3, 1, 4], [1, 1]]))).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        net: nn.Module,
        num_classes: int,
        dropout: float = 0.1,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.net, self.num_classes, self.dropout = net, num_classes, dropout
        self.pool = linear(width(net), width(net))
        self.score = linear(width(net), num_classes)
        small_(self.pool, generator, width(net))
        small_(self.score, generator, width(net))
        known = net.bert.pool if isinstance(net, MaskedBERT) else getattr(net, "pool", None)
        if isinstance(known, nn.Linear):
            self.pool.load_state_dict(known.state_dict())

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "num_classes": self.num_classes, "dropout": self.dropout}

    def forward(self, x: Tokens) -> Tensor:
        hidden, _ = encode(self.net, x.tokens)
        if isinstance(self.net, BERT | MaskedBERT):
            h = hidden[:, 0]
        else:
            last = (x.tokens.lengths - 1).clamp(min=0)
            h = hidden[torch.arange(len(hidden), device=hidden.device), last]
        pooled = torch.tanh(self.pool(h))
        out: Tensor = self.score(nn.functional.dropout(pooled, self.dropout, self.training))
        return out


class CodesTexts(nn.Module):
    r"""A code of a text, :math:`f = W\,\frac1T\sum_th_t`: the mean vector of its tokens, turned.

    Parameters
    ----------
    net : ``MaskedBERT``, ``BERT``, ``GPT`` or ``RecurrentLM``; its heads are not used
    out_features : numbers of a code
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = CodesTexts(BERT(11, 16, 8, 2, 2), 3)
    >>> net(Tokens.of(Ragged.of([[3, 1, 4], [1, 1]]))).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, net: nn.Module, out_features: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.net, self.out_features = net, out_features
        self.turn = linear(width(net), out_features, bias=False)
        generator = generator or torch.Generator().manual_seed(0)
        nn.init.normal_(self.turn.weight, std=width(net) ** -0.5, generator=generator)

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "out_features": self.out_features}

    def forward(self, x: Tokens) -> Tensor:
        hidden, real = encode(self.net, x.tokens)
        share = real.to(hidden.dtype) / real.sum(1, keepdim=True).clamp(min=1)
        code: Tensor = self.turn((hidden * share[..., None]).sum(1))
        return code


class TagsWords(nn.Module):
    r"""Scores of the tags of words, ``Ragged`` items ``(words, num_classes)``: each from the vector of
    its first token.

    Parameters
    ----------
    net, num_classes, dropout, generator : as of ``LabelsTexts``

    Examples
    --------
    >>> x = Tokens.of(Ragged.of([[3, 1, 4], [1, 1]]))
    >>> words = Gaps(x.tokens, x.content, Ragged.of([[0, 2], [1]]))
    >>> TagsWords(BERT(11, 16, 8, 2, 2), 3)(words)
    2 sequences of 1 to 2 items of shape (3,), float32
    """

    def __init__(
        self,
        net: nn.Module,
        num_classes: int,
        dropout: float = 0.1,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.net, self.num_classes, self.dropout = net, num_classes, dropout
        self.score = linear(width(net), num_classes)
        small_(self.score, generator or torch.Generator().manual_seed(0), width(net))

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "num_classes": self.num_classes, "dropout": self.dropout}

    def forward(self, x: Gaps) -> Ragged:
        hidden, real = encode(self.net, x.tokens)
        h = nn.functional.dropout(hidden[real][x.places], self.dropout, self.training)
        return x.gaps.like(self.score(h))
