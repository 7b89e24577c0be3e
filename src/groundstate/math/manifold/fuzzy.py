r"""Fuzzy neighbours: how much a row belongs to the neighbourhood of another.

.. math:: p_{j\mid i} = e^{-\max(0,\,d_{ij} - \rho_i)/\sigma_i}, \qquad
          p_{ij} = p_{j\mid i} + p_{i\mid j} - p_{j\mid i}\,p_{i\mid j} ,

with :math:`\rho_i` the distance to the nearest other row and :math:`\sigma_i` such that
:math:`\sum_j p_{j\mid i} = \log_2 k`. In a map, :math:`q_{ij} = 1/(1 + a\,d_{ij}^{2b})`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy.optimize import curve_fit
from scipy.sparse import csr_array
from torch import Tensor

from groundstate.math.arrays import as_tensor, takes_arrays
from groundstate.math.neighbors.graph import nearest_others

STEPS = 100
TOLERANCE = 1e-9  # of the sum of a row
FLOOR = 1e-3  # of the mean distance: the least width


def membership_curve(spread: float = 1.0, min_dist: float = 0.1) -> tuple[float, float]:
    r"""a and b of :math:`q(d) = 1/(1 + a\,d^{2b})`, the least squares fit to a plateau and a tail.

    The plateau is one up to ``min_dist``, the tail :math:`e^{-(d - d_\min)/\text{spread}}`.

    Examples
    --------
    >>> a, b = membership_curve()
    >>> round(a, 3), round(b, 3)
    (1.577, 0.895)
    """
    if not 0 <= min_dist <= spread or not spread > 0:
        raise ValueError(
            f"min_dist must be 0 to spread={spread}, and spread positive, got min_dist={min_dist}"
        )
    d = np.linspace(0, spread * 3, 300)
    wanted = np.where(d < min_dist, 1.0, np.exp(-(d - min_dist) / spread))
    (a, b), _ = curve_fit(lambda x, a, b: 1.0 / (1.0 + a * x ** (2 * b)), d, wanted)
    return float(a), float(b)


@takes_arrays("distances")
def memberships(
    distances: Any, n_neighbors: float | None = None, local_connectivity: float = 1.0
) -> tuple[Any, Any, Any]:
    r"""Memberships :math:`p_{j\mid i}` of the others of each row, with ρ and σ.

    Parameters
    ----------
    distances : to the others ``(n, k)``, the nearest first
    n_neighbors : the memberships of a row sum to its :math:`\log_2`; None is k + 1, the row counted
    local_connectivity : how many others belong entirely; a fraction interpolates

    Returns
    -------
    p ``(n, k)``, ρ ``(n,)`` and σ ``(n,)``

    Examples
    --------
    >>> p, rho, sigma = memberships([[1.0, 2.0, 4.0]])
    >>> round(float(p.sum()), 6), float(rho[0])
    (2.0, 1.0)
    """
    k = distances.shape[1]
    target = math.log2(k + 1 if n_neighbors is None else n_neighbors)
    rho = _nearest_other(distances, local_connectivity)
    beyond = (distances - rho[:, None]).clamp_min(0).double()
    with torch.no_grad():
        log_sigma = _log_width(beyond.detach(), target)
        mean = distances.detach().double().mean(1)
        least = (FLOOR * mean).clamp_min(torch.finfo(torch.float64).tiny).log()
        free = log_sigma > least
        log_sigma = torch.maximum(log_sigma, least)
    if distances.requires_grad:  # one Newton step from the solution: its value, and its slope
        total, slope = _total(beyond, log_sigma)
        step = (total - target) / torch.where(slope > 0, slope, 1.0).detach()
        log_sigma = log_sigma - torch.where(free, step - step.detach(), 0.0)
    p = torch.exp(-beyond * (-log_sigma).exp()[:, None])
    return p.to(distances), rho, log_sigma.exp().to(distances)


def _nearest_other(distances: Tensor, count: float) -> Tensor:
    """The distance at which ``count`` others at a distance above zero are reached, ``(n,)``."""
    whole, part = int(count), float(count) - int(count)
    found = distances > 0
    away = torch.where(found, distances, torch.inf).sort(1).values
    most = torch.where(found, distances, 0.0).amax(1)
    k = away.shape[1]
    if whole > k:
        return most
    first = away[:, whole - 1] if whole > 0 else torch.zeros_like(most)
    rho = first
    if part > 0 and whole < k:
        rho = first + part * (away[:, whole] - first)
    return torch.where(found.sum(1) >= max(1.0, count), rho, most)


def _total(beyond: Tensor, log_sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the memberships of each row and its slope in the logarithm of the width."""
    u = beyond * (-log_sigma).exp()[:, None]
    p = torch.exp(-u)
    return p.sum(1), (p * u).sum(1)


