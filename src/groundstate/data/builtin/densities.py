r"""Toy distributions for generative models, and their exact :math:`\log p` where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from groundstate.compute.random import Key, RandomState
from groundstate.data.builtin import generators
from groundstate.data.builtin.toys import F64, _rng, _spread

_LOG_2PI = float(np.log(2 * np.pi))


def make_eight_gaussians(
    n_samples: int = 1000,
    *,
    modes: int = 8,
    radius: float = 2.0,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> tuple[F64, NDArray[np.int64]]:
    r"""Gaussians on a ring, :math:`p = \tfrac1m\sum_k N\big(r(\cos\tfrac{2\pi k}m, \sin\tfrac{2\pi k}m),
    \text{noise}^2 I\big)`.

    Parameters
    ----------
    n_samples : rows
    modes : m
    radius : r
    noise : standard deviation of each
    random_state : source of the draws

    Returns
    -------
    X : (n_samples, 2) array
    y : (n_samples,) array, which Gaussian

    Examples
    --------
    >>> X, y = make_eight_gaussians(4000, random_state=0)
    >>> X.shape, len(set(y.tolist()))
    ((4000, 2), 8)
    >>> toy_log_prob("eight_gaussians", [[2.0, 0.0]]).round(4)  # −log 8 − log 2π·0.01
    array([0.6879])
    """
    rng = _rng(random_state, "eight gaussians", n_samples)
    y = rng.integers(0, modes, n_samples)
    return _corners(modes, radius)[y] + _spread(noise) * rng.standard_normal((n_samples, 2)), y


def make_two_gaussians(
    n_samples: int = 1000,
    *,
    weight: float = 0.2,
    distance: float = 5.0,
    n_features: int = 2,
    random_state: RandomState = None,
) -> tuple[F64, NDArray[np.int64]]:
    r"""A small mode and a large one far away, :math:`w\,N(-a, I) + (1 - w)\,N(a, I)` with
    :math:`a = (\text{distance}, \dots)`.

    Returns
    -------
    X : (n_samples, n_features) array
    y : (n_samples,) array, 0 in the small mode

    Examples
    --------
    >>> X, y = make_two_gaussians(10_000, random_state=0)
    >>> bool(abs((y == 0).mean() - 0.2) < 0.02)
    True
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight is the probability of the mode at -distance, got {weight}")
    rng = _rng(random_state, "two gaussians", n_samples)
    y = (rng.random(n_samples) >= weight).astype(np.int64)
    centre = distance * (2.0 * y - 1.0)[:, None]
    return centre + rng.standard_normal((n_samples, n_features)), y


def make_checkerboard(
    n_samples: int = 1000, *, squares: int = 4, random_state: RandomState = None
) -> F64:
    r"""Uniform on the squares of one colour of a board :math:`[-\tfrac s2, \tfrac s2]^2`.

    Examples
    --------
    >>> X = make_checkerboard(500, random_state=0)
    >>> bool((toy_log_prob("checkerboard", X) == -np.log(8)).all())
    True
    """
    if squares < 1:
        raise ValueError(f"a board has at least one square per side, got squares={squares}")
    rng = _rng(random_state, "checkerboard", n_samples)
    cells = np.array([(i, j) for i in range(squares) for j in range(squares) if (i + j) % 2 == 0])
    chosen = cells[rng.integers(0, len(cells), n_samples)]
    return chosen + rng.random((n_samples, 2)) - squares / 2


def make_pinwheel(
    n_samples: int = 1000, *, arms: int = 5, noise: float = 0.05, random_state: RandomState = None
) -> tuple[F64, NDArray[np.int64]]:
    """Bent Gaussian blades around the origin.

    Returns
    -------
    X : (n_samples, 2) array
    y : (n_samples,) array, which blade

    Examples
    --------
    >>> X, y = make_pinwheel(100, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((100, 2), [20, 20, 20, 20, 20])
    """
    return generators.pinwheel(
        _rng(random_state, "pinwheel", n_samples), n_samples, _spread(noise), arms
    )


def make_double_well(
    n_samples: int = 1000, *, height: float = 2.0, random_state: RandomState = None
) -> F64:
    r"""Two wells with a wall between, :math:`p \propto e^{-h(x_1^2 - 1)^2 - 2x_2^2}`.

    With the default height the variances are 0.852 and 0.25.

    Examples
    --------
    >>> X = make_double_well(20_000, random_state=0)
    >>> bool(np.abs(X.var(0) - [0.852, 0.25]).max() < 0.02)
    True
    """
    if not height > 0:
        raise ValueError(f"height of the wall must be positive, got {height}")
    rng = _rng(random_state, "double well", n_samples)
    end = np.sqrt(1 + np.sqrt(40 / height))  # e⁻⁴⁰ of the mass per unit is left out
    grid = np.linspace(-end, end, 20_001)
    cumulative = np.cumsum(np.exp(-height * np.square(grid**2 - 1)))
    first = np.interp(rng.random(n_samples), cumulative / cumulative[-1], grid)
    return np.column_stack([first, 0.5 * rng.standard_normal(n_samples)])


