r"""Missing cells of a density: :math:`x_u \sim p(x_u \mid x_k) \propto e^{\log p(x_u, x_k)}`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.infer import minimise
from groundstate.infer import sample as draw
from groundstate.infer.sampling.hmc import HMC

STARTS = 256  # rows drawn from the model, of which the nearest is where a chain starts
SAMPLER = HMC(step_size=0.1, n_leapfrog=5, n_steps=30)


class LogProb(Energy):
    """Minus the log density of a fitted model's coded rows, as an energy of x given the contexts."""

    def __init__(self, model: Any, d: int, y: Tensor | None) -> None:
        super().__init__(x=Real(d))
        self.model, self.y, self.net = model, y, model.energy_

    def forward(self, x: Tensor) -> Tensor:
        y = self.y
        if y is not None and len(y) != len(x):
            y = y.repeat(len(x) // len(y), 1)
        log_p: Tensor = self.model._log_prob(x, y)
        return -log_p


def filled(
    model: Any,
    x: Tensor,
    unknown: Tensor,
    y: Tensor | None,
    how: str,
    generator: torch.Generator,
) -> Tensor:
    """Complete coded rows by Hamiltonian dynamics or by descent on the model's log density.

    Chains start at the rows drawn from the model that are nearest in what is known, so that they find
    the right mode.

    Parameters
    ----------
    model : fitted generator
    x : coded rows ``(B, D)``
    unknown : cells that are free, ``(B, D)``
    y : contexts ``(B, q)`` or None
    how : "minimise" or "sample"
    generator : source of randomness
    """
    start = nearest_draws(model, x, unknown, y, generator)
    if how == "sample":
        blank = unknown.all(1)
        if bool(blank.all()):
            return start
    energy = LogProb(model, x.shape[1], y)
    free, given, init = {"x": unknown}, {"x": x}, {"x": start}
    if how == "minimise":
        found = minimise(energy, free, given, init=init, generator=generator)["x"]
    else:
        found = draw(energy, free, given, 1, method=SAMPLER, init=init, generator=generator)["x"][0]
        found = torch.where(unknown.all(1, keepdim=True), start, found)
    return torch.where(unknown, found.to(x.dtype), x)


def nearest_draws(
    model: Any, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
) -> Tensor:
    """For each row one drawn from the model that is near in the known cells, ``(B, D)``.

    Drawn with probability :math:`\\propto e^{-\\|x_k - x'_k\\|^2/2h^2}`, so that several rows of the same
    known cells start in several modes; a row without known cells gets a row of its own.
    """
    rows = len(x)
    with torch.no_grad():
        if y is None:
            pool, _ = model._draw(max(STARTS, rows), None, 1.0, generator)
            known = (~unknown).to(x.dtype)
            best = torch.empty(rows, dtype=torch.int64, device=x.device)
            for at in range(0, rows, 512):
                k, own = known[at : at + 512], x[at : at + 512]
                gap = (
                    (own * own * k).sum(1, keepdim=True) - 2 * (own * k) @ pool.T + k @ (pool**2).T
                )
                h = k.sum(1, keepdim=True).clamp_min(1.0) * 0.05
                p = (-(gap - gap.amin(1, keepdim=True)) / (2 * h)).softmax(1)
                best[at : at + 512] = torch.multinomial(p, 1, generator=generator)[:, 0]
            start = pool[best]
            blank = unknown.all(1)
            start[blank] = pool[:rows][blank]
        else:
            start, _ = model._draw(rows, y, 1.0, generator)
    return torch.where(unknown, start, x)
