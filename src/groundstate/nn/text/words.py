r"""Words of texts in their order as features of the texts: what is said, and what stands together."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError

ABSENT, UNKNOWN = 0, 1  # numbers of no word and of a word that is not in the vocabulary
_AT_ONCE = 512  # texts that are answered at once


class WordFeatures(nn.Module):
    r"""A text as the sum of its word vectors beside the strongest answer of each filter to
    neighbouring words, ``(B, T)`` to ``(B, D + F)``.

    .. math:: \Bigl(\frac1{\sqrt T}\sum_{t=1}^T v_{x_t},\quad
              \max_t\operatorname{relu}\bigl(c + \textstyle\sum_k C_k v_{x_{t+k}}\bigr)\Bigr)

    The sum knows which words there are (a bag of embeddings), the filters what stands together
    and in which order (Kim, 2014). Numbers of words are 0 behind the end and 1 for unknown ones; the
    length of the padding changes nothing, and a text without words is a row of zeros.

    Parameters
    ----------
    vocabulary : numbers of words, 0 and 1 included
    dim : D, size of a word's vector
    filters : F
    window : neighbouring words that a filter sees
    dropout : probability of leaving out each feature in a training step
    word_dropout : probability with which a word is unknown in it
    spread : of the first word vectors
    generator : of the first values

    Examples
    --------
    >>> net = WordFeatures(7, dim=3, filters=4)
    >>> words = torch.tensor([[2, 3, 0, 0], [5, 1, 4, 2]])
    >>> net(words).shape, torch.allclose(net(words)[0], net(words[:1, :2])[0])
    (torch.Size([2, 7]), True)
    """

    def __init__(
        self,
        vocabulary: int,
        dim: int = 32,
        filters: int = 64,
        window: int = 3,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        spread: float = 0.05,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.dim, self.filters, self.window = vocabulary, dim, filters, window
        self.dropout, self.word_dropout = dropout, word_dropout
        self.out_features = dim + filters
        self.vectors = nn.Parameter(spread * torch.randn(vocabulary, dim, generator=generator))
        self.weight = nn.Parameter(torch.randn(filters, window, dim, generator=generator))
        self.bias = nn.Parameter(torch.zeros(filters))

    def config(self) -> dict[str, Any]:
        return {
            "vocabulary": self.vocabulary, "dim": self.dim, "filters": self.filters,
            "window": self.window, "dropout": self.dropout, "word_dropout": self.word_dropout,
        }  # fmt: skip

    def forward(self, words: Tensor) -> Tensor:
        if words.ndim != 2:
            raise ShapeError(f"words are numbers (B, T), got {tuple(words.shape)}")
        if not self.training and len(words) > _AT_ONCE:
            return torch.cat([self(some) for some in words.split(_AT_ONCE)])
        real = words != ABSENT
        row, place = real.nonzero(as_tuple=True)
        n, longest = len(words), int(place.max()) + 1 if len(place) else 0
        if not longest:
            return self.vectors.new_zeros(n, self.out_features)
        said = words[row, place]  # of all texts, one after the other  # (N,)
        if self.training and self.word_dropout:
            kept = torch.rand(said.shape, device=said.device) >= self.word_dropout
            said = torch.where(kept, said, UNKNOWN)
        v = F.embedding(said, self.vectors)  # (N, D)
        length = real.sum(1, keepdim=True).clamp_min(1)
        total = v.new_zeros(n, self.dim).index_add(0, row, v) / length.sqrt()
        found = F.relu(self._filtered(v, row))  # (N, F)
        each = found.new_zeros(n * longest, self.filters).index_copy(
            0, row * longest + place, found
        )
        strongest = each.view(n, longest, self.filters).amax(1)
        return F.dropout(torch.cat([total, strongest], 1), self.dropout, self.training)

    def _filtered(self, v: Tensor, row: Tensor) -> Tensor:
        """What the filters make of every word and its neighbours in the same text, ``(N, F)``."""
        before = (self.window - 1) // 2
        behind = self.window - 1 - before
        wide, of = F.pad(v, (0, 0, before, behind)), F.pad(row, (before, behind), value=-1)
        near = [
            wide[k : k + len(v)] * (of[k : k + len(v)] == row)[:, None] for k in range(self.window)
        ]
        weight = self.weight.flatten(1) / math.sqrt(self.dim * self.window)
        return F.linear(torch.cat(near, 1), weight, self.bias)


class TextColumns(nn.Module):
    r"""Features of the texts among the columns of a table, ``(B, D)`` to ``(B, out_features)``.

    Parameters
    ----------
    spans : first column, column behind the last, and vocabulary of each text
    settings : of ``WordFeatures``
    generator : of the first values

    Attributes
    ----------
    columns : all columns that hold words

    Examples
    --------
    >>> net = TextColumns([(1, 3, 5)], dim=2, filters=3)
    >>> net(torch.tensor([[0.5, 2.0, 4.0]])).shape, net.columns
    (torch.Size([1, 5]), (1, 2))
    """

    def __init__(
        self, spans: Any, *, generator: torch.Generator | None = None, **settings: Any
    ) -> None:
        super().__init__()
        self.spans = tuple((int(a), int(b), int(v)) for a, b, v in spans)
        self.settings = settings
        self.columns = tuple(c for a, b, _ in self.spans for c in range(a, b))
        self.texts = nn.ModuleList(
            WordFeatures(v, **settings, generator=generator) for _, _, v in self.spans
        )
        self.out_features = sum(text.out_features for text in self._texts())

    def _texts(self) -> list[WordFeatures]:
        return [text for text in self.texts if isinstance(text, WordFeatures)]

    def config(self) -> dict[str, Any]:
        return {"spans": [list(span) for span in self.spans], **self.settings}

    def forward(self, x: Tensor) -> Tensor:
        parts = []
        for text, (a, b, size) in zip(self._texts(), self.spans, strict=True):
            words = x[:, a:b].long()
            parts.append(text(torch.where((words < 0) | (words >= size), UNKNOWN, words)))
        return torch.cat(parts, 1)
