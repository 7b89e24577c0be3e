r"""Scores at every step of a sequence, from both sides of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.compute.rows import Ragged
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.architectures import architecture, rows
from groundstate.nn.attention import masks
from groundstate.nn.attention.embed import embedding
from groundstate.nn.attention.positions import SinusoidalPositions
from groundstate.nn.attention.transformer import TransformerEncoder
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.recurrent.padding import pad_batch, unpad
from groundstate.nn.recurrent.recurrent import CELLS, Recurrent


@architecture(
    "step_scores",
    kind="sequence",
    inputs=rows(5, 3),
    small={"num_classes": 4, "in_features": 3, "dim": 4, "hidden": 6},
)
class StepScores(nn.Module):
    r"""Scores of the labels of each step, :math:`f_t = W\,[\overrightarrow h_t;\overleftarrow h_t] + b`.

    Steps are rows of numbers, or sets of feature numbers whose vectors add up (a word, its ending,
    its form). With ``cell="transformer"`` the states are those of an encoder with attention.

    Parameters
    ----------
    num_classes : labels
    in_features : numbers of a step; None for features by number
    vocab : features by number
    dim, hidden, layers : sizes of the vectors, of the states of each direction, and their depth
    cell : "lstm", "gru", "rnn" or "transformer"
    dropout : of vectors and states in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = StepScores(4, in_features=3)
    >>> net(torch.ones(2, 5, 3)).shape
    torch.Size([2, 5, 4])
    >>> net(Ragged.of([torch.ones(2, 3), torch.ones(1, 3)]))
    2 sequences of 1 to 2 items of shape (4,), float32
    """

    def __init__(
        self,
        num_classes: int,
        in_features: int | None = None,
        vocab: int | None = None,
        dim: int = 64,
        hidden: int = 64,
        layers: int = 1,
        cell: str = "lstm",
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if (in_features is None) == (vocab is None):
            raise ValueError("give either in_features (numbers) or vocab (features by number)")
        if cell not in (*CELLS, "transformer"):
            raise Unsupported(f"cell {cell!r} is not known; use {', '.join(CELLS)} or transformer")
        generator = generator or torch.Generator().manual_seed(0)
        self.num_classes, self.in_features, self.vocab = num_classes, in_features, vocab
        self.dim, self.hidden, self.layers = dim, hidden, layers
        self.cell, self.dropout = cell, dropout
        attends = cell == "transformer"
        width = dim if vocab is not None or attends else in_features
        assert width is not None
        self.embed: nn.Module = (
            embedding(vocab, dim, generator, std=0.1) if vocab is not None
            else linear(width if in_features is None else in_features, dim) if attends
            else nn.Identity()
        )  # fmt: skip
        self.place = SinusoidalPositions(dim) if attends else None
        self.core: Any = (
            TransformerEncoder(dim, 4 if dim % 4 == 0 else 1, layers, 4 * hidden, norm_first=True,
                               dropout=dropout, generator=generator)
            if attends
            else Recurrent(cell, width, hidden, layers, True, dropout=dropout, generator=generator)
        )  # fmt: skip
        self.score = linear(dim if attends else 2 * hidden, num_classes)
        init_(self.score, "xavier", generator)
        if isinstance(self.embed, nn.Linear):
            init_(self.embed, "xavier", generator)

    def forward(self, x: Tensor | Ragged) -> Any:
        """Scores ``(B, T, num_classes)`` of rows of one length, or ragged ones."""
        if isinstance(x, Tensor):
            return self._scores(self._states(self._vectors(x), None))
        if not len(x.values):
            return x.like(self.score.weight.new_zeros(0, self.num_classes))
        filled = x.lengths > 0  # a recurrent network reads no empty rows
        index = filled.nonzero()[:, 0]
        some = x if bool(filled.all()) else x.take(index)
        vectors, _ = pad_batch(some.like(self._vectors(some.values)))
        scores = self._scores(self._states(vectors, some.lengths))
        return x.like(unpad(scores, some.lengths).values)

    def _vectors(self, x: Tensor) -> Tensor:
        wanted = "numbers of features" if self.vocab is not None else f"(…, {self.in_features})"
        if (x.is_floating_point() and self.vocab is not None) or (
            self.in_features is not None and x.shape[-1] != self.in_features
        ):
            raise ShapeError(f"steps are {wanted}, got {x.dtype} {tuple(x.shape)}")
        v: Tensor = self.embed(x)
        return F.dropout(v.sum(-2) if self.vocab is not None else v, self.dropout, self.training)

    def _states(self, v: Tensor, lengths: Tensor | None) -> Tensor:
        if self.place is None:
            out: Tensor = self.core(v, lengths)
            return out
        seen = None if lengths is None else masks.padding(lengths, v.shape[1])
        found: Tensor = self.core(self.place(v), seen)
        return found

    def _scores(self, h: Tensor) -> Tensor:
        found: Tensor = self.score(F.dropout(h, self.dropout, self.training))
        return found
