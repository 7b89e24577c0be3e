"""Pictures of texts: surprise, attention, labels needed, tags."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import LanguageModel, MaskedLanguageModel, TextClassifier, TextTagger
from groundstate.compute.rows import Texts
from groundstate.data import make_reviews


@cache
def reviewer() -> LanguageModel:
    """A small language model of reviews."""
    texts, _, _ = make_reviews(300)
    model = LanguageModel("gru", 96, dim=32, layers=1, lr=0.01, max_epochs=12, random_state=0)
    return model.fit(texts)


@cache
def reader() -> MaskedLanguageModel:
    """A small masked language model of reviews."""
    texts, _, _ = make_reviews(1000)
    model = MaskedLanguageModel(dim=32, layers=1, heads=2, dropout=0.0, lr=5e-3, max_epochs=30,
                                random_state=0)  # fmt: skip
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


def attention() -> Figure:
    """Which tokens the tokens of a review attend to."""
    model = reader()
    rows = model._prepared(
        Texts.of(["in the end the soup was really fine . the wine was so good ."])
    )
    net = model.network_.bert
    block = net.stack.blocks[0]
    ids = rows.tokens.values[None]
    with torch.no_grad():
        x = net.norm(net.place(net.embed(ids)) + net.segment(torch.zeros_like(ids)))
        _, weights = block.attend(x, need_weights=True)
    words = [model.tokenizer_.vocabulary[i] for i in ids[0].tolist()]
    fig, axes = figure(2, height=4.0)
    for head, ax in enumerate(axes):
        ax.imshow(weights[0, head], cmap="viridis")
        ax.set_xticks(range(len(words)), words, rotation=90, fontsize=7)
        ax.set_yticks(range(len(words)), words if head == 0 else [], fontsize=7)
        ax.set(title=f"head {head + 1}", xlabel="key")
    axes[0].set_ylabel("query")
    return fig


def labels_needed() -> Figure:
    """Accuracy by the number of labelled texts, with and without a base."""
    texts, y, _ = make_reviews(400, random_state=1)
    settings = {"max_epochs": 15, "val_fraction": 0.0, "patience": None, "random_state": 0}
    sizes = (20, 40, 80, 160)
    fig, (ax,) = figure(1, width=5.5)
    for name, base, lr, colour in (
        ("from a base", reader(), 2e-3, COLOURS[0]), ("from scratch", None, 2e-3, COLOURS[1]),
    ):  # fmt: skip
        accuracy = [
            TextClassifier(base, dim=32, layers=1, heads=2, dropout=0.0, lr=lr, batch_size=10,
                           **settings).fit(texts[:n], y[:n]).score(texts[200:], y[200:])
            for n in sizes
        ]  # fmt: skip
        ax.plot(sizes, accuracy, marker="o", color=colour, label=name)
    ax.set(xscale="log", xlabel="labelled texts", ylabel="accuracy on new texts")
    ax.set_xticks(sizes, sizes)
    ax.legend(frameon=False)
    return fig


def tagged(text: str) -> list[str]:
    words = text.split()
    after = [*words[1:], ""]
    return [
        "thing" if a == "was" else "opinion" if a == "." and w != "." else "–"
        for w, a in zip(words, after)
    ]


def tags() -> Figure:
    """Probabilities of the tags of a review."""
    texts, _, _ = make_reviews(200)
    model = TextTagger(dim=32, layers=1, heads=2, dropout=0.0, lr=5e-3, max_epochs=8,
                       random_state=0).fit(texts, [tagged(t) for t in texts])  # fmt: skip
    text = make_reviews(1, random_state=5)[0][0]
    with torch.no_grad():
        p = model.network_(model._rows([text])[0]).values.softmax(-1).numpy()
    fig, (ax,) = figure(1, height=1.8)
    ax.imshow(p.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(p)), text.split(), rotation=60, fontsize=8)
    ax.set_yticks(range(len(model.classes_)), np.asarray(model.classes_))
    return fig


PICTURES = {
    "text-attention": attention,
    "text-labels": labels_needed,
    "text-surprise": surprise,
    "text-tags": tags,
}
