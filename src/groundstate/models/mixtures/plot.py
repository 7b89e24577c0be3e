"""A mixture of Gaussians as a picture: its components, their sum, and the rows by responsibility."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3b6fb6", "#d9822b", "#4c9f70", "#a05195", "#b23a48", "#5b8a9a", "#8c6d46", "#6b7280")
GRID = {1: 400, 2: 120}  # points of an axis, by the number of axes
F64 = NDArray[np.float64]


def plot_mixture(
    model: Any, X: Any = None, *, columns: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    r"""Draw :math:`p(x) = \sum_z\pi_zN(x; \mu_z, \Sigma_z)` of one or two columns.

    One column: a curve :math:`\pi_zN(x; \mu_z, \Sigma_z)` for every component, labelled "component z",
    and their sum, labelled "total". Two columns: contours of the sum, and ellipses at one and two
    standard deviations. Rows have the colours of the components, mixed by their responsibilities.

    Parameters
    ----------
    model : fitted GaussianMixture or BayesianGaussianMixture
    X : (n_samples, n_features) array, default=None
        Rows to show, NaN allowed where the model allows it.
    columns : one or two column numbers, default=None
        Which columns to draw, by the marginal of the mixture; needed from three columns on.
    ax : where to draw; a new figure by default

    Returns
    -------
    the axes

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GaussianMixture
    >>> X = np.array([[-2.0], [-1.0], [-1.5], [8.0], [9.0], [8.5]])
    >>> ax = plot_mixture(GaussianMixture(2, random_state=0).fit(X), X)
    >>> [line.get_label() for line in ax.lines]
    ['component 0', 'component 1', 'total']
    """
    check_is_fitted(model, "energy_")
    energy = model.energy_
    if not isinstance(energy, GaussianMixtureEnergy):
        raise ValueError(
            f"plot_mixture draws mixtures of Gaussians, got {type(model).__name__}; fit a "
            "GaussianMixture or BayesianGaussianMixture"
        )
    at = _columns(energy.mu.shape[1], columns)
    with torch.no_grad():
        weight = energy.log_weights.double().exp().cpu().numpy()
        mean = energy.mu.double().cpu().numpy()[:, at]
        cov = energy.full_covariances().cpu().numpy()[:, at][:, :, at]
    rows, colours = _rows(model, X, at, len(weight))
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(5, 3.5), layout="constrained").add_subplot()
    sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    ends = [mean - 3 * sd, mean + 3 * sd] if rows is None else [mean - 2 * sd, mean + 2 * sd, rows]
    low, high = (getattr(np, f"nan{name}")(np.concatenate(ends), axis=0) for name in ("min", "max"))
    if len(at) == 1:
        _line(ax, weight, mean, cov, float(low[0]), float(high[0]))
        if rows is not None:
            ax.scatter(rows[:, 0], np.zeros(len(rows)), c=colours, marker="|", s=60, zorder=3)
    else:
        _plane(ax, weight, mean, cov, low, high)
        if rows is not None:
            ax.scatter(rows[:, 0], rows[:, 1], c=colours, s=8, zorder=2)
    names = getattr(model, "feature_names_in_", None)
    labels = [f"x{j}" if names is None else str(names[j]) for j in at]
    ax.set_xlabel(labels[0])
    ax.set_ylabel("density" if len(at) == 1 else labels[1])
    return ax


def _columns(d: int, columns: Sequence[int] | None) -> list[int]:
    at = list(range(d)) if columns is None else [int(j) for j in columns]
    if len(at) not in (1, 2) or len(set(at)) < len(at) or not all(0 <= j < d for j in at):
        raise ValueError(
            f"plot_mixture draws one or two of the {d} columns; pass columns=(i, j) with numbers "
            f"from 0 to {d - 1}, got {columns}"
        )
    return at


def _rows(model: Any, X: Any, at: list[int], k: int) -> tuple[F64 | None, F64 | None]:
    """Rows ``(n, 1 or 2)`` and their colours ``(n, 3)``: those of the components, mixed."""
    if X is None:
        return None, None
    from matplotlib.colors import to_rgb

    share = _array(model.predict_proba(X))
    rows = _array(X.to_numpy() if hasattr(X, "to_numpy") else X)[:, at]
    palette = np.array([to_rgb(COLOURS[z % len(COLOURS)]) for z in range(k)])
    return rows, np.clip(share @ palette, 0, 1)


def _array(values: Any) -> F64:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def densities(weight: F64, mean: F64, cov: F64, x: F64) -> F64:
    r""":math:`\pi_zN(x; \mu_z, \Sigma_z)` of rows ``(n, d)``, ``(k, n)``.

    Examples
    --------
    >>> one = np.ones(1)
    >>> densities(one, np.zeros((1, 1)), np.ones((1, 1, 1)), np.zeros((1, 1))).round(4)
    array([[0.3989]])
    """
    root = np.linalg.cholesky(cov)
    white = np.linalg.solve(root, (x - mean[:, None]).transpose(0, 2, 1))  # (k, d, n)
    size = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1) + 0.5 * x.shape[1] * math.log(
        2 * math.pi
    )
    out: F64 = weight[:, None] * np.exp(-0.5 * np.square(white).sum(1) - size[:, None])
    return out


def _line(ax: Axes, weight: F64, mean: F64, cov: F64, low: float, high: float) -> None:
    x = np.linspace(low, high, GRID[1])
    # the peaks of narrow components lie between the points of a grid
    near = mean + np.sqrt(cov[:, 0]) * np.linspace(-3, 3, 25)
    x = np.unique(np.concatenate([x, near[(near >= low) & (near <= high)]]))
    parts = densities(weight, mean, cov, x[:, None])
    for z, part in enumerate(parts):
        colour = COLOURS[z % len(COLOURS)]
        ax.plot(x, part, color=colour, label=f"component {z}", linewidth=1.2)
        ax.fill_between(x, part, color=colour, alpha=0.15, linewidth=0)
    ax.plot(x, parts.sum(0), color="black", label="total", linewidth=1.5)


def _plane(ax: Axes, weight: F64, mean: F64, cov: F64, low: F64, high: F64) -> None:
    from matplotlib.patches import Ellipse

    pad = 0.05 * (high - low)
    a, b = (np.linspace(s, e, GRID[2]) for s, e in zip(low - pad, high + pad, strict=True))
    grid = np.stack(np.meshgrid(a, b), -1).reshape(-1, 2)
    total = densities(weight, mean, cov, grid).sum(0).reshape(len(b), len(a))
    top = total.max()
    if top > 0:
        ax.contour(a, b, total, levels=top * np.geomspace(1e-3, 0.8, 8), colors="grey",
                   linewidths=0.6, zorder=1)  # fmt: skip
    values, vectors = np.linalg.eigh(cov)
    for z in range(len(weight)):
        angle = float(np.degrees(np.arctan2(vectors[z, 1, 1], vectors[z, 0, 1])))
        for width in (1, 2):
            major, minor = 2 * width * np.sqrt(values[z, ::-1])
            place = (float(mean[z, 0]), float(mean[z, 1]))
            ax.add_patch(
                Ellipse(place, major, minor, angle=angle, fill=False, zorder=3, linewidth=1.5,
                        color=COLOURS[z % len(COLOURS)], label=f"component {z}, {width} sd")
            )  # fmt: skip
