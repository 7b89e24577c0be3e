"""Pictures of texts: what surprises a language model."""

from __future__ import annotations

from functools import cache

import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import LanguageModel
from groundstate.data import make_reviews


@cache
def reviewer() -> LanguageModel:
    """A small language model of reviews."""
    texts, _, _ = make_reviews(300)
    model = LanguageModel("gru", 96, dim=32, layers=1, lr=0.01, max_epochs=12, random_state=0)
    return model.fit(texts)


def surprise() -> Figure:
    """How surprised a language model is by each character of a text."""
    text = "in the end the soup was really fine . the wino was simply green ."
    model = reviewer()
    tokens = torch.tensor([model.tokenizer_.encode(text)])
    with torch.no_grad():
        each = model.energy_.token_energies(tokens)[0]
    fig, (ax,) = figure(1, height=2.6)
    ax.bar(range(len(text)), each, color=COLOURS[0], width=0.9)
    ax.set_xticks(range(len(text)), list(text), fontsize=7)
    ax.set(ylabel="−log p in nats", xlim=(-0.6, len(text) - 0.4))
    return fig


PICTURES = {"text-surprise": surprise}
