"""Small pictures of one shape with what made them: factors, outlines, captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import RandomState
from groundstate.data.builtin.shapes import SHAPES
from groundstate.data.builtin.toys import F64, _rng

F32 = NDArray[np.float32]
COLOURS = {
    "red": (1.0, 0.1, 0.1), "green": (0.1, 0.8, 0.1), "blue": (0.2, 0.3, 1.0),
    "yellow": (1.0, 0.9, 0.1), "pink": (1.0, 0.3, 0.9), "cyan": (0.1, 0.9, 0.9),
    "white": (1.0, 1.0, 1.0), "grey": (0.5, 0.5, 0.5),
}  # fmt: skip
FACTORS = ("row", "column", "size", "angle")


def make_factor_shapes(
    n_samples: int = 1000, side: int = 16, *, random_state: RandomState = None
) -> tuple[F32, F64]:
    r"""Pictures of an ellipse whose place, size and angle are drawn one by one, uniformly.

    Parameters
    ----------
    n_samples : pictures
    side : pixels
    random_state : source of the draws

    Returns
    -------
    images : (n, side, side) float32 in [0, 1], edges smooth
    factors : (n, 4), row and column of the centre in [−1, 1], size in [0.5, 1], angle in [0, π)

    Examples
    --------
    >>> images, factors = make_factor_shapes(50, random_state=0)
    >>> images.shape, factors.shape
    ((50, 16, 16), (50, 4))
    """
    rng = _rng(random_state, "factor shapes", n_samples)
    low, high = [-1.0, -1.0, 0.5, 0.0], [1.0, 1.0, 1.0, np.pi]
    factors = rng.uniform(low, high, (n_samples, 4))
    return _ellipses(factors, _sides(side)), factors


def draw_factors(factors: Any, side: int = 16) -> F32:
    """The pictures that ``make_factor_shapes`` has for these factors, ``(n, side, side)``.

    >>> bool(draw_factors([[0.0, 0.0, 1.0, 0.0]]).max() > 0.99)
    True
    """
    return _ellipses(np.asarray(factors, dtype=np.float64).reshape(-1, 4), _sides(side))


def make_edge_pairs(
    n_samples: int = 1000, side: int = 16, *, random_state: RandomState = None
) -> tuple[F32, F32, NDArray[np.int64]]:
    """Outlines of shapes and the same shapes filled: paired pictures to translate from a to b.

    Returns
    -------
    a : (n, side, side) float32, the outline
    b : (n, side, side) float32, filled
    y : (n,) array, 0 circle, 1 square, 2 triangle

    Examples
    --------
    >>> a, b, y = make_edge_pairs(20, random_state=0)
    >>> a.shape == b.shape == (20, 16, 16), bool((b.sum((1, 2)) > a.sum((1, 2))).all())
    (True, True)
    """
    rng = _rng(random_state, "edge pairs", n_samples)
    y = rng.integers(0, len(SHAPES), n_samples)
    distance = _distances(rng, y, _sides(side))
    outline = np.clip(1.0 - np.abs(distance + 0.5), 0, 1)
    return outline.astype(np.float32), _filled(distance), y


def make_captions(
    n_samples: int = 1000,
    side: int = 16,
    *,
    colours: Sequence[str] = ("red", "green", "blue"),
    random_state: RandomState = None,
) -> tuple[F32, list[str], NDArray[np.int64]]:
    """Pictures of one coloured shape with a caption, such as "a red circle".

    Parameters
    ----------
    n_samples : pictures
    side : pixels
    colours : names, of "red", "green", "blue", "yellow", "pink", "cyan", "white" and "grey"
    random_state : source of the draws

    Returns
    -------
    images : (n, 3, side, side) float32 in [0, 1]
    captions : list of n strings
    factors : (n, 2) array, numbers of the colour (in ``colours``) and of the shape (``SHAPES``)

    Examples
    --------
    >>> images, captions, factors = make_captions(3, random_state=0)
    >>> images.shape, captions[0].split()[0]
    ((3, 3, 16, 16), 'a')
    """
    names = list(colours)
    unknown = [name for name in names if name not in COLOURS]
    if unknown or not names:
        raise ValueError(f"colours names some of {', '.join(COLOURS)}, got {names}")
    rng = _rng(random_state, "captions", n_samples)
    factors = np.column_stack([
        rng.integers(0, len(names), n_samples), rng.integers(0, len(SHAPES), n_samples),
    ])  # fmt: skip
    mask = _filled(_distances(rng, factors[:, 1], _sides(side)))
    colour = np.array([COLOURS[name] for name in names], np.float32)[factors[:, 0]]
    captions = [f"a {names[c]} {SHAPES[s]}" for c, s in factors.tolist()]
    return mask[:, None] * colour[:, :, None, None], captions, factors


def _sides(side: int) -> int:
    if side < 8:
        raise ValueError(f"shapes need pictures of at least 8 x 8 pixels, got side={side}")
    return side


def _ellipses(factors: F64, side: int) -> F32:
    rows, columns = np.mgrid[:side, :side] + 0.5
    row, column, size, angle = (f[:, None, None] for f in factors.T)
    long = 0.25 * side * size
    room = 0.25 * side - 0.5  # the largest shape stays inside
    y, x = rows - side / 2 - room * row, columns - side / 2 - room * column
    u, v = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    radius = np.sqrt((u / long) ** 2 + (v / (0.5 * long)) ** 2)
    return _filled(0.5 * long * (radius - 1))


def _distances(rng: np.random.Generator, labels: NDArray[np.int64], side: int) -> F64:
    """How far each pixel lies outside a shape of random place and size, in pixels."""
    rows, columns = np.mgrid[:side, :side] + 0.5
    n = len(labels)
    radius = rng.uniform(0.2, 0.35, n)[:, None, None] * side
    place = rng.uniform(-1, 1, (2, n, 1, 1)) * (side / 2 - 1 - radius)
    y, x = rows - side / 2 - place[0], columns - side / 2 - place[1]
    circle = np.sqrt(x**2 + y**2) - radius
    square = np.maximum(np.abs(x), np.abs(y)) - radius / np.sqrt(2)
    turns = np.pi / 2 + 2 * np.pi * np.arange(3) / 3
    triangle = np.max([np.cos(t) * x + np.sin(t) * y for t in turns], 0) - radius / 2
    return np.stack([circle, square, triangle])[labels, np.arange(n)]


def _filled(distance: F64) -> F32:
    return np.clip(0.5 - distance, 0, 1).astype(np.float32)
