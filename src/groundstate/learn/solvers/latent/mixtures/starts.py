r"""Where EM for mixtures begins: moments of a first clustering, or of drawn rows."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Categorical

from groundstate.compute.mapped import pieces
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.energy.basic import CentroidEnergy
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.errors import DataError
from groundstate.learn.base import Problem
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.solvers.latent.kmeans.rows import nearest
from groundstate.learn.solvers.latent.kmeans.start import drawer_of

ROWS = 2**16
SAMPLE, TRIES = 2**14, 4  # rows whose clusters a larger table starts from, the best of some runs
STARTS = ("kmeans", "k-means++", "random", "random_from_data")
Moments = tuple[Tensor, Tensor, Tensor]


@torch.no_grad()
def start_moments(
    problem: Problem, energy: GaussianMixtureEnergy, init: str, i: int = 0
) -> Moments:
    """Weights ``(k,)``, means ``(k, d)`` and covariances in the shape of U of the i-th start.

    "kmeans" takes the moments of clusters, of more than 2¹⁴ rows those about the centroids of a
    sample, "random" those of random responsibilities, and the other two single rows, with
    covariances of zero.
    """
    x, weight = problem.resident["x"], problem.sample_weight
    x = filled(x, weight)
    key = problem.key.fold("start", i)
    k = len(energy.mu)
    energy.origin.copy_(_mean(x, weight))
    if k == 1:  # every start is the same one
        one = torch.zeros(len(x), dtype=torch.long, device=x.device)
        return _completed(energy, x, weight, one)
    if init == "kmeans":
        mu = _clusters(x, weight, key, k)
        n, mean, cov = _completed(energy, x, weight, nearest(x, mu)[0].long())
        return n, torch.where(n[:, None] > 0, mean, mu.double()), cov
    drawer = drawer_of(x, weight, key)
    if init == "random":
        r = drawer.uniform(k).to(x)
        return _completed(energy, x, weight, r / r.sum(1, keepdim=True))
    rows = drawer.plus_plus(k) if init == "k-means++" else drawer.random(k)
    means = rows.to(energy.mu.device)
    return means.new_ones(k), means, torch.zeros_like(energy.U, dtype=torch.float64)


def _clusters(x: Tensor, weight: Tensor | None, key: Key, k: int) -> Tensor:
    """Centroids of k-means, ``(k, d)``; of many rows, those of the best run on a sample."""
    some = None
    if int(current().sum(torch.tensor(len(x)))) > SAMPLE:
        some = drawer_of(x, weight, key).sample(max(SAMPLE, 64 * k))
    rows, w, solver = x, weight, Lloyd()
    if some is not None:  # a point of the line is a row of weight one
        rows, w, solver = some.to(x), None, Lloyd(n_init=TRIES)
    centroids = CentroidEnergy(k, x.shape[1], scale=0.0).to(x)
    solver.run(Problem(centroids, Naive(latent="minimise"), {"x": rows}, w, key=key))
    return centroids.mu


def has_nan(x: Tensor) -> bool:
    """Whether a value is missing; rows in a file are looked at piece by piece."""
    return any(
        not math.isfinite(float(part.sum())) and bool(torch.isnan(part).any())
        for part in pieces(x, ROWS)
    )


def filled(x: Tensor, weight: Tensor | None) -> Tensor:
    """Rows with column means for NaN: somewhere to start from."""
    if not has_nan(x):
        return x
    hidden = torch.isnan(x)
    w = x.new_ones(len(x)) if weight is None else weight
    known = torch.where(hidden, 0.0, w[:, None].double())
    sums = {"w": known.sum(0), "x": (known * torch.nan_to_num(x)).sum(0)}
    sums = current().sum_dict(sums)
    if bool((sums["w"] == 0).any()):
        column = int((sums["w"] == 0).nonzero()[0])
        raise DataError(f"column {column} of X has no value at all; drop it")
    # rounded, so that the order of the sums leaves no trace in the content of a row
    return torch.where(hidden, (sums["x"] / sums["w"]).float().to(x.dtype), x)


def _completed(
    energy: GaussianMixtureEnergy, x: Tensor, weight: Tensor | None, z: Tensor
) -> Moments:
    """Moments from labels ``(N,)`` or responsibilities ``(N, k)``."""
    total: dict[str, Tensor] = {}
    rows = ROWS if x.device.type == "cpu" else 16 * ROWS
    for at, part in zip(range(0, len(x), rows), pieces(x, rows), strict=True):
        own = z[at : at + rows]
        distribution = own if z.ndim == 1 else Categorical(probs=own, validate_args=False)
        w = None if weight is None else weight[at : at + rows]
        for name, value in energy.stats(w, part, distribution).items():
            total[name] = total[name] + value if name in total else value
    return energy.moments(current().sum_dict(total))


def _mean(x: Tensor, weight: Tensor | None) -> Tensor:
    mass, first = x.new_zeros((), dtype=torch.float64), x.new_zeros(x.shape[1], dtype=torch.float64)
    for at, part in zip(range(0, len(x), ROWS), pieces(x, ROWS), strict=True):
        if weight is None:
            mass, first = mass + len(part), first + part.double().sum(0)
        else:
            w = weight[at : at + ROWS].double()
            mass, first = mass + w.sum(), first + w @ part.double()
    sums = current().sum_dict({"w": mass, "x": first})
    return sums["x"] / sums["w"]
