"""Shared strokes of the pictures: a figure, colours, a plane of energies."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from groundstate.experiments.base import Result, get
from groundstate.nn import Drawing

COLOURS = ("#3b6fb6", "#d9822b", "#4c9f70", "#a05195")


@cache
def experiment(name: str) -> Result:
    """What an experiment found at seed 0; its picture and its table take one run."""
    return get(name).run(seed=0)


def figure(columns: int = 1, width: float = 8.0, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A transparent figure with a row of axes."""
    fig = Figure(figsize=(width, height), layout="constrained")
    axes = [fig.add_subplot(1, columns, i + 1) for i in range(columns)]
    return fig, axes


def grid(X: np.ndarray, n: int = 160, margin: float = 0.8) -> tuple[Any, Any, np.ndarray]:
    """A plane around two-dimensional rows: both meshes and the points ``(n*n, 2)``."""
    low, high = X.min(0) - margin, X.max(0) + margin
    a, b = np.meshgrid(np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n))
    return a, b, np.column_stack([a.ravel(), b.ravel()])


def scatter(ax: Axes, X: np.ndarray, y: np.ndarray | None = None) -> None:
    """Rows as points, coloured by label."""
    y = np.zeros(len(X), int) if y is None else y
    for k, label in enumerate(np.unique(y)):
        rows = y == label
        ax.scatter(*X[rows].T, s=14, color=COLOURS[k], edgecolor="white", linewidth=0.4)


def regions(ax: Axes, X: np.ndarray, y: np.ndarray, predict: Callable[[np.ndarray], Any]) -> None:
    """Which class wins where, with the rows on top."""
    a, b, points = grid(X)
    won = np.searchsorted(np.unique(y), np.asarray(predict(points))).reshape(a.shape)
    colours = ListedColormap(COLOURS[: int(won.max()) + 1])
    ax.pcolormesh(a, b, won, cmap=colours, alpha=0.25, shading="auto", rasterized=True)
    scatter(ax, X, y)


def bands(ax: Axes, a: Any, b: Any, p: np.ndarray, alpha: float = 0.7) -> None:
    """A probability over the plane in ten bands; cells, as contours draw lines along a jump."""
    middle = (np.clip(np.floor(10 * p), 0, 9) + 0.5) / 10
    ax.pcolormesh(
        a, b, middle, cmap="RdBu_r", vmin=0, vmax=1, alpha=alpha, shading="auto", rasterized=True
    )


def landscape(
    ax: Axes, X: np.ndarray, energy: Callable[[np.ndarray], Any], levels: int = 14
) -> None:
    """Contours of an energy over the plane: dark is low."""
    a, b, points = grid(X)
    values = np.asarray(energy(points)).reshape(a.shape)
    low, top = values.min(), np.quantile(values, 0.95)
    # every level is given: chosen ones may start above the lowest value and leave holes there
    ax.contourf(a, b, np.minimum(values, top), levels=np.linspace(low, top, levels), cmap="viridis")


class Plain:
    """A drawing that saves itself as figures do."""

    def __init__(self, *drawings: Drawing, width: float = 250.0) -> None:
        self.drawings, self.width = drawings, width

    def savefig(self, out: BytesIO, **options: Any) -> None:
        if len(self.drawings) == 1:
            out.write(self.drawings[0].svg.encode())
            return
        inner, n = [], len(self.drawings)
        for i, drawing in enumerate(self.drawings):
            place = (
                f'<svg x="{i * self.width:g}" y="0" width="{self.width:g}" height="{self.width:g}"'
            )
            inner.append(re.sub(r"^<svg", place, drawing.svg))
        box = f"0 0 {n * self.width:g} {self.width:g}"
        out.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{"".join(inner)}</svg>'.encode()
        )
