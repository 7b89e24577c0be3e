"""Pictures of translation: where a decoder looks, and what a search keeps."""

from __future__ import annotations

import torch
from common import figure
from matplotlib.figure import Figure

from groundstate import Seq2Seq

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven")


def alignment() -> Figure:
    """Digits written as words from the last to the first, by both networks."""
    g = torch.Generator().manual_seed(0)
    rows = [torch.randint(8, (int(n),), generator=g).tolist()
            for n in torch.randint(4, 7, (160,), generator=g)]  # fmt: skip
    X = [" ".join(str(d) for d in row) for row in rows]
    y = [" ".join(DIGITS[d] for d in reversed(row)) for row in rows]
    sizes = {
        "rnn": {"dim": 16, "hidden": 48},
        "transformer": {"dim": 32, "heads": 2, "layers": 1, "dropout": 0.0},
    }
    fig, axes = figure(2, height=3.8)
    for ax, (name, small) in zip(axes, sizes.items()):
        model = Seq2Seq(name, small, lr=1e-2, max_epochs=25, val_fraction=0, random_state=0)
        model.fit(X, y).alignment("3 1 4 1 5 2").plot(ax)
        ax.set(title=name, xlabel="source", ylabel="target")
    return fig


PICTURES = {"translation-alignment": alignment}
