"""Pictures of translation: where a decoder looks, and what a search keeps."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, Plain, figure
from matplotlib.figure import Figure
from torch import nn

from groundstate import Seq2Seq, SequenceTagger
from groundstate.compute.rows import Ragged
from groundstate.energy import ChainRuleEnergy
from groundstate.infer import decode, draw_tree
from groundstate.nn import Transformer, draw_transformer

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


def tags() -> Figure:
    """A state that stays, seen through noise: each step alone, and as a chain."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, (60, 6)).repeat(8, 1)
    seen = state + rng.normal(scale=0.8, size=state.shape)
    X = [row[:, None] for row in seen]
    y = [[str(s) for s in row] for row in state]
    fig, (left, right) = figure(2, height=2.8)
    left.plot(seen[0], ".", color="#99a")
    left.step(range(state.shape[1]), state[0], where="mid", color="black", lw=1)
    left.set(title="a state and what is seen of it", xlabel="step")
    for crf, label in ((False, "each step alone"), (True, "chain")):
        model = SequenceTagger(
            _Single, crf=crf, lr=5e-2, max_epochs=25, val_fraction=0, random_state=0
        ).fit(X, y)
        p = model.predict_proba(X[:1])[0][:, 1]
        right.plot(p, color=COLOURS[int(crf)], label=f"{label}, {model.score(X, y):.0%} right")
    right.set(title="probability of the upper state", xlabel="step", ylim=(-0.03, 1.25))
    right.legend(frameon=False, ncol=2, loc="upper center")
    return fig


class _Single(nn.Module):
    """Each step for itself."""

    def __init__(self, num_classes: int, in_features: int) -> None:
        super().__init__()
        self.map = nn.Linear(in_features, num_classes)

    def forward(self, x: Ragged) -> Ragged:
        return x.like(self.map(x.values))


def tree() -> Plain:
    """The greedy choice and what a beam of two finds."""
    p = torch.tensor([[0.6 * 0.55, 0.6 * 0.45], [0.4 * 0.95, 0.4 * 0.05]])
    energy = ChainRuleEnergy.from_joint(p)
    return Plain(draw_tree(energy, decode(energy, "beam", beams=2), decode(energy), names="AB"))


def transformer() -> Plain:
    """Encoder and decoder."""
    return Plain(draw_transformer(Transformer(8, 8, 8, 2, 6)))


PICTURES = {
    "transformer": transformer,
    "decode-tree": tree,
    "translation-alignment": alignment,
    "translation-tags": tags,
}
