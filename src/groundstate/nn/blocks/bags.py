r"""Linear maps of the mean item of a row: of vectors in a sequence, of tokens in a text."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged, Tokens, mean_items
from groundstate.nn.blocks.initialise import linear


class MeanPool(nn.Module):
    r""":math:`f(x) = W\,\frac1T\sum_t x_t + b` for sequences of any length T.

    Parameters
    ----------
    in_features, out_features : sizes of an item and of f

    Examples
    --------
    >>> MeanPool(2, 3)(Ragged.of([[[1.0, 2.0]], [[0.0, 1.0], [3.0, 1.0]]])).shape
    torch.Size([2, 3])
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.linear = linear(in_features, out_features)
        for p in self.linear.parameters():  # the problem is convex: any start will do
            nn.init.zeros_(p)

    def config(self) -> dict[str, Any]:
        return {"in_features": self.in_features, "out_features": self.out_features}

    def forward(self, x: Ragged) -> Tensor:
        out: Tensor = self.linear(mean_items(x.values, x.offsets))
        return out


class BagOfTokens(nn.Module):
    r""":math:`f(x) = \frac1T\sum_t W_{x_t} + b`: every token votes, wherever it stands.

    Parameters
    ----------
    vocabulary : token numbers
    out_features : size of f

    Examples
    --------
    >>> BagOfTokens(5, 3)(Tokens.of(Ragged.of([[0, 4], [1]]))).shape
    torch.Size([2, 3])
    """

    def __init__(self, vocabulary: int, out_features: int) -> None:
        super().__init__()
        self.vocabulary, self.out_features = vocabulary, out_features
        self.weight = nn.Parameter(torch.zeros(vocabulary, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def config(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "out_features": self.out_features}

    def forward(self, x: Tokens) -> Tensor:
        votes = nn.functional.embedding(x.tokens.values, self.weight)
        return mean_items(votes, x.tokens.offsets) + self.bias
