r"""Missing cells of a row with a code: Gibbs sampling between code and cells.

.. math:: z' \sim q(z \mid x), \quad
    \alpha = \min\Big(1, \frac{p(x, z')\,q(z \mid x)}{p(x, z)\,q(z' \mid x)}\Big), \qquad
    x_u \sim p(x_u \mid z)

The encoder proposes codes and Metropolis and Hastings' test makes up for what it gets wrong
(Mattei & Frellsen 2018), so that the chain has the exact conditional as its limit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.models.generative.filling import nearest_draws

BURN_IN = 10  # sweeps that take every proposal, to come near
SWEEPS = 50
DESCENT = 200  # steps of how="minimise"


def gibbs(
    model: Any, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
) -> Tensor:
    """Coded rows with their unknown cells drawn given the known ones."""
    energy, family = model.energy_, model._family
    with torch.no_grad():
        x = nearest_draws(model, x, unknown, y, generator)
        z: Tensor | None = None
        for sweep in range(BURN_IN + SWEEPS):
            q = family.parts(model._numbers(x, y))
            proposal = family.draws(q, 1, generator).z[0]
            if z is None or sweep < BURN_IN:
                z = proposal
            else:
                new, old = proposal, z
                gain = (
                    energy.reconstruction(x, old, y) - energy.reconstruction(x, new, y)
                    + energy.prior.log_prob(new, y) - energy.prior.log_prob(old, y)
                    + family.log_prob(q, old[None])[0] - family.log_prob(q, new[None])[0]
                )  # fmt: skip
                u = torch.rand(len(x), generator=generator, device=generator.device).to(x.device)
                z = torch.where((u.log() < gain)[:, None], new, old)
            drawn = energy.likelihood.sample(energy.decode(z, y), generator)
            x = torch.where(unknown, drawn.to(x.dtype), x)
    return x


def most_probable(
    model: Any, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
) -> Tensor:
    r"""Coded rows with unknown cells at the minimum of e over cells and code, by descent in z from the
    encoder's answer; the best cells of a code are its most probable ones."""
    energy, family = model.energy_, model._family
    with torch.no_grad():
        x = nearest_draws(model, x, unknown, y, generator)
        for _ in range(BURN_IN):
            z = family.centre(family.parts(model._numbers(x, y)))
            mean = energy.likelihood.mean(energy.decode(z, y))
            x = torch.where(unknown, mean.to(x.dtype), x)
    if family.takes_noise:  # codes without edges
        with torch.enable_grad():
            z = z.clone().requires_grad_()
            adam = torch.optim.Adam([z], lr=0.05)
            for _ in range(DESCENT):
                out = energy.decode(z, y)
                filled = torch.where(unknown, energy.likelihood.mean(out).to(x.dtype), x)
                e = energy.likelihood(out, filled) - energy.prior.log_prob(z, y)
                (z.grad,) = torch.autograd.grad(e.sum(), z)
                adam.step()
    with torch.no_grad():
        mean = energy.likelihood.mean(energy.decode(z.detach(), y))
        return torch.where(unknown, mean.to(x.dtype), x)
