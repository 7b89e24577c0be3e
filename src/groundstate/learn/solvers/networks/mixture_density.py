r"""How a mixture density learns: scales and clusters first, then mini-batches and a held-out part."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.rows import take
from groundstate.compute.rows.distinct import merged
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.basic import CentroidEnergy
from groundstate.energy.networks.mixture_density import MixtureDensityEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import Batch, History, Problem
from groundstate.learn.callbacks import Callback, EarlyStopping
from groundstate.learn.fit import fit
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.train.stochastic import Stochastic
from groundstate.registry import solvers

LEAST = 5.0  # units of weight that a held-out part needs to say anything


@solvers.register(
    formula=r"\theta \leftarrow \theta - \eta\,\mathrm{Adam}(\nabla J_{\text{batch}}),\quad "
    r"\mu_z \leftarrow \text{k-means of } y",
    make=lambda energy: MixtureDensityTraining(Stochastic(lr=2e-2, max_epochs=60, tol=None)),
)
@dataclass(frozen=True)
class MixtureDensityTraining:
    r"""Lower the mean of :math:`-\log\sum_z\pi_zN(y; \mu_z, \sigma_z^2)` from a start at clusters of y.

    Equal rows are merged and rows put in the order of their hash, so weights are repetitions and
    order does not matter, to the last bit. Inputs and outcomes are standardised; the means start at
    the centroids of k-means on y, the scales at the standard deviation that k-means leaves, the
    weights at the sizes of the clusters. Then ``solver`` runs, and stops when the loss of a held-out
    part of the weight line no longer falls; the best parameters are kept.

    A held-out part that would weigh less than five rows is not cut, nor is one over several
    processes; the loss of the training rows then decides.

    Parameters
    ----------
    solver : the stochastic solver
    held_out : share of the rows that early stopping watches; 0 uses all rows
    patience : epochs without improvement
    tol : what counts as an improvement of the mean loss
    """

    solver: Stochastic = field(default_factory=lambda: Stochastic(lr=5e-3, tol=None))
    held_out: float = 0.1
    patience: int = 20
    tol: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out must be a share in [0, 1), got {self.held_out}")

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, MixtureDensityEnergy):
            return "it starts the components of a mixture density"
        if not isinstance(problem.rule, NLL):
            return "it is for maximum likelihood"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return None

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, MixtureDensityEnergy)
        rows, weight = merged(problem.resident, problem.sample_weight)
        alone = current().world == 1
        kept, watched = (
            split(rows, weight, self.held_out, problem.key) if alone else ((rows, weight), None)
        )
        scale(energy, *kept)
        start(energy, *kept, key=problem.key.fold("clusters"))
        callbacks: Sequence[Callback] = problem.callbacks
        solver = self.solver
        if alone:
            data, w = watched or (None, None)
            stopping = EarlyStopping(
                data, sample_weight=w, patience=self.patience, min_delta=self.tol
            )
            callbacks = [*callbacks, stopping]
        inner = replace(problem, data=kept[0], sample_weight=_plain(kept[1]), callbacks=callbacks)
        history = solver.run(inner)
        history.solver = "MixtureDensityTraining"
        history.converged = history.stop.startswith("no improvement")
        return history


Rows = tuple[Batch, Tensor]


def split(rows: Batch, weight: Tensor, share: float, key: Key) -> tuple[Rows, Rows | None]:
    """Rows to learn from, and rows to watch; None where there would be too few of them."""
    if not share * float(weight.sum()) >= LEAST or len(weight) < 2:
        return (rows, weight), None
    line = WeightLine.of(*rows.values(), weights=weight.double().cpu().numpy())
    parts = line.cut(key.fold("validation"), share)
    sides = [_part(rows, torch.from_numpy(part).to(weight)) for part in parts]
    return sides[0], sides[1]


def _part(rows: Batch, weight: Tensor) -> Rows:
    index = weight.nonzero().squeeze(1)
    chosen: dict[str, Any] = {name: take(v, index) for name, v in rows.items()}
    return chosen, weight[index]


def _plain(weight: Tensor) -> Tensor | None:
    """No weights where all are one: batches are then plain slices."""
    return None if bool((weight == 1).all()) else weight


@torch.no_grad()
def scale(energy: MixtureDensityEnergy, rows: Batch, weight: Tensor) -> None:
    """Standardise inputs and outcomes by the moments of these rows, over all shards."""
    moments = []
    w = weight.double()
    for name in ("x", "y"):
        v = rows[name].double()
        sums = current().sum_dict({"n": w.sum(), "v": w @ v})
        mean = sums["v"] / sums["n"]
        square = current().sum_dict({"s": w @ (v - mean).square()})["s"] / sums["n"]
        sd = square.sqrt()
        # what rounding leaves of a constant column is no scale
        constant = sd <= 1e-12 * mean.abs()
        moments.append((mean, torch.where(constant | (sd == 0), 1.0, sd)))
    energy.standardise(*moments)


@torch.no_grad()
def start(energy: MixtureDensityEnergy, rows: Batch, weight: Tensor, *, key: Key) -> None:
    """Put the components on clusters of the standardised outcomes."""
    y = ((rows["y"] - energy.y_shift) / energy.y_scale).contiguous()
    centroids = CentroidEnergy(energy.k, energy.m).to(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # a start need not be the end
        fit(
            centroids,
            {"x": y},
            Naive(latent="minimise"),
            Lloyd(max_iter=50),
            sample_weight=weight,
            random_state=key,
        )
    label = centroids.table("z", x=y).argmin(1)
    w = weight.double()
    left = (y - centroids.mu[label]).double().square().mean(1)
    sizes = torch.zeros(energy.k, dtype=w.dtype, device=w.device).index_add_(0, label, w)
    sums = current().sum_dict({"n": sizes, "left": w @ left})
    total = sums["n"].sum()
    sd = (sums["left"] / total).sqrt().clamp_min(max(1e-2, 2 * energy.head.min_scale))
    energy.head.start((sums["n"] / total).to(y), centroids.mu, sd.expand(energy.k).to(y))
