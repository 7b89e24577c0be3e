r"""A metric of the plane as a picture: what is one step long, :math:`v^\top M(x)v = c^2`, at many places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.math.distances.riemannian import RiemannianMetric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINE = 60  # points of an axis of the contours


def plot_metric(
    metric: RiemannianMetric, X: Any, *, places: int = 9, step: float | None = None, ax: Axes | None = None
) -> Axes:  # fmt: skip
    r"""Draw ellipses :math:`v^\top M(x)v = c^2` around a grid of places x, and contours of
    :math:`\log\sqrt{\det M(x)}`.

    All points of an ellipse are equally far from its place, so its axes are :math:`c/\sqrt{\lambda_j}`,
    reciprocal to those of M and in the directions of the covariance :math:`M^{-1}`: long where the metric
    is cheap.

    Parameters
    ----------
    metric : of two columns, such as ``LocalMetric().fit(X).metric_``, ``ConstantMetric(M)`` or
        ``VAE(2).fit(images).decoder_metric()``
    X : rows ``(n, 2)``, which are drawn and whose range is the picture's
    places : of an axis of the grid
    step : c; by default such that the widest ellipse fills a cell of the grid
    ax : where to draw; a new figure by default

    Examples
    --------
    >>> from groundstate.math.distances import ConstantMetric
    >>> ax = plot_metric(ConstantMetric([[4.0, 0.0], [0.0, 1.0]]), [[0.0, 0.0], [1.0, 1.0]], places=2, step=0.1)
    >>> len(ax.patches), ax.patches[0].width, ax.patches[0].height  # twice the half axes 0.1/√4 and 0.1
    (4, 0.1, 0.2)
    """
    from matplotlib.patches import Ellipse

    rows = np.asarray(X, np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) < 2:
        raise ValueError(
            f"X gives the range of a plane and is (n, 2) with n >= 2, got {rows.shape}"
        )
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(4.5, 4), layout="constrained").add_subplot()
    low, high = rows.min(0), rows.max(0)
    side = np.where(high > low, high - low, 1.0)
    a, b = (np.linspace(low[j] - 0.1 * side[j], high[j] + 0.1 * side[j], FINE) for j in (0, 1))
    fine = np.stack(np.meshgrid(a, b), -1)
    size = np.log(np.asarray(metric.volume(fine.reshape(-1, 2)))).reshape(FINE, FINE)
    if np.ptp(size) > 1e-9:
        ax.contour(a, b, size, levels=8, colors="grey", linewidths=0.5)
    grid = np.stack(np.meshgrid(*(np.linspace(low[j], high[j], places) for j in (0, 1))), -1)
    at = grid.reshape(-1, 2)
    values, vectors = np.linalg.eigh(np.asarray(metric.tensor(at)))
    half = 1 / np.sqrt(values)  # the longest first: eigenvalues rise
    if step is None:
        step = float(0.45 * (side / max(places - 1, 1)).min() / half.max())
    for place, (major, minor), V in zip(at, step * half, vectors, strict=True):
        angle = float(np.degrees(np.arctan2(V[1, 0], V[0, 0])))
        ax.add_patch(_upright(Ellipse, place, major, minor, angle))
    ax.scatter(rows[:, 0], rows[:, 1], s=4, color="#d9822b", zorder=1)
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def _upright(Ellipse: Any, place: Any, major: float, minor: float, angle: float) -> Any:
    """An ellipse by its half axes; one along the columns has no angle but its width and height."""
    width, height = 2 * float(major), 2 * float(minor)
    if np.isclose(abs(angle), 90.0):
        width, height, angle = height, width, 0.0
    elif np.isclose(abs(angle), 180.0):
        angle = 0.0
    centre = (float(place[0]), float(place[1]))
    return Ellipse(centre, width, height, angle=angle, fill=False, color="#3b6fb6", linewidth=0.8)
