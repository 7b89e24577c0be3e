"""Pictures of embeddings by contrast."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from groundstate import CLIP, MetricEmbedding, SimCLR
from groundstate.data import make_captions

DIGITS, LABELS = load_digits(return_X_y=True)


def _plane(ax: Axes, Z: np.ndarray, y: np.ndarray, title: str) -> None:
    flat = PCA(2).fit_transform(Z)
    ax.scatter(*flat.T, c=y, cmap="tab10", s=6, vmin=0, vmax=9)
    ax.set(title=title, xticks=[], yticks=[])


def sim_clr() -> Figure:
    """Pixels and codes."""
    X, y = DIGITS[:500], LABELS[:500]
    model = SimCLR(hidden_layer_sizes=(64,), max_iter=25, learning_rate_init=3e-3, random_state=0)
    H = model.fit(X).transform(X)
    fig, (left, right) = figure(2)
    _plane(left, X, y, "pixels")
    _plane(right, H / np.linalg.norm(H, axis=1, keepdims=True), y, "codes, learned without labels")
    return fig


def clip() -> Figure:
    """Pictures against captions."""
    X, captions, _ = make_captions(150, random_state=0)
    small = {"dim": 16, "layers": 1, "heads": 2}
    model = CLIP(
        n_components=8, text_params=small, max_epochs=12, lr=5e-3, batch_size=40, random_state=0
    )
    model.fit(X, captions)
    texts = sorted(set(captions))
    shown = X[[captions.index(text) for text in texts]]
    fig, (left, right) = figure(2)
    tiles = np.concatenate(list(shown.transpose(0, 2, 3, 1)))
    left.imshow(
        np.clip(tiles.reshape(3, 3, 16, 16, 3).transpose(0, 2, 1, 3, 4).reshape(48, 48, 3), 0, 1)
    )
    left.set(title="pictures", xticks=[], yticks=[])
    right.imshow(
        model.transform(shown) @ model.encode_text(texts).T, cmap="RdBu_r", vmin=-1, vmax=1
    )
    right.set_yticks(range(9), texts, fontsize=6)
    right.set(title="cosines with the captions", xticks=[])
    return fig


def metric_embedding() -> Figure:
    """Classes that were seen and classes that were not."""
    seen = LABELS < 5
    model = MetricEmbedding(max_iter=8, learning_rate_init=3e-3, random_state=0)
    model.fit(DIGITS[seen], LABELS[seen])
    fig, (left, right) = figure(2)
    _plane(left, model.transform(DIGITS[seen]), LABELS[seen], "classes of fit")
    _plane(right, model.transform(DIGITS[~seen]), LABELS[~seen], "classes never seen")
    return fig


def family_contrastive() -> Figure:
    """Similarities of views, before and after."""
    rng = np.random.default_rng(0)
    middle = rng.normal(size=(12, 8))
    X = np.repeat(middle, 20, 0) + 0.4 * rng.normal(size=(240, 8))
    views = np.concatenate([middle, middle]) + 0.5 * rng.normal(size=(24, 8))
    fig, axes = figure(2)
    for ax, epochs, title in ((axes[0], 1, "before"), (axes[1], 60, "after")):
        rate = 1e-9 if epochs == 1 else 3e-3
        model = SimCLR(n_components=16, max_iter=epochs, learning_rate_init=rate, random_state=0)
        Z = model.fit(X).transform(views, return_projection=True)[1]
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        ax.imshow(Z @ Z.T, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set(title=f"cosines {title}", xticks=[], yticks=[])
    axes[1].plot([12, 23], [0, 11], color=COLOURS[2], linewidth=0.8)
    return fig


PICTURES = {
    "CLIP": clip,
    "SimCLR": sim_clr,
    "MetricEmbedding": metric_embedding,
    "family-contrastive": family_contrastive,
}