def _log_width(beyond: Tensor, target: float) -> Tensor:
    """The logarithm of σ at which each row has the sum; −700 where it has more at any width."""
    scale = beyond.mean(1)
    log_sigma = torch.where(scale > 0, scale, 1.0).log()
    low, high = torch.full_like(log_sigma, -torch.inf), torch.full_like(log_sigma, torch.inf)
    for _ in range(STEPS):
        total, slope = _total(beyond, log_sigma)
        gap = total - target
        done = (gap.abs() < TOLERANCE) | (log_sigma.abs() >= 700)
        if bool(done.all()):
            break
        low, high = torch.where(gap < 0, log_sigma, low), torch.where(gap > 0, log_sigma, high)
        newton = log_sigma - gap / torch.where(slope > 0, slope, 1.0)
        both = torch.isfinite(low) & torch.isfinite(high)
        middle = torch.where(both, (low + high) / 2, log_sigma - 3.0 * gap.sign())
        inside = (newton > low) & (newton < high) & ((newton - log_sigma).abs() <= 3.0)
        new = torch.where(inside & (slope > 0), newton, middle)
        log_sigma = torch.where(done, log_sigma, new.clamp(-700, 700))
    return log_sigma


def fuzzy_graph(
    X: Any, n_neighbors: int = 15, *, metric: Any = "euclidean", metric_params: Any = None,
    set_op_mix_ratio: float = 1.0, local_connectivity: float = 1.0,
) -> Any:  # fmt: skip
    r"""Memberships :math:`p_{ij}` of all pairs of rows, a symmetric sparse matrix ``(n, n)``.

    Parameters
    ----------
    X : rows ``(n, d)``, or distances for ``metric="precomputed"``
    n_neighbors : rows of a neighbourhood, the row itself counted
    metric, metric_params : as in `groundstate.neighbors.pairwise`
    set_op_mix_ratio : 1 is the fuzzy union :math:`p + q - pq` of the two directions, 0 their
        intersection :math:`pq`
    local_connectivity : see `memberships`

    Examples
    --------
    >>> fuzzy_graph([[0.0], [1.0], [3.0]], n_neighbors=2).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    rows = as_tensor(X, "X").detach()
    if rows.ndim != 2:
        raise ValueError(f"X must be a table (n, d), got shape {tuple(rows.shape)}")
    n = len(rows)
    if not 2 <= n_neighbors <= n:
        raise ValueError(
            f"n_neighbors must be 2 to n_samples={n}, the row itself counted, got {n_neighbors}"
        )
    i, j, p = fuzzy_pairs(
        rows, n_neighbors, metric, metric_params, set_op_mix_ratio, local_connectivity
    )
    starts = np.zeros(n + 1, np.int64)
    starts[1:] = torch.bincount(i, minlength=n).cumsum(0).cpu().numpy()
    return csr_array((p.cpu().numpy(), j.cpu().numpy(), starts), shape=(n, n))


def fuzzy_pairs(
    rows: Tensor, n_neighbors: int, metric: Any = "euclidean", metric_params: Any = None,
    mix: float = 1.0, local_connectivity: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Pairs in the order of a CSR matrix with their membership, both directions of each."""
    n, k = len(rows), n_neighbors - 1
    distance, index = nearest_others(rows, k, metric, metric_params)
    p = memberships(distance.double(), n_neighbors, local_connectivity)[0]
    i = torch.arange(n, device=rows.device).repeat_interleave(k)
    j, value = index.reshape(-1), p.reshape(-1)
    key, order = torch.cat([i * n + j, j * n + i]).sort(stable=True)
    value = value.repeat(2)[order]
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    one = value[first]
    other = torch.zeros_like(one)
    twice = (~first).nonzero()[:, 0]  # an edge that both ends name stands twice in a row
    other[(first.cumsum(0) - 1)[twice]] = value[twice]
    both = one * other
    total = mix * (one + other - both) + (1.0 - mix) * both
    key, kept = key[first], total > 0
    key, total = key[kept], total[kept]
    return key // n, key % n, total