def make_bars_and_stripes(
    side: int = 3, n_samples: int | None = None, *, random_state: RandomState = None
) -> F64:
    r"""Binary pictures of horizontal or vertical lines, :math:`2(2^s - 1)` of them, each as probable.

    The best mean log-likelihood is :math:`-\log 2(2^s - 1)`; of ``side=3``, −2.639057.

    Parameters
    ----------
    side : s, pictures are s × s
    n_samples : None for every picture once, else draws
    random_state : source of the draws

    Returns
    -------
    (n, side²) array of zeros and ones

    Examples
    --------
    >>> X = make_bars_and_stripes(3)
    >>> len(np.unique(X, axis=0)), round(float(toy_log_prob("bars_and_stripes", X).mean()), 6)
    (14, -2.639057)
    """
    if side < 1:
        raise ValueError(f"pictures have at least one line, got side={side}")
    rng = Key.of(random_state).fold("bars and stripes").numpy()
    pictures, _ = generators.bars_and_stripes(rng, 2 * (2**side - 1), 0.0, side)
    if n_samples is None:
        return pictures
    return pictures[
        _rng(random_state, "bars and stripes", n_samples).integers(0, len(pictures), n_samples)
    ]


def make_disc(n_samples: int = 1000, *, random_state: RandomState = None) -> F64:
    r"""Rows (a, a, b) with (a, b) uniform on the unit disc: three columns on a flat sheet.

    Examples
    --------
    >>> X = make_disc(1000, random_state=0)
    >>> bool((X[:, 0] == X[:, 1]).all() and (X[:, 0] ** 2 + X[:, 2] ** 2 <= 1).all())
    True
    """
    rng = _rng(random_state, "disc", n_samples)
    r, t = np.sqrt(rng.random(n_samples)), 2 * np.pi * rng.random(n_samples)
    a, b = r * np.cos(t), r * np.sin(t)
    return np.column_stack([a, a, b])


def toy_log_prob(name: str, X: Any, **options: Any) -> F64:
    r"""The exact :math:`\log p` of rows under a toy distribution; −inf where it has no mass.

    Parameters
    ----------
    name : one of ``TOYS``: the part behind ``make_``, or "moons" for scikit-learn's ``make_moons``
        (an integral over the arcs, with ``noise`` above 0)
    X : (n, d) rows
    options : those of the maker

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> toy_log_prob("two_gaussians", [[-5.0, -5.0]]).round(4)  # log 0.2 − log 2π
    array([-3.4473])
    """
    if name not in TOYS:
        raise ValueError(
            f"there is no known density of {name!r}; there is one of {', '.join(TOYS)}"
        )
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X holds rows (n, d), got shape {rows.shape}")
    return TOYS[name](rows, **options)


def _eight(X: F64, modes: int = 8, radius: float = 2.0, noise: float = 0.1) -> F64:
    return _mixture(X, _corners(modes, radius), np.full(modes, 1 / modes), noise)


def _two(X: F64, weight: float = 0.2, distance: float = 5.0) -> F64:
    centres = distance * np.array([[-1.0], [1.0]]) * np.ones(X.shape[1])
    return _mixture(X, centres, np.array([weight, 1 - weight]), 1.0)


def _board(X: F64, squares: int = 4) -> F64:
    at = X + squares / 2
    inside = ((at >= 0) & (at < squares)).all(1)
    light = np.floor(at).astype(np.int64).sum(1) % 2 == 0
    return np.where(inside & light, -np.log((squares**2 + 1) // 2), -np.inf)


def _well(X: F64, height: float = 2.0) -> F64:
    mass, _ = quad(lambda x: np.exp(-height * (x * x - 1) ** 2), -np.inf, np.inf, epsabs=1e-13)
    log_z = np.log(mass) + 0.5 * np.log(np.pi / 2)
    out: F64 = -height * np.square(X[:, 0] ** 2 - 1) - 2 * X[:, 1] ** 2 - log_z
    return out


def _bars(X: F64, side: int = 3) -> F64:
    pictures = X.reshape(-1, side, side)
    bits = ((X == 0) | (X == 1)).all(1)
    bars = (pictures == pictures[:, :1]).all((1, 2))
    stripes = (pictures == pictures[:, :, :1]).all((1, 2))
    return np.where(bits & (bars | stripes), -np.log(2 * (2**side - 1)), -np.inf)


def _moons(X: F64, noise: float = 0.1) -> F64:
    if not noise > 0:
        raise ValueError("moons without noise lie on two arcs and have no density; use noise > 0")
    t, w = np.polynomial.legendre.leggauss(200)
    t, w = np.pi * (t + 1) / 2, w / 2
    outer, inner = (np.cos(t), np.sin(t)), (1 - np.cos(t), 0.5 - np.sin(t))
    arcs = np.concatenate([np.column_stack(outer), np.column_stack(inner)])
    return _mixture(X, arcs, np.concatenate([w, w]) / 2, noise)


def _mixture(X: F64, centres: F64, weights: F64, scale: float) -> F64:
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    constant = X.shape[1] * (0.5 * _LOG_2PI + np.log(scale))
    step = max(1, 2**20 // len(centres))
    parts = [
        logsumexp(log_weights - 0.5 * cdist(rows, centres, "sqeuclidean") / scale**2, axis=1)
        for rows in (X[at : at + step] for at in range(0, len(X), step))
    ]
    out: F64 = np.concatenate([np.zeros(0), *parts]) - constant
    return out


def _corners(modes: int, radius: float) -> F64:
    if modes < 1:
        raise ValueError(f"modes must be at least 1, got {modes}")
    t = 2 * np.pi * np.arange(modes) / modes
    return radius * np.column_stack([np.cos(t), np.sin(t)])


TOYS: dict[str, Callable[..., F64]] = {
    "eight_gaussians": _eight,
    "two_gaussians": _two,
    "checkerboard": _board,
    "double_well": _well,
    "bars_and_stripes": _bars,
    "moons": _moons,
}
