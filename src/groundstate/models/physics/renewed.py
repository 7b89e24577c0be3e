r"""What changes between segments of learning: where the equation is asked, and how much terms count."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.networks.residual import ResidualEnergy
from groundstate.models.physics.points import TERMS, Rows
from groundstate.models.physics.problem import Problem

CANDIDATES = 4  # points looked at for each that is drawn anew
KEPT = 0.5  # share of the points of the equation that stay when others are drawn anew


def moved(problem: Problem, energy: ResidualEnergy, rows: Rows, key: Key, sampler: str) -> Tensor:
    r"""Points of the equation: half as they are, half drawn with chances :math:`|r|/\overline{|r|} + 1`."""
    old = rows.x[rows.term == 0]
    order = torch.randperm(len(old), generator=key.fold("stay").torch()).to(old.device)
    stay = old[order[: int(KEPT * len(old))]]
    n = len(old) - len(stay)
    drawn = problem.domain.sample(CANDIDATES * max(n, 1), key.fold("new"), sampler)
    fresh = torch.as_tensor(drawn).to(old)
    with torch.no_grad():
        size = energy.residuals(fresh).abs().sum(1)
    chance = (size / size.mean().clamp_min(1e-300) + 1.0).cpu()
    take = torch.multinomial(chance, n, generator=key.fold("take").torch())
    return torch.cat([stay, fresh[take.to(fresh.device)]])


def equal_norms(energy: ResidualEnergy, rows: Rows) -> list[float]:
    r"""Weights :math:`\lambda_t = \bar g/\|\nabla J_t\|` of the terms, within a factor of 100."""
    theta = [p for p in energy.parameters() if p.requires_grad]
    norms = {}
    for t in rows.present:
        loss = energy(**rows.data(True))
        one = torch.dot(loss, rows.row_weights([float(t == k) for k in range(len(TERMS))]))
        found = torch.autograd.grad(one, theta, allow_unused=True)
        norms[t] = math.sqrt(math.fsum(float(g.square().sum()) for g in found if g is not None))
    mean = math.fsum(norms.values()) / len(norms)
    return [
        float(np.clip(mean / max(norms.get(t, mean), 1e-300), 0.01, 100.0)) if mean > 0 else 1.0
        for t in range(len(TERMS))
    ]
