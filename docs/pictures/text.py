"""Pictures of texts: surprise, attention, order, tags, words."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import (
    BagOfTokensClassifier,
    LanguageModel,
    MaskedLanguageModel,
    TextClassifier,
    TextTagger,
)
from groundstate.compute.rows import Texts
from groundstate.data import make_relations, make_reviews
from groundstate.data.builtin.texts import COUNTRIES, PEOPLE
from groundstate.models.text import WordVectors


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


def order() -> Figure:
    """Accuracy on new texts where "not" turns an opinion around: votes of words, and a reader."""
    texts, y, _ = make_reviews(600, random_state=1)
    turned = [i % 2 == 1 for i in range(len(texts))]
    texts = [t.replace(" was ", " was not ") if n else t for t, n in zip(texts, turned)]
    labels = [o if not n else {"good": "bad", "bad": "good"}[o] for o, n in zip(y, turned)]
    models = {
        "BagOfTokensClassifier": BagOfTokensClassifier(max_iter=100, random_state=0),
        "TextClassifier": TextClassifier(
            network="gru_lm",
            dim=32,
            layers=1,
            dropout=0.0,
            lr=1e-2,
            max_epochs=40,
            patience=None,
            val_fraction=0.0,
            random_state=0,
        ),
    }
    fig, (ax,) = figure(1, width=5.5, height=2.2)
    for i, (name, model) in enumerate(models.items()):
        accuracy = model.fit(texts[:400], labels[:400]).score(texts[400:], labels[400:])
        ax.barh(name, accuracy, color=COLOURS[i])
    ax.axvline(0.5, color="black", linewidth=0.8)
    ax.set(xlim=(0, 1), xlabel="accuracy on 200 new texts")
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


def words() -> Figure:
    """Countries and capitals, men and women, in the plane of their word vectors."""
    model = WordVectors(dim=30, max_epochs=20, random_state=0).fit(make_relations(4000))
    fig, axes = figure(2, height=4.0)
    for ax, pairs in zip(axes, (COUNTRIES, PEOPLE)):
        names = [(a, b[0]) for a, b in pairs.items()]
        x = np.array([[model[a], model[b]] for a, b in names])
        flat = x.reshape(-1, x.shape[-1])
        _, _, v = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
        for ends, both in zip((x - flat.mean(0)) @ v[:2].T, names):
            ax.plot(*ends.T, color="grey", linewidth=0.7)
            for at, word, colour in zip(ends, both, COLOURS):
                ax.scatter(*at, s=10, color=colour)
                ax.annotate(word, at, fontsize=7)
        ax.set(xticks=[], yticks=[])
    return fig


PICTURES = {
    "text-attention": attention,
    "text-order": order,
    "text-surprise": surprise,
    "text-tags": tags,
    "text-words": words,
}
