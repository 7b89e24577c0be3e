"""Clouds with a shape that some distances miss: a half circle, a ring, a long and a slanted cloud."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from groundstate.compute.random import Key, RandomState

F64 = NDArray[np.float64]
SLANT = np.array([[0.6, -0.6], [-0.4, 0.8]])


def make_half_circle(
    n_samples: int = 200,
    *,
    radius: float = 1.0,
    noise: float = 0.03,
    random_state: RandomState = None,
) -> F64:
    r"""Points of the upper half circle, :math:`x = r(\cos t, \sin t) + \varepsilon`, t uniform on
    :math:`(0, \pi)`, ε normal.

    The mean is :math:`(0, 2r/\pi)`, where no points are.

    Parameters
    ----------
    n_samples : rows
    radius : r
    noise : standard deviation of ε in each coordinate
    random_state : source of the draws

    Returns
    -------
    (n_samples, 2) array

    Examples
    --------
    >>> X = make_half_circle(4000, random_state=0)
    >>> X.shape, bool(abs(X[:, 1].mean() - 2 / np.pi) < 0.02)
    ((4000, 2), True)
    """
    rng = _rng(random_state, "half circle", n_samples)
    t = rng.uniform(0, np.pi, n_samples)
    arc = radius * np.column_stack([np.cos(t), np.sin(t)])
    return arc + _spread(noise) * rng.standard_normal((n_samples, 2))


def make_ring(
    n_samples: int = 300,
    *,
    radius: float = 3.0,
    noise: float = 0.2,
    random_state: RandomState = None,
) -> F64:
    r"""Points of a circle whose radius is normal, :math:`N(r, \text{noise}^2)`; the mean is zero and
    the covariance :math:`\tfrac12(r^2 + \text{noise}^2)I`.

    Examples
    --------
    >>> X = make_ring(4000, random_state=0)
    >>> bool(np.abs(np.cov(X.T) - 4.52 * np.eye(2)).max() < 0.2)
    True
    """
    rng = _rng(random_state, "ring", n_samples)
    t = rng.uniform(0, 2 * np.pi, n_samples)
    r = radius + _spread(noise) * rng.standard_normal(n_samples)
    return r[:, None] * np.column_stack([np.cos(t), np.sin(t)])


def make_elongated(
    n_samples: int = 1000,
    *,
    n_outliers: int = 50,
    scale: tuple[float, float] = (10.0, 1.0),
    distance: float = 6.0,
    angle: float = 0.0,
    random_state: RandomState = None,
) -> tuple[F64, NDArray[np.int64]]:
    r"""A long Gaussian cloud with outliers across its short axis.

    Inliers are :math:`N(0, \operatorname{diag}(s_1^2, s_2^2))`; outliers have the same first coordinate
    and :math:`\pm\text{distance}` in the second, in units of :math:`s_2`. Both are turned by ``angle``.

    Parameters
    ----------
    n_samples, n_outliers : rows of either kind; outliers come last
    scale : standard deviations s₁ and s₂
    distance : of outliers across, in units of s₂
    angle : in radians
    random_state : source of the draws

    Returns
    -------
    X : (n_samples + n_outliers, 2) array
    y : (n_samples + n_outliers,) array, 1 for inliers and −1 for outliers, as detectors answer

    Examples
    --------
    >>> X, y = make_elongated(5, n_outliers=2, random_state=0)
    >>> y.tolist(), np.abs(X[5:, 1]).tolist()
    ([1, 1, 1, 1, 1, -1, -1], [6.0, 6.0])
    """
    rng = _rng(random_state, "elongated", n_samples)
    inside = rng.standard_normal((n_samples, 2)) * scale
    across = distance * scale[1] * np.where(np.arange(n_outliers) % 2 == 0, 1.0, -1.0)
    outside = np.column_stack([scale[0] * rng.standard_normal(n_outliers), across])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    y = np.concatenate([np.ones(n_samples, np.int64), -np.ones(n_outliers, np.int64)])
    return np.vstack([inside, outside]) @ turn.T, y


def make_anisotropic(
    n_samples: int = 1500, *, random_state: Any = 170
) -> tuple[F64, NDArray[np.int64]]:
    """Three blobs of scikit-learn, slanted by [[0.6, −0.6], [−0.4, 0.8]]: clusters that are not round.

    Returns
    -------
    X : (n_samples, 2) array
    y : (n_samples,) array of the blob

    Examples
    --------
    >>> X, y = make_anisotropic()
    >>> X.shape, np.bincount(y).tolist()
    ((1500, 2), [500, 500, 500])
    """
    X, y = make_blobs(n_samples, random_state=random_state)
    return X @ SLANT, y.astype(np.int64)


def roll_arc_length(t: Any) -> F64:
    r"""Arc length of the spiral :math:`(t\cos t, t\sin t)` behind the Swiss roll,
    :math:`s(t) = \tfrac12(t\sqrt{1 + t^2} + \operatorname{asinh} t)`.

    Examples
    --------
    >>> round(float(roll_arc_length(4.5 * np.pi) - roll_arc_length(1.5 * np.pi)), 1)
    89.4
    """
    t = np.asarray(t, dtype=np.float64)
    out: F64 = 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))
    return out


def _rng(random_state: RandomState, name: str, n: int) -> np.random.Generator:
    if n < 1:
        raise ValueError(f"n_samples must be at least 1, got {n}")
    return Key.of(random_state).fold(name).numpy()


def _spread(noise: float) -> float:
    if not noise >= 0:
        raise ValueError(f"noise is a standard deviation and must not be negative, got {noise}")
    return noise
