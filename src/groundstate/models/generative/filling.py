r"""Missing cells of a density: :math:`x_u \sim p(x_u \mid x_k) \propto e^{\log p(x_u, x_k)}`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real, Space
from groundstate.infer import minimise
from groundstate.infer import sample as draw
from groundstate.infer.sampling.hmc import HMC

STARTS = 256  # rows drawn from the model, of which the nearest is where a chain starts
JUDGES = 1024  # rows drawn of all values of y together, which say what is likely of the known cells
WIDTH = 0.05  # of the kernel, for each known cell, in units of coded variance
SAMPLER = HMC(step_size=0.1, n_leapfrog=5, n_steps=30)


class LogProb(Energy):
    """Minus the log density of a fitted model's coded rows, as an energy of x and the contexts."""

    def __init__(self, model: Any, d: int, q: int) -> None:
        spaces: dict[str, Space] = {"x": Real(d)}
        if q:
            spaces["y"] = Real(q)
        super().__init__(**spaces)
        self.model, self.net = model, model.energy_

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
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
    energy = LogProb(model, x.shape[1], 0 if y is None else y.shape[1])
    free, init = {"x": unknown}, {"x": start}
    given = {"x": x} if y is None else {"x": x, "y": y}
    if how == "minimise":
        found = minimise(energy, free, given, init=init, generator=generator)["x"]
    else:
        found = draw(energy, free, given, 1, method=SAMPLER, init=init, generator=generator)["x"][0]
        found = torch.where(unknown.all(1, keepdim=True), start, found)
    return torch.where(unknown, found.to(x.dtype), x)


def nearness(x: Tensor, unknown: Tensor, pool: Tensor) -> Tensor:
    r"""Log weights :math:`-\|x_k - x'_k\|^2/2h^2` of drawn rows by what is known of each row, ``(B, n)``."""
    known = (~unknown).to(x.dtype)
    gap = (x * x * known).sum(1, keepdim=True) - 2 * (x * known) @ pool.T + known @ (pool**2).T
    return -gap / (2 * WIDTH * known.sum(1, keepdim=True).clamp_min(1.0))


@torch.no_grad()
def nearest_draws(
    model: Any, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
) -> Tensor:
    r"""For each row one drawn from the model that is near in the known cells, ``(B, D)``.

    Drawn with probability :math:`\propto e^{-\|x_k - x'_k\|^2/2h^2}`, so that several rows of the same
    known cells start in several modes; a row without known cells gets a row of its own.
    """
    rows = len(x)
    if y is None:
        contexts, place = None, torch.zeros(rows, dtype=torch.int64, device=x.device)
    else:
        contexts, place = torch.unique(y, dim=0, return_inverse=True)
    m = 1 if contexts is None else len(contexts)
    size = max(1, STARTS // m, int(torch.bincount(place).max()))
    given = None if contexts is None else contexts.repeat_interleave(size, 0)
    pools = model._draw(m * size, given, 1.0, generator)[0].split(size)
    blank, start = unknown.all(1), x.clone()
    for i, pool in enumerate(pools):
        own = (place == i).nonzero()[:, 0]
        for part in own.split(512):
            p = nearness(x[part], unknown[part], pool).softmax(1)
            start[part] = pool[torch.multinomial(p, 1, generator=generator)[:, 0]]
        start[own[blank[own]]] = pool[: len(own)][blank[own]]
    return torch.where(unknown, start, x)


@torch.no_grad()
def log_known_of_draws(
    model: Any, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
) -> Tensor:
    r""":math:`\log p(x_k \mid y)` of the known cells for each context, ``(B, m)``, but for a constant of
    each row: the mean over draws of y of a kernel around what is known."""
    m = len(contexts)
    if bool(unknown.all()):
        return x.new_zeros(len(x), m)
    size = max(16, JUDGES // m)
    pools = model._draw(m * size, contexts.repeat_interleave(size, 0), 1.0, generator)[0]
    parts = [
        torch.stack([nearness(rows, gone, pool).logsumexp(1) for pool in pools.split(size)], 1)
        for rows, gone in zip(x.split(512), unknown.split(512), strict=True)
    ]
    return torch.cat(parts)
