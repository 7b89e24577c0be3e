"""Chains that left the data: named with a number and what to do."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from groundstate.errors import Unreliable

FAR = 10.0  # spreads of the data beyond which a chain has run away


def runaway_chains(chains: Tensor, x: Tensor) -> tuple[int, float]:
    """How many chains ``(n, d)`` are further from the data's mean than ten times its largest
    distance to a row, or not finite, and the largest distance over the data's."""
    centre = x.mean(0)
    reach = (x - centre).norm(dim=1).max().clamp_min(1e-12)
    away = torch.nan_to_num((chains - centre).norm(dim=1) / reach, nan=torch.inf)
    return int((away > FAR).sum()), float(away.max())


def warn_of_runaway_chains(chains: Tensor, x: Tensor, advice: str) -> None:
    """Warn where negative chains have left the region of the rows."""
    if not torch.is_floating_point(chains):
        return
    gone, worst = runaway_chains(chains.flatten(1), x.flatten(1))
    if gone:
        warnings.warn(
            f"{gone} of {len(chains)} negative chains ran away, to {worst:.3g} times the reach of the "
            f"data: the energy is lower there than at any row, so draws and densities cannot be "
            f"trusted; {advice}",
            Unreliable,
            stacklevel=3,
        )
