"""Where a hidden Markov model begins to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows import Ragged
from groundstate.energy.graphical.emissions import CategoricalEmission
from groundstate.models.clusters.kmeans import KMeans

STEPS = 20_000  # steps that k-means looks at, every so-manieth one


def begin(model: Any, energy: Any, rows: Ragged, weight: Tensor | None, key: Key) -> None:
    """Set π, A and emissions: as the model was given, else uniform with states that last, and by k-means."""
    k = model.n_components
    with torch.no_grad():
        for name, parameter in (("startprob", energy.start), ("transmat", energy.transition)):
            given = getattr(model, f"{name}_init")
            p = np.full(tuple(parameter.shape), 1 / k) if given is None else np.asarray(given)
            if (
                given is None and name == "transmat"
            ):  # states that last: equal rows would be a saddle
                p = (p + np.eye(k)) / 2
            parameter.copy_(_log_probabilities(p, f"{name}_init", tuple(parameter.shape)))
        if isinstance(energy.emission, CategoricalEmission):
            logits = energy.emission.logits
            p = model.emissionprob_init
            if p is None:
                p = key.fold("emission").numpy().dirichlet(np.ones(logits.shape[1]), k)
            logits.copy_(_log_probabilities(p, "emissionprob_init", tuple(logits.shape)))
            return
        _gaussians(model, energy.emission, rows, weight, key)


def _log_probabilities(p: Any, name: str, shape: tuple[int, ...]) -> Tensor:
    array = np.asarray(p, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if (array < 0).any() or not np.allclose(array.sum(-1), 1, atol=1e-6):
        raise ValueError(f"{name} must hold probabilities that sum to 1 along the last axis")
    return torch.from_numpy(array).log().clamp_min(-1e30)


def _gaussians(model: Any, emission: Any, rows: Ragged, weight: Tensor | None, key: Key) -> None:
    g, n = emission.gaussians, emission.k * emission.m
    d = g.mu.shape[1]
    x, w = _steps(rows, weight)
    means = model.means_init
    if means is None:
        if len(np.unique(x, axis=0)) < n:
            raise ValueError(
                f"there are fewer different steps than the {n} Gaussians of the states; use fewer"
            )
        seed = int(key.fold("means").low % 2**32)
        means = KMeans(n, n_init=1, random_state=seed).fit(x, sample_weight=w).cluster_centers_
        means = means[np.lexsort(means.T[::-1])]  # which state is which does not depend on the seed
        if emission.m > 1:  # each state gets near ones
            means = means.reshape(emission.k, emission.m, d)
    means = np.asarray(means, np.float64).reshape(n, d)
    covars = model.covars_init
    if covars is None:
        centre = np.average(x, axis=0, weights=w)
        off = x - centre
        whole = (off * w[:, None]).T @ off / w.sum()
        covars = _shaped(whole, g.covariance_type, n)
    shape = tuple(g.U.shape)
    covars = np.asarray(covars, np.float64)
    if covars.shape != shape:
        raise ValueError(f"covars_init must have shape {shape}, got {covars.shape}")
    g.from_moments(torch.ones(n), torch.from_numpy(means), torch.from_numpy(covars.copy()))
    g.origin.copy_(torch.from_numpy(np.average(x, axis=0, weights=w)))


def _steps(rows: Ragged, weight: Tensor | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Some known steps and their weights."""
    w = torch.ones(len(rows), dtype=torch.float64) if weight is None else weight.double().cpu()
    each = w[rows.row.cpu()]
    known = ~torch.isnan(rows.values).any(1).cpu() & (each > 0)
    x, each = rows.values.detach().cpu().double()[known], each[known]
    stride = 1 if weight is not None else max(1, len(x) // STEPS)
    return x[::stride].numpy(), each[::stride].numpy()


def _shaped(cov: NDArray[np.float64], kind: str, n: int) -> NDArray[np.float64]:
    """A covariance in the shape that a kind of Gaussians holds it."""
    if kind == "full":
        return np.repeat(cov[None], n, axis=0)
    if kind == "tied":
        return cov
    variances = np.diag(cov)
    return np.repeat(variances[None], n, axis=0) if kind == "diag" else np.full(n, variances.mean())
