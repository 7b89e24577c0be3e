r"""Several labels at once, each with its own distribution: :math:`e(x, y) = -\sum_o\log p_o(y_o\mid x)`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, Independent

from groundstate.energy import spaces
from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy


class OutputsEnergy(Energy):
    """Labels that are independent given x.

    A subclass defines ``shares``.

    Parameters
    ----------
    d : number of features
    sizes : number of classes of each output
    """

    normalised = frozenset({"y"})
    missing = frozenset({"x"})
    held = frozenset({"x"})

    def __init__(self, d: int, sizes: Sequence[int]) -> None:
        label = spaces.Finite(max(sizes))
        super().__init__(x=spaces.Real(d), y=spaces.Sequence(label, len(sizes)))
        self.d, self.sizes = d, tuple(int(k) for k in sizes)

    def shares(self, x: Tensor) -> list[Tensor]:
        """Class probabilities of each output, ``(B, sizes[o])``."""
        raise TypeError(f"{type(self).__name__} must define shares(x)")

    def probabilities(self, x: Tensor) -> Tensor:
        """The same in one table, ``(B, outputs, max(sizes))``; zero where there is no class."""
        wide = max(self.sizes)
        parts = [torch.nn.functional.pad(p, (0, wide - p.shape[1])) for p in self.shares(x)]
        return torch.stack(parts, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.probabilities(x).gather(2, y[:, :, None])[:, :, 0].log().sum(1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.probabilities(x).argmax(2)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return Independent(Categorical(logits=self.probabilities(x).log() / T), 1)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        return (self.probabilities(x).log() / T).logsumexp(2).sum(1)
