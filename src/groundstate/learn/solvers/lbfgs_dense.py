r"""The full objective of a plain multilayer network and its gradient, both passes written out.

.. math:: J(\theta) = \frac{1}{\sum_i w_i}\Bigl(\sum_i w_i L_i(\theta)
    + \tfrac12\sum_j \lambda_j\|\theta_j\|^2\Bigr),

for the losses of ``learn.train.dense`` and L2 penalties; θ is one vector of float64 for the optimiser.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.reduce import current
from groundstate.learn.base import Problem
from groundstate.learn.train.dense import untouched, written_head, written_layers
from groundstate.learn.train.dense_program import Program
from groundstate.learn.train.penalty import Regulariser

_CELLS = 2**22  # activations held at once; more rows go in pieces

Vector = NDArray[np.float64]


class NetworkRows:
    """A network's objective over all rows for L-BFGS.

    Parameters
    ----------
    problem : of a kind that `takes` accepts
    """

    def __init__(self, problem: Problem) -> None:
        energy = problem.energy
        layers = written_layers(energy)
        head = written_head(energy, problem.rule, problem.resident)
        assert layers is not None and head is not None
        self.total = problem.total_weight
        named = dict(energy.named_parameters())
        grads = {name: torch.zeros_like(p) for name, p in named.items()}
        self.program = Program(layers, named, grads, head)
        self.theta = [p.detach().numpy().reshape(-1) for p in named.values()]
        self.grads = [g.numpy().reshape(-1) for g in grads.values()]
        decayed = {id(p): s for p, s in _penalty(problem).decayed}
        self.strengths = [decayed.get(id(p), 0.0) / self.total for p in named.values()]
        cuts = np.cumsum([0, *map(len, self.theta)]).tolist()
        self.pieces = [slice(a, b) for a, b in pairwise(cuts)]
        widest = sum(len(p) for p in named.values() if p.ndim == 2)
        self.parts = []
        for batch, weight in problem.chunks(max(256, _CELLS // widest)):
            mass = len(batch["x"]) if weight is None else float(weight.double().sum())
            if mass > 0:
                self.parts.append((batch["x"], batch["y"], weight, mass / self.total))

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether the passes of this problem are written out."""
        energy, rule = problem.energy, problem.rule
        device, dtype = energy.placement()
        able = device.type == "cpu" and dtype in (torch.float32, torch.float64)
        if not able or not problem.is_resident or current().world > 1 or energy.training:
            return False
        layers = written_layers(energy)
        if layers is None or any(layer.dropout for layer in layers):
            return False
        head = written_head(energy, rule, problem.resident)
        if head is None or any(True for _ in rule.parameters()):
            return False
        weight, x = problem.sample_weight, problem.resident["x"]
        own = [*energy.parameters(), x, *([] if weight is None else [weight])]
        if any(t.dtype != dtype or t.device != device for t in own):
            return False
        if not all(p.is_contiguous() for p in energy.parameters()) or _penalty(problem).gradient:
            return False
        return untouched(energy, learning=False)

    def start(self) -> Vector:
        """θ as it is."""
        return np.concatenate(self.theta).astype(np.float64)

    def scatter(self, flat: Vector) -> None:
        """Give θ to the energy."""
        for own, piece in zip(self.theta, self.pieces, strict=True):
            own[:] = flat[piece]

    def value_and_gradient(self, flat: Vector) -> tuple[float, Vector]:
        """The objective and its gradient at θ."""
        self.scatter(flat)
        value, gradient = 0.0, np.zeros_like(flat)
        for x, y, weight, share in self.parts:
            value += share * float(self.program(x, y, weight))
            for own, piece in zip(self.grads, self.pieces, strict=True):
                gradient[piece] += share * own.astype(np.float64, copy=False)
        for strength, piece in zip(self.strengths, self.pieces, strict=True):
            if strength:
                theta = flat[piece]
                value += 0.5 * strength * float(theta @ theta)
                gradient[piece] += strength * theta
        return value, gradient


def _penalty(problem: Problem) -> Regulariser:
    return Regulariser(
        problem.penalty, problem.energy, problem.total_weight, decay=True, prox=False
    )
