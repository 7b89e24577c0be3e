"""What the supervised experiments share: clouds, Friedman's function, and planes to draw on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.experiments.base import COLOURS, Axes

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Rng = np.random.Generator


def clouds(rng: Rng, centres: Sequence[Sequence[float]], sd: float, n: int) -> tuple[F64, I64]:
    """n rows around the centres in turn, ``(n, d)`` and classes ``(n,)``."""
    y = np.arange(n, dtype=np.int64) % len(centres)
    mu = np.asarray(centres, dtype=np.float64)
    return mu[y] + sd * rng.standard_normal((n, mu.shape[1])), y


def friedman(rng: Rng, n: int, noise: float = 1.0) -> tuple[F64, F64, F64]:
    r"""Rows, noisy targets and their means,
    :math:`10\sin(\pi x_1x_2) + 20(x_3 - \tfrac12)^2 + 10x_4 + 5x_5` with five idle columns.
    """
    x = rng.random((n, 10))
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    mean = mean + 10 * x[:, 3] + 5 * x[:, 4]
    return x, mean + noise * rng.standard_normal(n), mean


def tree_answers(forest: Any, X: F64) -> F64:
    """What every tree of a forest of regression trees says, ``(trees, rows)``."""
    nodes = forest.energy_.nodes
    leaves = nodes.apply_rows(forest._rows(X)[0])  # (rows, trees)
    answers: F64 = nodes.value.detach().numpy()[leaves.numpy(), 0].T
    return answers


def slope(x: Any, y: Any) -> float:
    """Slope of the least-squares line of log y on log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def is_falling(values: Any, slack: float = 0.0) -> bool:
    """Whether no value is above the one before it, up to ``slack`` relative to it."""
    v = np.asarray(values, dtype=np.float64)
    return bool((v[1:] <= v[:-1] + slack * np.abs(v[:-1])).all())


def plane(X: F64, n: int = 140, margin: float = 0.5) -> tuple[F64, F64, F64]:
    """A grid around rows in the plane: both axes and the points ``(n*n, 2)``."""
    low, high = X.min(0) - margin, X.max(0) + margin
    a, b = np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n)
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    return a, b, grid


def dots(ax: Axes, X: F64, y: Any, size: float = 10.0) -> None:
    """Rows of the plane, coloured by class."""
    for k, label in enumerate(np.unique(y)):
        own = X[np.asarray(y) == label]
        ax.scatter(own[:, 0], own[:, 1], s=size, color=COLOURS[k % len(COLOURS)],
                   edgecolor="white", linewidth=0.3)  # fmt: skip


def regions(
    ax: Axes, X: F64, y: Any, predict: Callable[[F64], Any], *, margin: float = 0.5, n: int = 140
) -> None:
    """Which class wins where, with the rows on top."""
    from matplotlib.colors import ListedColormap

    a, b, grid = plane(X, n, margin)
    labels = np.unique(y)
    won = np.searchsorted(labels, predict(grid)).reshape(len(b), len(a))
    ax.pcolormesh(a, b, won, cmap=ListedColormap(COLOURS[: len(labels)]), vmin=-0.5,
                  vmax=len(labels) - 0.5, alpha=0.25, rasterized=True)  # fmt: skip
    dots(ax, X, y)
    ax.set(xticks=[], yticks=[])


def levels(
    ax: Axes, X: F64, score: Callable[[F64], Any], at: Sequence[float] = (-1.0, 0.0, 1.0)
) -> None:
    """Lines where a score takes the given values; solid at 0."""
    a, b, grid = plane(X)
    f = np.asarray(score(grid)).reshape(len(b), len(a))
    styles = ["solid" if value == 0 else "dashed" for value in at]
    ax.contour(a, b, f, levels=list(at), colors="black", linewidths=0.9, linestyles=styles)
