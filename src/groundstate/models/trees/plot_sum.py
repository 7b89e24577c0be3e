"""A boosted model as a picture: a constant, plus trees, with what one row collects on its way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from groundstate.errors import Unsupported
from groundstate.models.trees.plot import plot_tree


def plot_sum(
    model: Any,
    *,
    trees: int = 3,
    score: int = 0,
    sample: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Any:
    r"""Draw :math:`F(x) = b + v_{\ell_1(x)} + v_{\ell_2(x)} + \dots`, the first trees of a booster.

    Parameters
    ----------
    model : fitted booster of trees
    trees : how many to draw
    score : which score, for several classes
    sample : one row; its way is drawn bold, and the titles say what every tree adds for it
    feature_names : names of the columns

    Returns
    -------
    the figure

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GradientBoostingRegressor
    >>> X, y = np.array([[0.0], [0.1], [5.0]]), np.array([88.0, 76.0, 56.0])
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, y)
    >>> fig = plot_sum(model, sample=X[2])
    >>> [ax.get_title() for ax in fig.axes]
    ['73.33', '− 1.733', '− 1.56', '= 70.04']
    """
    from matplotlib.figure import Figure

    energy = getattr(model, "energy_", None)
    nodes, b = getattr(energy, "nodes", None), getattr(energy, "b", None)
    if nodes is None or b is None:
        raise Unsupported(
            f"{type(model).__name__} is no fitted sum of trees; use a gradient booster, or plot_tree"
        )
    own = [t for t in range(nodes.n_trees) if int(nodes.column[t]) == score][:trees]
    width = 1.2 + 4.0 * len(own)
    fig = Figure(figsize=(width, 4.0), layout="constrained")
    ratios = [0.6, *[4.0] * len(own), 0.6]
    axes = fig.subplots(1, len(own) + 2, width_ratios=ratios)
    total = float(b[score])
    given = getattr(energy, "first", None) is not None  # the start differs from row to row
    if given and sample is not None:
        row, _ = model._rows(np.asarray(sample, dtype=float).reshape(1, -1))
        with torch.no_grad():
            total = float(energy.starts(row)[0, score])  # type: ignore[union-attr]
    axes[0].set_title("F₀" if given and sample is None else f"{total:.4g}")
    for ax, t in zip(axes[1:-1], own):
        plot_tree(model, tree=t, feature_names=feature_names, sample=sample, ax=ax)
        ax.set_title("+")
        if sample is not None:
            row, _ = model._rows(np.asarray(sample, dtype=float).reshape(1, -1))
            with torch.no_grad():
                added = float(nodes.value[nodes.apply_rows(row)[0, t], 0])
            total += added
            ax.set_title(f"{'+' if added >= 0 else '−'} {abs(added):.4g}")
    axes[-1].set_title("…" if sample is None else f"= {total:.4g}")
    for ax in (axes[0], axes[-1]):
        ax.axis("off")
    return fig
