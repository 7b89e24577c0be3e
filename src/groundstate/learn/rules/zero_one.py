r"""The 0-1 loss: what one would like to lower, and cannot by gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Reduction, Rule, reduced

FLAT = "the gradient of the 0-1 loss is zero almost everywhere; use Perceptron, Margin or SoftMin"


def zero_one(e: Tensor, y: Tensor, reduction: Reduction = "mean") -> Tensor:
    r""":math:`L = 1(\arg\min_k e_k \ne y)`: the share of wrong predictions.

    Parameters
    ----------
    e : Tensor, ``(B, K)``
        Energies; ties go to the lowest index.
    y : Tensor, ``(B,)`` int64
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> zero_one(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([0, 1]))
    tensor(0.5000)
    """
    e = e.detach()
    return reduced((e.argmin(1) != y).to(e.dtype), reduction)


class ZeroOne(Rule):
    """The 0-1 loss as a rule: lowers e nowhere and raises e nowhere, so it refuses to train."""

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        return FLAT

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Tensor:
        self.require(energy, batch)
        raise AssertionError("unreachable")  # require always raises


@dataclass(frozen=True)
class Searched:
    """Outcome of ``random_search``: the best loss and the best loss after every try, ``(n,)``."""

    loss: float
    trace: Tensor


@torch.no_grad()
def random_search(
    energy: Energy,
    loss: Callable[[], Tensor],
    n: int = 1000,
    scale: float = 1.0,
    *,
    generator: torch.Generator | None = None,
) -> Searched:
    r"""Draw :math:`\theta \sim N(0, \text{scale}^2)` ``n`` times and keep the best, in place.

    The only way to lower a loss without gradients; its success falls quickly with the number of
    parameters.

    Parameters
    ----------
    energy : its parameters are replaced by the best draw
    loss : scalar loss at the current parameters
    n : number of draws
    scale : standard deviation of the draws
    generator : source of randomness

    Examples
    --------
    >>> layer = torch.nn.Linear(1, 1, bias=False)
    >>> found = random_search(
    ...     layer, lambda: (layer.weight - 1).abs().sum(), n=200,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.loss < 0.05
    True
    """
    parameters = list(energy.parameters())
    best, kept, trace = float("inf"), [p.clone() for p in parameters], []
    for _ in range(n):
        for p in parameters:
            noise = torch.randn(p.shape, generator=generator, device=p.device, dtype=p.dtype)
            p.copy_(scale * noise)
        value = float(loss())
        if value < best:
            best, kept = value, [p.clone() for p in parameters]
        trace.append(best)
    for p, value_kept in zip(parameters, kept, strict=True):
        p.copy_(value_kept)
    return Searched(best, torch.tensor(trace))
