"""The drawn bipartite graph of a restricted Boltzmann machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from groundstate.energy import BilinearEnergy, RestrictedEnergy


def plot_machine(
    energy: BilinearEnergy | RestrictedEnergy, ax: Any = None, names: Sequence[str] | None = None
) -> Any:
    """Visible units below, hidden bits above; lines as wide as |W|, blue where positive.

    Parameters
    ----------
    energy : the machine
    ax : matplotlib axes, or None for new ones
    names : of the visible units

    Returns
    -------
    the axes
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 3), layout="constrained").add_subplot()
    W = energy.W.detach().cpu().numpy()
    F, l = W.shape
    below, above = (np.linspace(0, 1, n + 2)[1:-1] for n in (F, l))
    top = max(float(np.abs(W).max()), 1e-12)
    for i in range(F):
        for j in range(l):
            strength = abs(W[i, j]) / top
            ax.plot(
                [below[i], above[j]], [0, 1], color="C0" if W[i, j] >= 0 else "C3",
                linewidth=3 * strength, alpha=0.15 + 0.75 * strength, zorder=1,
            )  # fmt: skip
    size = 4000 / max(F, l, 16)
    ax.scatter(below, np.zeros(F), s=size, color="white", edgecolor="black", zorder=2)
    ax.scatter(above, np.ones(l), s=size, color="0.8", edgecolor="black", zorder=2)
    labels = [f"$x_{{{i + 1}}}$" for i in range(F)] if names is None else [str(n) for n in names]
    if max(F, l) <= 16:
        for i, text in enumerate(labels):
            ax.text(below[i], 0, text, ha="center", va="center", fontsize=8, zorder=3)
        for j in range(l):
            ax.text(above[j], 1, f"$z_{{{j + 1}}}$", ha="center", va="center", fontsize=8, zorder=3)
    ax.set(xlim=(0, 1), ylim=(-0.25, 1.25))
    ax.axis("off")
    return ax
