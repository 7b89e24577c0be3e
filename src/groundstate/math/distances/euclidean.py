r"""Distances between rows, and the maps that make some of them Euclidean.

Mahalanobis distance :math:`\sqrt{(x-z)^\top V(x-z)}` with :math:`V = LL^\top` is the Euclidean one
between :math:`L^\top x` and :math:`L^\top z`; cosine distance :math:`1-\cos(x, z)` is half the squared
Euclidean distance of the rows brought to length one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import DataError, Unsupported
from groundstate.math.distances.dissimilarities import TABLES

POWERS = {"euclidean": 2.0, "l2": 2.0, "manhattan": 1.0, "cityblock": 1.0, "l1": 1.0,
          "chebyshev": math.inf, "infinity": math.inf}  # fmt: skip
METRICS = ("minkowski", *POWERS, "cosine", "mahalanobis", "precomputed", *TABLES)
CELLS = 2**22  # numbers of one block of distances


def power_of(metric: str, p: float = 2.0) -> float | None:
    """The exponent of a Minkowski metric, None for others.

    >>> power_of("manhattan"), power_of("minkowski", 3), power_of("cosine")
    (1.0, 3.0, None)
    """
    return float(p) if metric == "minkowski" else POWERS.get(metric)


def inverse_root(VI: Any) -> NDArray[np.float64]:
    """L with LLᵀ = VI, for a positive definite inverse covariance.

    >>> inverse_root([[4.0]]).tolist()
    [[2.0]]
    """
    VI = np.asarray(VI, dtype=np.float64)
    if VI.ndim != 2 or VI.shape[0] != VI.shape[1] or not np.allclose(VI, VI.T):
        raise ValueError(f"VI must be a symmetric matrix, got shape {VI.shape}")
    try:
        return np.linalg.cholesky(VI)
    except np.linalg.LinAlgError:
        raise ValueError(
            "VI must be positive definite, as the inverse of a covariance is"
        ) from None


def pairwise(x: Tensor, z: Tensor, p: float = 2.0) -> Tensor:
    r"""Minkowski distances :math:`(\sum_j|x_j - z_j|^p)^{1/p}` of rows, ``(n, m)``, from differences.

    >>> pairwise(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]])).tolist()
    [[5.0]]
    """
    return torch.cdist(x, z, p=p, compute_mode="donot_use_mm_for_euclid_dist")


def smallest(
    x: Tensor, rows: Tensor, k: int, p: float | Callable[[Any, Any], float]
) -> tuple[Tensor, Tensor]:
    """Distances and indices of the k nearest rows ``(q, k)``, ties to the lower index.

    ``p`` is the exponent of a Minkowski metric or a function of two rows.
    """
    out, found = [], []
    for part in x.double().split(max(1, CELLS // max(1, len(rows)))):
        if callable(p):
            a, b = part.cpu().numpy(), rows.double().cpu().numpy()
            table = [[float(p(u, v)) for v in b] for u in a]
            distance = torch.tensor(table, dtype=torch.float64, device=x.device)
        else:
            distance = pairwise(part, rows.double(), p)
        value, index = lowest(distance, k)
        out.append(value)
        found.append(index)
    return torch.cat(out), torch.cat(found)


def lowest(distance: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest of each row of a table and where they stand, ties to the lower index.

    >>> lowest(torch.tensor([[2.0, 1.0, 1.0]]), 2)[1].tolist()
    [[1, 2]]
    """
    value, index = distance.sort(dim=1, stable=True)
    return value[:, :k], index[:, :k]


def reached(distance: Tensor) -> Tensor:
    """Given distances to the k nearest rows, refused where a graph holds fewer than k of a row."""
    count = distance.isfinite().sum(1)
    if len(count) and int(count.min()) < distance.shape[1]:
        raise DataError(
            f"{distance.shape[1]} neighbors are required for all samples, but some samples have only "
            f"{int(count.min())} neighbors in the precomputed graph; ask for fewer neighbors, or make "
            "the graph with more"
        )
    return distance


def unit_rows(x: Tensor) -> Tensor:
    """Rows brought to length one; rows of zeros stay."""
    length = x.norm(dim=-1, keepdim=True)
    return x / torch.where(length > 0, length, 1.0)


def known_metric(metric: Any) -> None:
    """Refuse a metric that is neither known nor a function."""
    if not callable(metric) and metric not in METRICS:
        raise Unsupported(
            f"there is no metric {metric!r}; choose one of {', '.join(METRICS)}, or pass a "
            "function of two rows"
        )
