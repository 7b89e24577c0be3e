r"""Do two sets of rows come from one distribution? Kernel, energy, Kolmogorov-Smirnov and classifier tests.

.. math:: \mathrm{MMD}^2 = E\,k(x,x') + E\,k(y,y') - 2E\,k(x,y), \qquad
          \mathrm{ED}^2 = 2E\|x-y\| - E\|x-x'\| - E\|y-y'\|
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.spatial
import scipy.stats
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, ShapeError
from groundstate.math.divergences.mmd import median_length_scale, mmd_of_labels
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.stationary import RBF
from groundstate.math.stats.proportions import proportion_interval
from groundstate.math.stats.result import TestResult

Floats = NDArray[np.float64]
_NULL = "both sets come from one distribution"


def two_sample(
    X: Any,
    Y: Any,
    method: Literal["mmd", "energy", "ks", "c2st"] = "mmd",
    *,
    n_permutations: int = 999,
    max_rows: int = 2000,
    random_state: Key | RandomState = 0,
) -> TestResult:
    r"""Test that two sets of rows come from one distribution.

    ==========  ===========================================================================
    mmd         unbiased squared maximum mean discrepancy, Gaussian kernel of median width
    energy      squared energy distance
    ks          Kolmogorov-Smirnov, one column, by scipy
    c2st        accuracy of a nearest-neighbour vote on held-out rows against ½
    ==========  ===========================================================================

    The first two take their p from permuted labels, all in one matrix product.

    Parameters
    ----------
    X, Y : ``(n, d)`` and ``(m, d)``, or ``(n,)`` and ``(m,)``
    n_permutations : permutations of ``"mmd"`` and ``"energy"``
    max_rows : rows of each set that those two look at, drawn at random from larger ones

    Examples
    --------
    >>> found = two_sample([0.0, 1.0], [2.0, 4.0], "energy")
    >>> round(found.statistic, 6)
    3.5
    """
    a, b = _rows(X, "X"), _rows(Y, "Y")
    if a.shape[1] != b.shape[1]:
        raise ShapeError(f"X and Y need the same columns, got {a.shape[1]} and {b.shape[1]}")
    key = Key.of(random_state)
    if method == "ks":
        if a.shape[1] != 1:
            raise DataError(f"ks is for one column, got {a.shape[1]}; use 'energy' or 'mmd'")
        found = scipy.stats.ks_2samp(a[:, 0], b[:, 0])
        return TestResult(float(found.statistic), float(found.pvalue), _NULL,
                          "Kolmogorov-Smirnov", n=(len(a), len(b)))  # fmt: skip
    if method == "c2st":
        return _classifier(a, b, key)
    if method not in ("mmd", "energy"):
        raise ValueError(f"method must be 'mmd', 'energy', 'ks' or 'c2st', got {method!r}")
    a, b = (_some(rows, max_rows, key.fold("rows", i)) for i, rows in enumerate((a, b)))
    both = torch.from_numpy(np.concatenate([a, b])).to(_device(X, Y))
    if method == "energy":
        mode = "donot_use_mm_for_euclid_dist"
        K, name = -torch.cdist(both, both, compute_mode=mode), "energy distance"
    else:
        K, name = RBF(median_length_scale(both, max_rows=None)).of(Geometry(both)), "mmd"
    labels = np.zeros((n_permutations + 1, len(both)))
    labels[:, : len(a)] = 1
    key.fold("permute").numpy().permuted(labels[1:], axis=1, out=labels[1:])
    found = mmd_of_labels(K, torch.from_numpy(labels).to(K), unbiased=method == "mmd")
    observed, draws = float(found[0]), found[1:]
    low, high = K.aminmax()
    slack = 1e-12 * max(abs(observed), float(high), -float(low))
    p = (1 + int((draws >= observed - slack).sum())) / (1 + n_permutations)
    return TestResult(observed, p, _NULL, name, n=(len(a), len(b)))


def _classifier(a: Floats, b: Floats, key: Key) -> TestResult:
    """Half of equal-sized sets teaches, the other half is told apart by a nearest-neighbour vote."""
    n = min(len(a), len(b))
    if n < 10:
        raise DataError(f"c2st needs at least ten rows of each set, got {len(a)} and {len(b)}")
    a, b = _some(a, n, key.fold("a")), _some(b, n, key.fold("b"))
    both = np.concatenate([a, b])
    scale = both.std(0)
    both = both / np.where(scale > 0, scale, 1.0)
    label = np.repeat([0.0, 1.0], n)
    half = n // 2
    train = np.r_[:half, n : n + half]
    test = np.r_[half:n, n + half : 2 * n]
    k = max(1, int(np.sqrt(len(train))) | 1)  # odd: no ties
    _, near = scipy.spatial.cKDTree(both[train]).query(both[test], k=k)
    vote = label[train][near.reshape(len(test), k)].mean(1) > 0.5
    hits = int((vote == label[test]).sum())
    p = float(scipy.stats.binomtest(hits, len(test), 0.5, alternative="greater").pvalue)
    found = proportion_interval(hits, len(test))
    return TestResult(hits / len(test) - 0.5, p, _NULL, "classifier", alternative="greater",
                      estimate=hits / len(test), interval=(found.low, found.high),
                      n=(len(a), len(b)))  # fmt: skip


def memorisation(generated: Any, train: Any, heldout: Any) -> TestResult:
    r"""Are generated rows closer to the training rows than new rows are?

    The statistic is the ratio of median nearest-neighbour distances to the training rows,
    :math:`\mathrm{med}\,d(g, T)/\mathrm{med}\,d(h, T)`: near 1 for a good generator, near 0 for one
    that repeats what it saw. p is a one-sided rank test that generated rows are not closer.

    Parameters
    ----------
    generated, train, heldout : rows ``(·, d)``

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = memorisation(rows[:100] + 1e-3, rows[:100], rows[100:200])
    >>> found.statistic < 0.1, found.reject()
    (True, True)
    """
    g, t, h = _rows(generated, "generated"), _rows(train, "train"), _rows(heldout, "heldout")
    tree = scipy.spatial.cKDTree(t)
    near, new = tree.query(g)[0], tree.query(h)[0]
    usual = float(np.median(new))
    ratio = float(np.median(near)) / usual if usual > 0 else float("nan")
    p = float(scipy.stats.mannwhitneyu(near, new, alternative="less").pvalue)
    return TestResult(ratio, p, "generated rows are no closer to the training rows than new ones",
                      "memorisation", alternative="less", n=(len(g), len(t), len(h)))  # fmt: skip


def _device(*given: Any) -> torch.device:
    """Where the first tensor is; the CPU where there is none."""
    return next((rows.device for rows in given if isinstance(rows, Tensor)), torch.device("cpu"))


def _rows(X: Any, name: str) -> Floats:
    rows = np.asarray(X.detach().cpu() if isinstance(X, Tensor) else X, np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows.reshape(len(rows), -1)
    if len(rows) < 2:
        raise DataError(f"{name} needs at least two rows, got {len(rows)}")
    if not np.isfinite(rows).all():
        raise DataError(f"{name} has missing or infinite values; leave those rows out")
    return rows


def _some(rows: Floats, n: int, key: Key) -> Floats:
    if len(rows) <= n:
        return rows
    return rows[np.sort(key.numpy().choice(len(rows), n, replace=False))]
