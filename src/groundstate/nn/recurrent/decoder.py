r"""Sequences of symbols from something given: the patterns of input and output of recurrent networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.recurrent.recurrent import CELLS, Recurrent, State

ENTERS = ("start", "every", "aligned")


class RecurrentDecoder(nn.Module):
    r"""Scores of symbols :math:`y_1, \dots, y_T` from x, for ``SequenceEnergy``.

    ========= ============================================ =====================================
    enter     x                                            distribution
    ========= ============================================ =====================================
    start     one vector, which makes the first state      :math:`\prod_tp(y_t\mid y_{<t}, x)`
    every     one vector, read at every step               :math:`\prod_tp(y_t\mid y_{<t}, x)`
    aligned   a vector for each step                       :math:`\prod_tp(y_t\mid y_{<t}, x_{\le t})`
    ========= ============================================ =====================================

    With ``feedback=False`` the symbols before are not read: given x the symbols are independent,
    :math:`\prod_tp(y_t\mid x)` or :math:`\prod_tp(y_t\mid x_{\le t})`.

    Parameters
    ----------
    k : number of symbols
    in_features : length of a vector of x
    hidden : units
    cell : "gru", "lstm" or "rnn"
    enter : see above
    feedback : whether a step reads the symbol before
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> from groundstate.energy import SequenceEnergy
    >>> e = SequenceEnergy(RecurrentDecoder(3, 2, 8), 3, 4, 2)
    >>> every = e.spaces["y"].enumerate()
    >>> p = (-e(x=torch.ones(len(every), 2), y=every)).exp().sum()
    >>> round(p.item(), 5)
    1.0
    """

    def __init__(
        self,
        k: int,
        in_features: int,
        hidden: int = 64,
        cell: str = "gru",
        enter: str = "start",
        feedback: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if enter not in ENTERS:
            raise Unsupported(f"enter {enter!r} is not known; use one of {', '.join(ENTERS)}")
        if cell not in CELLS:
            raise Unsupported(f"cell {cell!r} is not known; use one of {', '.join(CELLS)}")
        self.k, self.in_features, self.hidden = k, in_features, hidden
        self.cell, self.enter, self.feedback = cell, enter, feedback
        generator = generator or torch.Generator().manual_seed(0)
        read = (k + 1 if feedback else 0) + (in_features if enter != "start" else 0)
        self.core = Recurrent(cell, max(1, read), hidden, generator=generator)
        self.first = (
            init_(linear(in_features, hidden), generator=generator) if enter == "start" else None
        )
        self.head = init_(linear(hidden, k), generator=generator)

    def forward(self, tokens: Tensor, x: Tensor) -> Tensor:
        """Scores ``(B, T, k)`` of the symbols after ``tokens`` ``(B, T)``, the first of which is k, the
        mark of the beginning; x is ``(B, in_features)``, or ``(B, T, in_features)`` where aligned."""
        rank = 3 if self.enter == "aligned" else 2
        if x.ndim != rank or x.shape[-1] != self.in_features:
            form = "(B, T, {})" if rank == 3 else "(B, {})"
            raise ShapeError(
                f"enter={self.enter!r} takes x of shape {form.format(self.in_features)}, got "
                f"{tuple(x.shape)}"
            )
        length = tokens.shape[1]
        read: list[Tensor] = []
        if self.feedback:
            read.append(F.one_hot(tokens, self.k + 1).to(x.dtype))
        if self.enter == "every":
            read.append(x[:, None].expand(-1, length, -1))
        if self.enter == "aligned":
            read.append(x[:, :length])
        inputs = torch.cat(read, -1) if read else x.new_zeros(len(x), length, 1)
        out, _ = self.core.run(inputs, None, self._start(x))
        scores: Tensor = self.head(out)
        return scores

    def _start(self, x: Tensor) -> State | None:
        if self.first is None:
            return None
        h = torch.tanh(self.first(x))[None]
        return (h, torch.zeros_like(h)) if self.cell == "lstm" else h

    def extra_repr(self) -> str:
        return f"enter={self.enter!r}, feedback={self.feedback}"
