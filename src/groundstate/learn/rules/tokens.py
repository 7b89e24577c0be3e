r"""Sequences symbol by symbol: cross-entropy of the next symbol, mean over symbols or over rows."""

from __future__ import annotations

import torch

from groundstate.energy.base import Energy
from groundstate.energy.networks.sequence import SequenceEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.registry import rules


@rules.register(
    formula=r"L = \frac1m\sum_t -\log p(y_t\mid y_{<t}, x)", make=lambda energy: NextToken()
)
class NextToken(Rule):
    r""":math:`L = \frac1m\sum_t -\log p(y_t\mid y_{<t}, x)`. Lowers e on the data, and as
    every factor is a softmax raises it on all other symbols ∝ their probability.

    Symbols that the energy ignores (padding) add nothing. With m the mean number of symbols of a
    row, the mean over rows is the mean over symbols,
    :math:`\sum_i w_ie_i/\sum_iw_iL_i`; with m = 1 the sum over positions counts.

    Parameters
    ----------
    tokens : m
    label_smoothing : ε: the target is :math:`1-\varepsilon` of the right symbol and
        :math:`\varepsilon` of the uniform distribution

    Examples
    --------
    >>> from torch import nn
    >>> energy = SequenceEnergy(nn.Sequential(nn.Embedding(4, 3)), 3, 2)
    >>> _ = nn.init.zeros_(energy.net[0].weight)  # uniform: T log K per sentence
    >>> NextToken()(energy, {"y": torch.tensor([[0, 2]])}).loss
    tensor([2.1972], grad_fn=<DivBackward0>)
    """

    def __init__(self, tokens: float = 1.0, label_smoothing: float = 0.0) -> None:
        super().__init__()
        if not tokens > 0:
            raise ValueError(f"tokens must be positive, got {tokens}")
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in [0, 1), got {label_smoothing}")
        self.tokens, self.label_smoothing = float(tokens), float(label_smoothing)

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        assert isinstance(energy, SequenceEnergy)
        each = energy.token_energies(**batch, label_smoothing=self.label_smoothing)
        loss = each.sum(1) / self.tokens
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)))

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, SequenceEnergy):
            return "its symbols are not answered one after the other by a network"
        return None

    def contrast_is_constant(self, energy: Energy) -> bool:
        return True

    def extra_repr(self) -> str:
        return f"tokens={self.tokens:g}, label_smoothing={self.label_smoothing:g}"
