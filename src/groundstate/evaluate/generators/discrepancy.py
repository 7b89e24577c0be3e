r"""Kernel distances of samples: the KID of features, and tests over several widths.

.. math:: \mathrm{KID} = \mathrm{MMD}^2_u \text{ with } k(x, y) = (x^\top y/d + 1)^3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.generators.frechet import Features, featured
from groundstate.math.divergences.mmd import mmd, mmd_of_labels
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.products import Polynomial
from groundstate.math.kernels.stationary import RBF
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.means import mean_interval
from groundstate.math.stats.result import TestResult


def kernel_distance(
    X: Any,
    Y: Any,
    features: Features = None,
    *,
    subsets: int = 100,
    subset_size: int = 1000,
    random_state: Key | RandomState = 0,
) -> Interval:
    """Kernel Inception distance: unbiased squared MMD of features with a cubic kernel.

    Parameters
    ----------
    X, Y : rows ``(n, ...)`` and ``(m, ...)``
    features : see `frechet_distance`
    subsets, subset_size : the mean over random subsets of each; all rows once where there are no more

    Examples
    --------
    >>> round(kernel_distance([[0.0], [1.0]], [[2.0], [4.0]]).estimate, 6)
    653.0
    """
    a, b = (torch.cat(list(parts)).double() for parts in featured(features, X, Y))
    cubic = Polynomial(degree=3, gamma=1.0 / a.shape[1], coef0=1.0)
    size = min(subset_size, len(a), len(b))
    if size < 2:
        raise DataError("a kernel distance needs at least two rows of each set")
    if size == len(a) == len(b):
        value = float(mmd(a, b, cubic))
        return Interval(value, value, value, method="all rows")
    rng = Key.of(random_state).fold("subsets").numpy()
    found = []
    for _ in range(subsets):
        i, j = (rng.choice(len(rows), size, replace=False) for rows in (a, b))
        found.append(float(mmd(a[i], b[j], cubic)))
    return mean_interval(np.array(found))


def mmd_test(
    X: Any,
    Y: Any,
    gammas: Sequence[float],
    *,
    n_permutations: int = 999,
    random_state: Key | RandomState = 0,
) -> TestResult:
    r"""Test of one distribution by the mean of Gaussian kernels :math:`e^{-\gamma\|x-y\|^2}` of several widths.

    The statistic is the unbiased :math:`\mathrm{MMD}^2`; p comes from permuted labels.

    Parameters
    ----------
    X, Y : rows ``(n, d)`` and ``(m, d)``
    gammas : the widths
    n_permutations : permutations

    Examples
    --------
    >>> found = mmd_test([[0.0], [1.0]], [[2.0], [4.0]], [1.0])
    >>> round(found.statistic, 6)
    0.193036
    """
    a, b = (torch.as_tensor(np.asarray(v, np.float64)) for v in (X, Y))
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    if not len(gammas):
        raise ValueError("mmd_test needs at least one gamma")
    both = torch.cat([a, b])
    geometry = Geometry(both)
    K = torch.stack([RBF(gamma=float(g)).of(geometry) for g in gammas]).mean(0)
    labels = np.zeros((n_permutations + 1, len(both)))
    labels[:, : len(a)] = 1
    Key.of(random_state).fold("permute").numpy().permuted(labels[1:], axis=1, out=labels[1:])
    found = mmd_of_labels(K, torch.from_numpy(labels), unbiased=True)
    observed = float(found[0])
    p = (1 + int((found[1:] >= observed - 1e-12).sum())) / (1 + n_permutations)
    null = "both sets come from one distribution"
    return TestResult(observed, p, null, "mmd", n=(len(a), len(b)))
