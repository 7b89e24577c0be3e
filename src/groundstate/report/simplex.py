r"""The probability simplex of three classes as a triangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import ShapeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3b6fb6", "#d9822b", "#4c9f70")
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


def barycentric(p: ArrayLike) -> NDArray[np.float64]:
    r"""Points :math:`\sum_k p_k c_k` of a triangle with corners :math:`c_k` for rows ``(n, 3)``.

    >>> barycentric([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]).tolist()
    [[0.0, 0.0], [0.5, 0.0]]
    """
    p = np.atleast_2d(np.asarray(p, float))
    if p.ndim != 2 or p.shape[1] != 3:
        raise ShapeError(f"the triangle shows probabilities of three classes (n, 3), got {p.shape}")
    off = np.abs(p.sum(1) - 1).max(initial=0.0)
    if not (off < 1e-4 and p.min(initial=0.0) >= -1e-6):
        raise ValueError(
            "rows must be probabilities that sum to 1 (use softmax of the logits first); "
            f"the largest difference of a sum from 1 is {off:.2g}"
        )
    return np.asarray(p @ CORNERS)


def plot_simplex(
    ax: Axes,
    p: ArrayLike | None = None,
    y: ArrayLike | None = None,
    labels: Sequence[str] = ("0", "1", "2"),
) -> Axes:
    r"""Draw the simplex with the three areas of argmax, which meet at (⅓, ⅓, ⅓), and points.

    A point is decided for the class whose area it lies in; a target is a corner.

    Parameters
    ----------
    ax : axes to draw on
    p : predicted probabilities ``(n, 3)``
    y : true classes 0, 1, 2, which colour the points
    labels : names of the corners
    """
    centre = CORNERS.mean(0)
    for k, colour in enumerate(COLOURS):
        here, after, before = CORNERS[k], CORNERS[(k + 1) % 3], CORNERS[(k + 2) % 3]
        area = np.array([here, (here + after) / 2, centre, (here + before) / 2])
        ax.fill(*area.T, color=colour, alpha=0.18, linewidth=0)
        away = here + 0.09 * (here - centre) / np.linalg.norm(here - centre)
        ax.text(float(away[0]), float(away[1]), labels[k], ha="center", va="center")
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.3", linewidth=1)
    if p is not None:
        points = barycentric(p)
        classes = np.zeros(len(points), int) if y is None else np.asarray(y, int)
        for k in np.unique(classes):
            rows = classes == k
            x, height = points[rows].T
            ax.scatter(x, height, s=14, color=COLOURS[k % 3], edgecolor="white", zorder=3)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
