r"""A linear chain of labels, :math:`e(x,y) = -\sum_t (Wx_t+b)_{y_t} + \sum_t A_{y_t,y_{t+1}}`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.registering import registered
from groundstate.energy.sequences.step import StepState
from groundstate.energy.spaces import Finite, Real, Sequence
from groundstate.math.chains.chain import ChainFactors


@registered(
    r"e(x, y) = -\sum_t (Wx_t + b)_{y_t} + \sum_t A_{y_t y_{t+1}}",
    lambda: ChainEnergy(2, 3, 4, scale=1.0),
)
class ChainEnergy(Energy):
    r"""Labels of a sequence with a linear fit per item and a table for neighbours,
    :math:`e(x, y) = -\sum_t (Wx_t + b)_{y_t} + \sum_t A_{y_t, y_{t+1}}`.

    Parameters
    ----------
    d : features per item
    k : number of labels
    length : items of the longest sequence; shorter rows pass ``lengths`` ``(B,)``
    scale : standard deviation of the initial W and A; 0 starts at zero
    generator : source of the initial values

    Attributes
    ----------
    W : Parameter, ``(k, d)``
    b : Parameter, ``(k,)``
    A : Parameter, ``(k, k)``: energy of label i followed by label j

    Examples
    --------
    >>> e = ChainEnergy(2, 2, 3)
    >>> _ = e.W.data.copy_(-torch.eye(2)), e.A.data.copy_(torch.tensor([[0.0, 0.7], [0.3, 0.0]]))
    >>> unary = torch.tensor([[[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]]])
    >>> round(e(x=unary, y=torch.tensor([[0, 1, 1]])).item(), 4)
    0.9
    """

    context = ("lengths",)

    def __init__(
        self,
        d: int,
        k: int,
        length: int,
        *,
        scale: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Sequence(Real(d), length), y=Sequence(Finite(k), length))
        generator = seeded(generator)
        self.W = nn.Parameter(normal(k, d, scale=scale, generator=generator))
        self.b = nn.Parameter(torch.zeros(k))
        self.A = nn.Parameter(normal(k, k, scale=scale, generator=generator))

    def config(self) -> dict[str, Any]:
        k, d = self.W.shape
        return {"d": d, "k": k, "length": self.spaces["y"].shape[0]}

    @offers.chain("y")
    def factors(self, x: Tensor, lengths: Tensor | None = None) -> ChainFactors:
        return ChainFactors(-linear(x, self.W, self.b), self.A, lengths)

    def forward(self, x: Tensor, y: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self.factors(x, lengths).energy(y)

    @offers.step("y")
    def step(
        self, state: StepState | None, x: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, StepState]:
        """Energy added by each next label; behind a row's end only label 0, at no cost."""
        if state is None:
            state = StepState.start(x.shape[0], x.shape[1], device=x.device)
        t, last = state.position, state.last
        increments = -linear(x[:, t], self.W, self.b)  # (B, K)
        if last is not None:
            increments = increments + self.A[last]
        return pad_increments(increments, t, lengths), state


def pad_increments(increments: Tensor, position: int, lengths: Tensor | None) -> Tensor:
    """Behind the end of a row nothing is chosen: symbol 0 costs 0, the others +inf."""
    if lengths is None:
        return increments
    padding = torch.full_like(increments, math.inf)
    padding[:, 0] = 0.0
    return torch.where((position < lengths)[:, None], increments, padding)
