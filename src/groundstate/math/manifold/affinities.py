r"""How near rows are to each other, as probabilities.

.. math:: p_{j\mid i} = \frac{e^{-d_{ij}^2/2\sigma_i^2}}{\sum_{k \ne i} e^{-d_{ik}^2/2\sigma_i^2}},
          \qquad p_{ij} = \frac{p_{j\mid i} + p_{i\mid j}}{2n} ,

with :math:`\sigma_i` such that the entropy of every row is the logarithm of the perplexity.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor

from groundstate.math.arrays import as_tensor, takes_arrays
from groundstate.math.manifold.dimension import local_dimension
from groundstate.math.neighbors.graph import nearest_others

TOLERANCE = 1e-9  # of the entropy, in nats; Newton steps get there with one or two more
STEPS = 100
DENSE = 1000  # rows up to which all pairs are kept


@takes_arrays("distances", "sigma")
def conditional(
    distances: Any, perplexity: float | None = 30.0, sigma: Any = None
) -> tuple[Any, Any]:
    r"""Probabilities :math:`p_{j\mid i}` of the others of each row, and the widths :math:`\sigma_i`.

    Parameters
    ----------
    distances : to the others, ``(n, k)``; none of a row to itself
    perplexity : :math:`e^H` of every row; the width is found by Newton steps on its logarithm, kept
        inside a bracket, until the entropy is right to 1e-9
    sigma : widths ``(n,)`` or one for all, in place of a perplexity

    Returns
    -------
    p ``(n, k)`` and sigma ``(n,)``. Where even the nearest rows are equally far away and more than
    the perplexity, the width is zero and they share the probability

    Examples
    --------
    >>> p, sigma = conditional([[1.0, 3.0], [1.0, 2.0], [3.0, 2.0]], sigma=1.0)
    >>> p.round(6).tolist()
    [[0.982014, 0.017986], [0.817574, 0.182426], [0.075858, 0.924142]]
    """
    square = distances.square()
    square = square - square.amin(1, keepdim=True)
    if sigma is not None:
        width = sigma.to(distances).expand(len(distances))
        return torch.softmax(-square / (2 * width[:, None].square()), 1), width
    if perplexity is None:
        raise ValueError("give one of perplexity and sigma")
    k = distances.shape[1]
    if not 1 <= perplexity <= k * (1 + 1e-12):
        raise ValueError(
            f"perplexity must be 1 to {k}, the number of others of each row, got {perplexity}"
        )
    with torch.no_grad():
        log_beta = _log_precision(square.detach().double(), math.log(perplexity))
    if distances.requires_grad:
        log_beta = _implicit(square.double(), log_beta, math.log(perplexity))
    beta = log_beta.exp()
    p = torch.softmax(-square.double() * beta[:, None], 1)
    return p.to(distances), (2 * beta).rsqrt().to(distances)


def _entropy(square: Tensor, log_beta: Tensor) -> tuple[Tensor, Tensor]:
    """Entropy of each row and its slope in the logarithm of the precision."""
    energy = square * log_beta.exp()[:, None]
    p = torch.softmax(-energy, 1)
    mean = (p * energy).sum(1)
    log_z = torch.logsumexp(-energy, 1)
    variance = (p * (energy - mean[:, None]).square()).sum(1)
    return log_z + mean, -variance


def _log_precision(square: Tensor, target: float) -> Tensor:
    """The logarithm of β = 1/2σ² at which each row has the entropy, ``(n,)``."""
    scale = square.mean(1)
    log_beta = -torch.where(scale > 0, scale, 1.0).log()
    low, high = torch.full_like(log_beta, -torch.inf), torch.full_like(log_beta, torch.inf)
    for _ in range(STEPS):
        entropy, slope = _entropy(square, log_beta)
        gap = entropy - target
        if bool((gap.abs() < TOLERANCE).all()):
            break
        low, high = torch.where(gap > 0, log_beta, low), torch.where(gap > 0, high, log_beta)
        newton = log_beta - gap / torch.where(slope < 0, slope, -1.0)
        step = torch.where(gap > 0, 2.0, -2.0)
        middle = torch.where(torch.isfinite(low) & torch.isfinite(high), (low + high) / 2,
                             log_beta + step)  # fmt: skip
        inside = (newton > low) & (newton < high) & ((newton - log_beta).abs() <= 3.0)
        new = torch.where(inside & (slope < 0), newton, middle)
        done = gap.abs() < TOLERANCE
        log_beta = torch.where(done, log_beta, new.clamp(-700, 700))
    return log_beta


def _implicit(square: Tensor, log_beta: Tensor, target: float) -> Tensor:
    """The same value with the gradient of the solution: one Newton step from it."""
    entropy, slope = _entropy(square, log_beta)
    slope = torch.where(slope < 0, slope, -1.0).detach()
    return log_beta - (entropy - target) / slope + ((entropy - target) / slope).detach()


def affinities(
    X: Any, perplexity: float = 30.0, *, metric: Any = "euclidean", metric_params: Any = None,
    sparse: bool | None = None, distance_power: float | str = 1.0, n_components: int = 2,
    return_sigma: bool = False,
) -> Any:  # fmt: skip
    r"""Joint probabilities :math:`p_{ij}` of all pairs of rows; they sum to one.

    Parameters
    ----------
    X : rows ``(n, d)``, or distances for ``metric="precomputed"``
    perplexity : how many neighbours a row has, roughly
    metric, metric_params : as in `groundstate.neighbors.pairwise`
    sparse : whether the 3·perplexity nearest others stand for all of them; None does so beyond
        1,000 rows
    distance_power : distances as they are, or "intrinsic": :math:`(d_{ij}/d_{i,k})^{m_i/t}` with the
        local intrinsic dimension :math:`m_i` and t = ``n_components``, so that a ball of radius r,
        which holds :math:`r^{m}` rows, holds :math:`r^{t}` of them in the map; or a number, the power
    return_sigma : also the widths ``(n,)``

    Returns
    -------
    P, an array ``(n, n)`` or a sparse CSR matrix; tensors for a tensor

    Examples
    --------
    >>> P = affinities([[0.0], [1.0], [3.0]], perplexity=1.5)
    >>> round(float(P.sum()), 9), float(P[0, 0])
    (1.0, 0.0)
    """
    rows = as_tensor(X, "X").detach()
    if rows.ndim != 2:
        raise ValueError(f"X must be a table (n, d), got shape {tuple(rows.shape)}")
    n = len(rows)
    if not perplexity < n:
        raise ValueError(f"perplexity must be less than n_samples={n}, got {perplexity}")
    sparse = n > DENSE if sparse is None else sparse
    i, j, p, sigma = joint(
        rows, perplexity, metric, metric_params, sparse, distance_power, n_components
    )
    table = isinstance(X, Tensor)
    P: Any
    if not sparse:
        P = torch.zeros(n, n, dtype=p.dtype, device=p.device)
        P[i, j] = p
        P = P if table else P.numpy()
    else:
        starts = torch.zeros(n + 1, dtype=torch.int64, device=p.device)
        starts[1:] = torch.bincount(i, minlength=n).cumsum(0)
        if table:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
                P = torch.sparse_csr_tensor(starts, j, p, (n, n))
        else:
            P = csr_array((p.numpy(), j.numpy(), starts.numpy()), shape=(n, n))
    if not return_sigma:
        return P
    return P, sigma if table else sigma.numpy()


def joint(
    rows: Tensor, perplexity: float, metric: Any = "euclidean", metric_params: Any = None,
    sparse: bool = True, distance_power: float | str = 1.0, n_components: int = 2,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Pairs in the order of a CSR matrix with their probability, and the widths."""
    n = len(rows)
    k = min(n - 1, int(3 * perplexity + 1)) if sparse else n - 1
    distance, index = nearest_others(rows, k, metric, metric_params)
    if float(distance.min()) < 0:
        raise ValueError(
            "All distances should be positive, the metric given is not correct: the least is "
            f"{float(distance.min()):g}"
        )
    perplexity = min(perplexity, float(n - 1))  # of n - 1 others there are no more than n - 1
    distance = powered(distance, distance_power, n_components)
    p, sigma = conditional(distance.double(), perplexity)
    i = torch.arange(n, device=rows.device).repeat_interleave(k)
    j = index.reshape(-1)
    key, order = torch.cat([i * n + j, j * n + i]).sort(stable=True)
    value = p.reshape(-1).repeat(2)[order]
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    # an edge that both ends name stands twice in a row
    total = value[first]
    twice = (~first).nonzero()[:, 0]
    total[(first.cumsum(0) - 1)[twice]] += value[twice]
    key = key[first]
    return key // n, key % n, total / (2.0 * n), sigma


def powered(distance: Tensor, power: float | str, n_components: int) -> Tensor:
    """Distances to the neighbours ``(n, k)``, the nearest first, as the affinities see them."""
    if power == 1.0:
        return distance
    if isinstance(power, str) and power != "intrinsic":
        raise ValueError(f"distance_power must be a number or 'intrinsic', got {power!r}")
    last = distance.amax(1, keepdim=True)
    relative = distance / torch.where(last > 0, last, 1.0)
    if power == "intrinsic":
        m = local_dimension(distance.sort(1).values)
        return relative ** (m[:, None] / n_components)
    return relative ** float(power)
