r"""The interval of a mean, with and without dependent rows."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.samples import sample

Floats = NDArray[np.float64]


def mean_interval(
    x: Any,
    level: float = 0.95,
    cluster: Any = None,
    *,
    method: Literal["t", "normal"] = "t",
    sample_weight: Any = None,
) -> Interval:
    r"""Student's interval of a mean, :math:`\bar x \pm t_{1-\alpha/2,\,n-1}\, s/\sqrt n`.

    Rows of one cluster (a person, a household) depend on each other. With clusters the standard
    error is the sandwich of the sums of the clusters' deviations,

    .. math:: \mathrm{SE}^2 = \frac{G}{G-1}\sum_g\Big(\sum_{i\in g} w_i(x_i - \bar x)\Big)^2\Big/
              \Big(\sum_i w_i\Big)^2 ,

    with G − 1 degrees of freedom; for clusters of equal size it is Student's interval of the
    cluster means.

    Parameters
    ----------
    x : ``(n,)``
    cluster : ``(n,)`` labels
    method : ``"normal"`` uses z in place of t
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Examples
    --------
    >>> print(mean_interval([138, 132, 140, 142, 136, 142, 147, 135, 140]))
    139.1 (135.7 to 142.5)
    >>> couples = mean_interval([1.0, 1.0, 2.0, 2.0, 3.0, 3.0], cluster=[0, 0, 1, 1, 2, 2])
    >>> print(couples)
    2 (-0.4841 to 4.484)
    """
    values = sample(x, "x of mean_interval", 0)
    w = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if w.shape != values.shape or (w < 0).any():
        raise DataError(f"sample_weight has shape {w.shape}; expected one per row, not negative")
    total = float(w.sum())
    n = total
    mean = float(w @ values) / total if total > 0 else math.nan
    if cluster is None:
        if n < 2:
            raise DataError(f"an interval of a mean needs at least two rows, got {n:g}")
        variance = float(w @ np.square(values - mean)) / (n - 1) / n
    else:
        sums = cluster_sums(w * (values - mean), cluster)
        n = float(len(np.unique(np.asarray(cluster)[w > 0])))
        if n < 2:
            raise DataError(f"an interval of a mean needs at least two clusters, got {n:g}")
        variance = n / (n - 1) * float(sums @ sums) / total**2
    q = (1 + checked_level(level)) / 2
    reach = scipy.stats.norm.ppf(q) if method == "normal" else scipy.stats.t.ppf(q, n - 1)
    half = float(reach) * math.sqrt(variance)
    name = {"t": "student", "normal": "normal"}[method]
    return Interval(mean, mean - half, mean + half, level, name if cluster is None else "cluster")


def cluster_sums(values: Floats, cluster: Any) -> Floats:
    """Sums of the values of each cluster, in the order of the labels.  # (G,)"""
    labels = np.asarray(cluster)
    if labels.shape != values.shape:
        raise DataError(f"cluster has shape {labels.shape}; expected one label per row")
    place = np.unique(labels, return_inverse=True)[1].reshape(-1)
    return np.bincount(place, values).astype(np.float64, copy=False)


def intraclass_correlation(x: Any, cluster: Any) -> float:
    r"""Share of variance that rows of one cluster have in common, by one-way ANOVA.

    :math:`\rho = (B - W)/(B + (m_0-1)W)` with the mean squares between (B) and within (W) clusters
    and the usual size :math:`m_0 = (n - \sum m_g^2/n)/(G-1)`.

    Examples
    --------
    >>> intraclass_correlation([1.0, 1.0, 2.0, 2.0], [0, 0, 1, 1])
    1.0
    """
    values = np.asarray(x, np.float64)
    place = np.unique(np.asarray(cluster), return_inverse=True)[1]
    sizes = np.bincount(place)
    n, groups = len(values), len(sizes)
    if groups < 2 or n <= groups:
        raise DataError(
            f"an intraclass correlation needs two clusters and one with two rows, got {n} rows in "
            f"{groups} clusters"
        )
    means = np.bincount(place, values) / sizes
    between = float(sizes @ np.square(means - values.mean())) / (groups - 1)
    within = float(np.square(values - means[place]).sum()) / (n - groups)
    usual = (n - float(sizes @ sizes) / n) / (groups - 1)
    below = between + (usual - 1) * within
    return (between - within) / below if below > 0 else 0.0


def design_effect(x: Any, cluster: Any) -> float:
    r"""How much larger the variance of the mean is than with independent rows, :math:`1+(m-1)\rho`.

    m is the mean of cluster sizes weighted by size, :math:`\sum m_g^2/n`.

    Examples
    --------
    >>> design_effect([1.0, 1.0, 2.0, 2.0], [0, 0, 1, 1])
    2.0
    """
    sizes = np.unique(np.asarray(cluster), return_counts=True)[1].astype(np.float64)
    m = float(sizes @ sizes) / float(sizes.sum())
    return 1 + (m - 1) * intraclass_correlation(x, cluster)
