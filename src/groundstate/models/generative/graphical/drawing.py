"""A Bayesian network as a picture: columns in layers, arrows between them, a bar for each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from groundstate.math.graphs.dags import topological_order

BAR, KNOWN, EDGE = "#4c72b0", "#dd8452", "#555555"
WIDTH, HEIGHT = 0.82, 0.56  # of a box, in units of the grid


def layout(parents: list[list[int]]) -> dict[int, tuple[float, float]]:
    """Places of the nodes: a layer below the deepest parent, in a layer near the parents."""
    depth: dict[int, int] = {}
    for i in topological_order(parents):
        depth[i] = 1 + max((depth[p] for p in parents[i]), default=-1)
    place: dict[int, tuple[float, float]] = {}
    for level in range(max(depth.values(), default=-1) + 1):
        own = [i for i in depth if depth[i] == level]
        own.sort(key=lambda i: (np.mean([place[p][0] for p in parents[i]] or [i * 1e-3]), i))
        for k, i in enumerate(own):
            place[i] = (k - (len(own) - 1) / 2, -float(level))
    return place


def plot_network(
    model: Any,
    ax: Any = None,
    *,
    evidence: Mapping[Any, Any] | None = None,
    bars: bool = True,
    max_states: int = 6,
) -> Any:
    """Draw a fitted Bayesian network.

    Parameters
    ----------
    model : DiscreteBayesianNetwork or LinearGaussianBayesianNetwork
    ax : matplotlib axes; None makes new ones
    evidence : values by column; bars are probabilities given these, and their boxes are marked
    bars : draw the probabilities of the states inside the boxes
    max_states : boxes of columns with more states show their name alone

    Returns
    -------
    the axes
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(layout="constrained").add_subplot()
    names, parents = model._column_names, model._above
    place = layout(parents)
    given = {model._number(k) for k in evidence or {}}
    for i, above in enumerate(parents):
        for p in above:
            (x0, y0), (x1, y1) = place[p], place[i]
            ax.annotate(
                "",
                (x1, y1 + HEIGHT / 2),
                (x0, y0 - HEIGHT / 2),
                arrowprops={"arrowstyle": "-|>", "color": EDGE, "shrinkA": 0, "shrinkB": 0},
            )
    states = getattr(model, "states_", None)
    for i, (x, y) in place.items():
        colour = KNOWN if i in given else EDGE
        _box(ax, x, y, colour)
        if not bars or states is None or len(states[names[i]]) > max_states:
            ax.text(x, y, str(names[i]), ha="center", va="center")
            continue
        ax.text(x, y + HEIGHT * 0.28, str(names[i]), ha="center", va="center", fontsize=9)
        if i in given:
            assert evidence is not None
            value = {model._number(k): v for k, v in evidence.items()}[i]
            p = np.array([float(s == value) for s in states[names[i]]])
        else:
            p = model.query(names[i], evidence)
        _bars(ax, x, y, p, states[names[i]], KNOWN if i in given else BAR)
    spread = [abs(x) for x, _ in place.values()] or [0.0]
    low = min((y for _, y in place.values()), default=0.0)
    ax.set(xlim=(-max(spread) - 0.6, max(spread) + 0.6), ylim=(low - 0.45, 0.45))
    ax.set_axis_off()
    return ax


def _box(ax: Any, x: float, y: float, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(
        FancyBboxPatch(
            (x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.06", facecolor="white", edgecolor=colour, zorder=2,
        )
    )  # fmt: skip


def _bars(ax: Any, x: float, y: float, p: Any, states: list[Any], colour: str) -> None:
    """Horizontal bars of probabilities with the states' names before them."""
    n = len(states)
    high = HEIGHT * 0.6 / n
    for k, (q, state) in enumerate(zip(p, states, strict=True)):
        at = y + HEIGHT * 0.1 - (k + 0.5) * high
        left = x - WIDTH * 0.2
        ax.barh(at, float(q) * WIDTH * 0.62, height=high * 0.8, left=left, color=colour, zorder=3)
        ax.text(left - 0.02, at, _short(state), ha="right", va="center", fontsize=6, zorder=4)
        ax.text(
            left + WIDTH * 0.65,
            at,
            f"{float(q):.2f}",
            ha="right",
            va="center",
            fontsize=6,
            zorder=4,
        )


def _short(state: Any) -> str:
    if isinstance(state, tuple):
        return f"{state[0]:.2g}…{state[1]:.2g}"
    return str(state)[:8]
