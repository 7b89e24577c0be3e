r"""Pictures of predictions and of losses: bands, probability curves, the simplex, landscapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from groundstate.math.optim import Landscape

F64 = NDArray[np.float64]
# pictures for a notebook or a page that has no style of its own
ACCENT, SECOND, MUTED = "#3b6fb6", "#d9822b", "#8a8f98"
GROUPS = (ACCENT, SECOND, "#4c9f70", "#a05195", "#c9a227", "#4db6c4", "#d16ba5", MUTED)


def _figure(columns: int = 1, width: float = 4.6, **kind: Any) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width * columns, 3.4), layout="constrained")
    return fig, [fig.add_subplot(1, columns, i + 1, **kind) for i in range(columns)]


def _array(values: Any) -> F64:
    plain = values.detach().cpu().numpy() if hasattr(values, "detach") else values
    return np.asarray(plain, dtype=np.float64)


def plot_band(
    x: ArrayLike, mean: ArrayLike, std: ArrayLike, y: ArrayLike | None = None, *, width: float = 2.0
) -> Figure:
    r"""A predicted mean with the band :math:`\mu(x) \pm 2\sigma(x)`, and the rows if given.

    Parameters
    ----------
    x : one feature, ``(n,)``
    mean, std : of the distribution at x, ``(n,)``
    y : outcomes ``(n,)``
    width : half width of the band in standard deviations

    Examples
    --------
    >>> x = np.linspace(0, 1, 5)
    >>> len(plot_band(x, x, 0.1 + x, y=x).axes)
    1
    """
    at, mu, sigma = (_array(v).reshape(-1) for v in (x, mean, std))
    order = np.argsort(at)
    fig, (ax,) = _figure()
    low, high = mu - width * sigma, mu + width * sigma
    ax.fill_between(at[order], low[order], high[order], color=ACCENT, alpha=0.2, linewidth=0)
    ax.plot(at[order], mu[order], color=ACCENT)
    if y is not None:
        ax.scatter(at, _array(y).reshape(-1), s=8, color=MUTED, zorder=3)
    ax.set(xlabel="x", ylabel="y", title=f"mean ± {width:g} standard deviations")
    return fig


def plot_probabilities(
    x: ArrayLike, proba: ArrayLike, logits: ArrayLike | None = None, labels: Any = None
) -> Figure:
    """Class probabilities along one feature; with logits also the way from them to probabilities.

    Parameters
    ----------
    x : one feature, ``(n,)``
    proba : ``(n, K)``; of a binary outcome ``(n,)``, the probability of a one
    logits : scores in the shape of ``proba``
    labels : names of the classes

    Examples
    --------
    >>> x = np.linspace(-3, 3, 7)
    >>> len(plot_probabilities(x, 1 / (1 + np.exp(-x)), logits=x).axes)
    2
    """
    at, p = _array(x).reshape(-1), _array(proba)
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    if len(p) != len(at) or not np.allclose(p.sum(1), 1, atol=1e-4):
        raise DataError("proba needs one row per x, and every row must sum to 1")
    order = np.argsort(at)
    fig, axes = _figure(1 if logits is None else 2)
    ax = axes[-1]
    names = range(p.shape[1]) if labels is None else labels
    for k, name in enumerate(names):
        ax.plot(at[order], p[order, k], color=GROUPS[k % len(GROUPS)], label=str(name))
    ax.set(
        xlabel="x", ylabel="probability", ylim=(-0.02, 1.02), title="probabilities of the classes"
    )
    ax.legend(frameon=False)
    if logits is not None:
        s = _array(logits)
        s = np.column_stack([0 * s, s]) if s.ndim == 1 else s
        for k in range(s.shape[1]):
            axes[0].plot(at[order], s[order, k], color=GROUPS[k % len(GROUPS)])
        axes[0].set(xlabel="x", ylabel="logit", title="scores of the classes")
    return fig


def plot_landscape(plane: Landscape, kind: Literal["contour", "surface"] = "contour") -> Figure:
    """A loss over a plane, with its path, minima and saddles; batches as thin contours.

    Parameters
    ----------
    plane : what ``groundstate.optim.landscape`` gives
    kind : "contour" or "surface"

    Examples
    --------
    >>> import torch
    >>> from groundstate import optim
    >>> bowl = optim.landscape(lambda x: (x**2).sum(), torch.zeros(2), directions=(0, 1), n=9)
    >>> len(plot_landscape(bowl, "surface").axes)
    1
    """
    if kind not in ("contour", "surface"):
        raise ValueError(f"kind must be 'contour' or 'surface', got {kind!r}")
    a, b, values = (_array(v) for v in (plane.a, plane.b, plane.values))
    path = _array(plane.path)
    if kind == "surface":
        fig, (solid,) = _figure(projection="3d")
        grid = np.meshgrid(a, b)
        solid.plot_surface(*grid, values, cmap="viridis", alpha=0.8, linewidth=0)
        if len(path):
            solid.plot(*path.T, _array(plane.path_values), color=SECOND, zorder=5)
        solid.set(xlabel="u", ylabel="v", zlabel="loss")
        return fig
    fig, (ax,) = _figure()
    ax.contourf(a, b, values, levels=20, cmap="viridis")
    for k, batch in enumerate(_array(plane.batches)):
        ax.contour(a, b, batch, levels=6, colors=[GROUPS[k % len(GROUPS)]], linewidths=0.6)
    if len(path):
        ax.plot(*path.T, "o-", color=SECOND, markersize=2.5, linewidth=1)
    for points, marker in ((plane.minima, "*"), (plane.saddles, "x")):
        if len(points):
            ax.plot(*_array(points).T, marker, color="white", markersize=8)
    ax.set(xlabel="u", ylabel="v")
    return fig
