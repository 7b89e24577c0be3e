"""Pictures of attention and positions."""

from __future__ import annotations

import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate.nn import (
    RoPE,
    SinusoidalPositions,
    attention_weights,
    dot_product_attention,
    masks,
)


def weights() -> Figure:
    """Seven items with three features: weights of each query, the causal ones, and the outputs."""
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(2)) * 1.5
    shown = {
        "softmax(QKᵀ/√d)": attention_weights(x, x),
        "causal": attention_weights(x, x, causal=True),
        "output": dot_product_attention(x, x, x),
    }
    fig, axes = figure(3)
    for ax, (title, values) in zip(axes, shown.items()):
        ax.imshow(values, cmap="viridis", aspect="auto" if title == "output" else "equal")
        ax.set(title=title, ylabel="query", xlabel="feature" if title == "output" else "key")
    return fig


def who_sees_whom() -> Figure:
    """The masks: dark where a query may see a key."""
    n = 12
    ids = torch.tensor([[0] * 5 + [1] * 4 + [2] * 3])
    shown = {
        "causal": masks.causal(n),
        "window of 4": masks.sliding_window(n, 4),
        "prefix of 4": masks.prefix(n, 4),
        "three documents": (masks.document(ids) & masks.causal(n))[0, 0],
    }
    fig, axes = figure(4, height=2.4)
    for ax, (title, mask) in zip(axes, shown.items()):
        ax.imshow(mask, cmap="Blues", vmin=0, vmax=1.4)
        ax.set(title=title, xticks=[], yticks=[])
    axes[0].set(xlabel="key", ylabel="query")
    return fig


def positions() -> Figure:
    """Sinusoids, and what a score sees of the distance of two positions."""
    fig, (left, right) = figure(2)
    table = SinusoidalPositions(64).table(64)
    left.imshow(table.T, aspect="auto", cmap="RdBu_r")
    left.set(title="sinusoidal positions", xlabel="position", ylabel="feature")
    q = torch.randn(64, generator=torch.Generator().manual_seed(0))
    turned = RoPE(64)(q.expand(64, 64))
    right.plot(table @ table[0] / 32, color=COLOURS[0], label="sinusoidal, P₀·Pₜ")
    right.plot(turned @ turned[0] / (q @ q), color=COLOURS[1], label="RoPE, one q = k")
    right.legend(frameon=False)
    right.set(title="score by distance", xlabel="distance")
    return fig


PICTURES = {
    "attention-masks": who_sees_whom,
    "attention-positions": positions,
    "attention-weights": weights,
}
