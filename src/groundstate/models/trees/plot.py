"""A tree as a picture: questions in the nodes, counts, impurity, and the way of one row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.models.trees.text import question, view_of
from groundstate.models.trees.view import TreeView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3b6fb6", "#d9822b", "#4c9f70", "#a05195", "#8c6d46", "#5b8a9a")


def plot_tree(
    model: Any,
    *,
    tree: int = 0,
    feature_names: Sequence[str] | None = None,
    sample: Any = None,
    max_depth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one tree of a fitted model.

    Parameters
    ----------
    model : decision tree, forest or histogram booster
    tree : which of its trees
    feature_names : names of the columns
    sample : one row, whose way is drawn bold
    max_depth : stop drawing there
    ax : where to draw; a new figure by default

    Returns
    -------
    the axes
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(8, 5), layout="constrained").add_subplot()
    view = view_of(model, tree)
    place, shown = _layout(view, max_depth)
    passed = set() if sample is None else _way(model, tree, sample)
    for v in shown:
        for child in (int(view.children_left[v]), int(view.children_right[v])):
            if child in place:
                bold = child in passed and v in passed
                a, b = place[v], place[child]
                ax.plot([a[0], b[0]], [a[1], b[1]], color="black", linewidth=2.5 if bold else 0.8,
                        zorder=1)  # fmt: skip
    for v in shown:
        box = {
            "boxstyle": "round", "facecolor": _colour(model, view, v),
            "linewidth": 2.5 if v in passed else 0.6,
        }  # fmt: skip
        ax.text(*place[v], _words(model, view, v, feature_names), ha="center", va="center",
                fontsize=7, bbox=box, zorder=2)  # fmt: skip
    ax.set_xlim(-0.7, max(p[0] for p in place.values()) + 0.7)
    ax.set_ylim(min(p[1] for p in place.values()) - 0.5, 0.5)
    ax.set_axis_off()
    return ax


def _layout(
    view: TreeView, max_depth: int | None
) -> tuple[dict[int, tuple[float, float]], list[int]]:
    """Leaves side by side, parents above the middle of their children."""
    place: dict[int, tuple[float, float]] = {}
    next_leaf = 0

    def put(v: int, depth: int) -> float:
        nonlocal next_leaf
        cut = view.children_left[v] < 0 or (max_depth is not None and depth >= max_depth)
        if cut:
            x = float(next_leaf)
            next_leaf += 1
        else:
            left = put(int(view.children_left[v]), depth + 1)
            x = 0.5 * (left + put(int(view.children_right[v]), depth + 1))
        place[v] = (x, -float(depth))
        return x

    put(0, 0)
    return place, sorted(place)


def _way(model: Any, tree: int, sample: Any) -> set[int]:
    row: NDArray[Any] = np.asarray(sample, dtype=np.float64).reshape(1, -1)
    x, _ = model._rows(row)
    nodes = model.energy_.nodes
    at = int(nodes.apply_rows(x)[0, tree] - nodes.start[tree])
    view = view_of(model, tree)
    parent = {int(c): v for v in range(view.node_count)
              for c in (view.children_left[v], view.children_right[v]) if c >= 0}  # fmt: skip
    way = {at}
    while at in parent:
        at = parent[at]
        way.add(at)
    return way


def _words(model: Any, view: TreeView, v: int, names: Sequence[str] | None) -> str:
    lines = []
    if view.children_left[v] >= 0:
        asked = question(model, view, v, names).replace(" or missing", "")
        lines.append(re.sub(r"-?\d+\.\d{4,}", lambda m: f"{float(m[0]):.4g}", asked))
    n = view.weighted_n_node_samples[v]
    value = view.value[v]
    if hasattr(model, "classes_") and value.shape == (1, len(model.classes_)):
        counts = ", ".join(f"{c:g}" for c in np.round(value[0] * n, 3))
        lines += [f"[{counts}]  impurity {view.impurity[v]:.3g}"]
        lines += [f"{model.classes_[int(value[0].argmax())]}"]
    else:
        lines += [f"{n:g} rows", ", ".join(f"{float(u):.4g}" for u in value.ravel())]
    return "\n".join(lines)


def _colour(model: Any, view: TreeView, v: int) -> Any:
    value = view.value[v]
    if hasattr(model, "classes_") and value.shape == (1, len(model.classes_)):
        from matplotlib.colors import to_rgb

        p = float(value.max())
        least = 1.0 / max(2, value.shape[1])
        strength = 0.15 + 0.6 * max(0.0, p - least) / (1 - least)
        base = np.array(to_rgb(COLOURS[int(value[0].argmax()) % len(COLOURS)]))
        return tuple(1 - strength * (1 - base))
    return "#eef2f7"
