"""What several experiments need: clouds of points, a callback that watches, a plane to draw on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import Energy
from groundstate.experiments.base import COLOURS, Axes
from groundstate.learn import Callback, Run


def blobs(
    key: Key, centres: Sequence[Sequence[float]], noise: float, n: int
) -> tuple[Tensor, Tensor]:
    r"""Round clouds, :math:`x \mid y \sim N(\mu_y, \text{noise}^2 I)`, the classes in turn.

    Parameters
    ----------
    key : source of randomness
    centres : the means, ``(K, d)``
    noise : standard deviation
    n : rows over all clouds

    Returns
    -------
    x : ``(n, d)`` float64
    y : ``(n,)`` int64

    Examples
    --------
    >>> x, y = blobs(Key.of(0), [[6, 5], [4, 5]], 0.5, 4)
    >>> x.shape, y.tolist()
    (torch.Size([4, 2]), [0, 1, 0, 1])
    """
    mu = torch.tensor(centres, dtype=torch.float64)
    y = torch.arange(n) % len(mu)
    drawn = torch.randn(n, mu.shape[1], generator=key.torch(), dtype=torch.float64)
    return mu[y] + noise * drawn, y


class Watch(Callback):
    """Record something about the energy before the first epoch and after every so many-th.

    Parameters
    ----------
    look : from the energy to a number or a tensor
    every : epochs (or iterations) between two looks

    Attributes
    ----------
    seen : what was recorded, ``(looks, ...)``
    """

    def __init__(self, look: Callable[[Energy], Any], every: int = 1) -> None:
        self.look, self.every = look, every
        self._kept: list[Tensor] = []

    def on_begin(self, run: Run) -> None:
        self._kept = []
        self._take(run)

    def on_epoch(self, run: Run) -> None:
        if run.epoch % self.every == 0:
            self._take(run)

    def _take(self, run: Run) -> None:
        with torch.no_grad():
            self._kept.append(torch.as_tensor(self.look(run.energy)).detach().clone())

    @property
    def seen(self) -> Tensor:
        return torch.stack(self._kept)


def accuracy(energy: Energy, x: Tensor, y: Tensor) -> float:
    """Share of rows whose lowest-energy class is the true one."""
    from groundstate.infer import minimise

    return float((minimise(energy, "y", {"x": x})["y"] == y).double().mean())


def plane(x: Tensor, n: int = 120, margin: float = 0.6) -> tuple[Any, Any, Tensor]:
    """A grid around two-dimensional rows: both axes for drawing and the points ``(n*n, 2)``."""
    low, high = x.min(0).values - margin, x.max(0).values + margin
    a = torch.linspace(float(low[0]), float(high[0]), n, dtype=x.dtype)
    b = torch.linspace(float(low[1]), float(high[1]), n, dtype=x.dtype)
    grid_b, grid_a = torch.meshgrid(b, a, indexing="ij")
    return a.numpy(), b.numpy(), torch.stack([grid_a.reshape(-1), grid_b.reshape(-1)], 1)


def scatter(ax: Axes, x: Tensor, y: Tensor | None = None, rows: int = 400) -> None:
    """The first rows as points, coloured by class."""
    x = x[:rows]
    y = torch.zeros(len(x), dtype=torch.int64) if y is None else y[:rows]
    for k in y.unique().tolist():
        own = x[y == k].numpy()
        colour = COLOURS[k % len(COLOURS)]
        ax.scatter(own[:, 0], own[:, 1], s=9, color=colour, edgecolor="white", linewidth=0.3)


def regions(ax: Axes, energy: Energy, x: Tensor, y: Tensor) -> None:
    """Which class has the lowest energy where, with the rows on top."""
    from matplotlib.colors import ListedColormap

    a, b, points = plane(x)
    with torch.no_grad():
        table = energy.table("y", x=points)
    won = table.argmin(1).reshape(len(b), len(a)).numpy()
    colours = ListedColormap(COLOURS[: table.shape[1]])
    ax.pcolormesh(
        a, b, won, cmap=colours, vmin=-0.5, vmax=table.shape[1] - 0.5, alpha=0.25, rasterized=True
    )
    scatter(ax, x, y)


def landscape(
    ax: Axes, values: Callable[[Tensor], Tensor], x: Tensor, *, margin: float = 0.6
) -> None:
    """Contours of a function of the plane around rows; dark is low."""
    a, b, points = plane(x, margin=margin)
    with torch.no_grad():
        e = values(points).reshape(len(b), len(a))
    top = float(e.quantile(0.97))
    ax.contourf(a, b, e.clamp(max=top).numpy(), levels=16, cmap="viridis")
