r"""The first layer of a network for sequences: items of unit scale, tokens as vectors."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged, Tokens
from groundstate.nn.attention.embed import embedding
from groundstate.nn.blocks.whiten import Standardize

_GRID = 2.0**16


class StandardizeItems(Standardize):
    r""":math:`(x_{td} - \bar x_d)/s_d` for every item t of a sequence, with mean and standard deviation
    of the items given to ``fit``; constant columns keep their scale.

    Both are rounded to 16 bits of the scale, which nothing notices but the order of the rows: sums in
    another order give the same layer, to the last bit.

    Examples
    --------
    >>> layer = StandardizeItems(1).fit_rows(Ragged.of([[[1.0], [3.0]], [[5.0]]]))
    >>> layer(Ragged.of([[[3.0]]])).values.abs().item() < 1e-4
    True
    """

    @torch.no_grad()
    def fit_rows(self, rows: Ragged, weight: Tensor | None = None) -> Self:
        """Learn from sequences; a weight of 2 is the sequence twice, with all its items."""
        own = None if weight is None else weight.repeat_interleave(rows.lengths)
        self.fit(rows.values.double(), own)
        scale = _rounded(self.scale)
        self.mean.copy_((self.mean / scale * _GRID).round() / _GRID * scale)
        self.scale.copy_(scale)
        return self

    def forward(self, x: Any) -> Any:
        return x.like(super().forward(x.values)) if isinstance(x, Ragged) else super().forward(x)


class TokenVectors(nn.Module):
    r"""Token numbers as learned vectors, :math:`x_t \mapsto E[x_t]`, row by row.

    Parameters
    ----------
    vocabulary : number of tokens
    dim : length of a vector
    generator : source of the initial vectors; None is a fixed seed

    Examples
    --------
    >>> TokenVectors(5, 3)(Ragged.of([[0, 4], [1]]))
    2 sequences of 1 to 2 items of shape (3,), float32
    """

    def __init__(
        self, vocabulary: int, dim: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.vocabulary, self.dim = vocabulary, dim
        generator = generator or torch.Generator().manual_seed(0)
        self.table = embedding(vocabulary, dim, generator)
        with torch.no_grad():
            self.table.weight.div_(self.table.weight.std().clamp_min(1e-12))  # items of unit scale

    def forward(self, x: Ragged | Tokens) -> Ragged:
        rows = x.tokens if isinstance(x, Tokens) else x
        return rows.like(self.table(rows.values))


def _rounded(x: Tensor) -> Tensor:
    mantissa, power = torch.frexp(x)
    return torch.ldexp((mantissa * _GRID).round() / _GRID, power)
