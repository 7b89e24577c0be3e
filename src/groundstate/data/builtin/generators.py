"""Small worlds with known answers, drawn from an explicit NumPy generator."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

Rng = np.random.Generator
Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def two_gaussians(rng: Rng, n: int, noise: float, distance: float = 2.0) -> tuple[Floats, Labels]:
    r"""Two round classes: :math:`x \mid y \sim N(\pm \tfrac d2 e_1, \text{noise}^2 I)`."""
    y = np.arange(n, dtype=np.int64) % 2
    centre = np.stack([(y - 0.5) * distance, np.zeros(n)], axis=1)
    return centre + noise * rng.standard_normal((n, 2)), y


def xor(rng: Rng, n: int, noise: float) -> tuple[Floats, Labels]:
    """Four clouds at (±1, ±1); the class is whether the signs differ."""
    corner = np.arange(n) % 4
    signs = np.stack([corner // 2, corner % 2], axis=1) * 2.0 - 1.0
    y = (signs[:, 0] != signs[:, 1]).astype(np.int64)
    return signs + noise * rng.standard_normal((n, 2)), y


def disc(rng: Rng, n: int, noise: float) -> tuple[Floats, Labels]:
    r"""Points of a square, moved by `noise`; class 0 inside the unit disc, 1 on its edge and outside.

    The square :math:`|x_d| \le \sqrt{\pi/2}` has twice the area of the disc.
    """
    half = np.sqrt(np.pi / 2)
    x = rng.uniform(-half, half, size=(n, 2))
    y = (np.square(x).sum(axis=1) >= 1).astype(np.int64)
    return x + noise * rng.standard_normal((n, 2)), y


def rings(
    rng: Rng, n: int, noise: float, modes: int = 8, radius: float = 2.0
) -> tuple[Floats, Labels]:
    """A mixture of `modes` Gaussians on a ring; the target is the component."""
    y = np.arange(n, dtype=np.int64) % modes
    angle = 2 * np.pi * y / modes
    centre = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centre + noise * rng.standard_normal((n, 2)), y


def checkerboard(rng: Rng, n: int, noise: float, squares: int = 4) -> tuple[Floats, Labels]:
    """Uniform points on a board; the class is the colour, flipped with probability `noise`."""
    x = rng.uniform(0.0, squares, size=(n, 2))
    y = np.floor(x).astype(np.int64).sum(axis=1) % 2
    flip = rng.random(n) < noise
    return x - squares / 2, np.where(flip, 1 - y, y)


def spirals(
    rng: Rng, n: int, noise: float, arms: int = 2, turns: float = 1.5
) -> tuple[Floats, Labels]:
    """Interleaved spiral arms, one class each."""
    y = np.arange(n, dtype=np.int64) % arms
    t = np.sqrt(rng.random(n))
    angle = 2 * np.pi * (turns * t + y / arms)
    x = 3 * t[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return x + noise * rng.standard_normal((n, 2)), y


def pinwheel(rng: Rng, n: int, noise: float, arms: int = 5) -> tuple[Floats, Labels]:
    """Bent Gaussian blades around the origin, one class each."""
    y = np.arange(n, dtype=np.int64) % arms
    blade = rng.standard_normal((n, 2)) * np.array([0.3, noise]) + np.array([1.0, 0.0])
    angle = 2 * np.pi * y / arms + 0.25 * np.exp(blade[:, 0])
    cos, sin = np.cos(angle), np.sin(angle)
    x = np.stack(
        [cos * blade[:, 0] - sin * blade[:, 1], sin * blade[:, 0] + cos * blade[:, 1]], axis=1
    )
    return 2 * x, y


def bars_and_stripes(rng: Rng, n: int, noise: float, side: int = 3) -> tuple[Floats, Labels]:
    """Binary pictures of bars (0) or stripes (1); each pixel flips with probability `noise`.

    The ``2 (2^side - 1)`` pictures that are not both come first, each once; further rows are
    drawn from them uniformly.
    """
    lines = np.array(list(product([0.0, 1.0], repeat=side)))  # (2^side, side)
    bars = np.repeat(lines[:, None, :], side, axis=1).reshape(len(lines), -1)
    stripes = np.repeat(lines[:, :, None], side, axis=2).reshape(len(lines), -1)
    # all dark and all light are both a bar and a stripe picture: each is kept once
    pictures = np.concatenate([bars[:-1], stripes[1:]])  # (2 (2^side - 1), side²)
    kind = np.repeat(np.array([0, 1], dtype=np.int64), len(lines) - 1)
    extra = rng.integers(0, len(pictures), size=max(0, n - len(pictures)))
    rows = np.concatenate([np.arange(min(n, len(pictures))), extra])
    flips = rng.random((n, side * side)) < noise
    return np.abs(pictures[rows] - flips), kind[rows]


def sine(rng: Rng, n: int, noise: float) -> tuple[Floats, Floats]:
    r"""One curve: :math:`y = \sin(2\pi x) + \text{noise}\,\varepsilon`, x uniform on (0, 1)."""
    x = rng.random((n, 1))
    return x, np.sin(2 * np.pi * x[:, 0]) + noise * rng.standard_normal(n)


def line(
    rng: Rng, n: int, noise: float, slope: float = 2.0, offset: float = 1.0
) -> tuple[Floats, Floats]:
    r"""A straight line: :math:`y = a x + b + \text{noise}\,\varepsilon`, x uniform on (-1, 1)."""
    x = rng.uniform(-1.0, 1.0, size=(n, 1))
    return x, slope * x[:, 0] + offset + noise * rng.standard_normal(n)
