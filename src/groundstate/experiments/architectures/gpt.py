r"""A small GPT knows more than pairs of letters, and its facts sit somewhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.data.builtin.texts import make_facts, make_relations
from groundstate.energy import SequenceEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NextToken, fit
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models.text.language_model import LanguageModel
from groundstate.nn import GPT

LAYERS, PEOPLE = 2, 50
PARTS = {"attend": "attention", "feed": "MLP"}


@experiment(
    "ARC-x-gpt", theme="architectures", title="A small GPT beats pairs of letters, and where its facts sit",
    slow=True,
)  # fmt: skip
def gpt(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A model of pairs of letters cannot be better than :math:`H(x_t\mid x_{t-1})`; one that sees all
    letters before, :math:`-\log p(x_t\mid x_{<t})`, can. What such a network remembers is in its
    weights: it is taught who lives where, and then one part of one layer at a time is silenced,
    :math:`h \leftarrow h + 0`.

    Made-up sentences about countries and people, 1,500 to learn from and 300 new ones; letters by a GPT
    of two layers and by a gated recurrent network. The bound is the entropy of pairs of the new
    sentences themselves, which no model of pairs comes below. Then 50 people and their towns, drawn at
    random, word by word.
    """
    key = Key.of(seed)
    texts = make_relations(1800, random_state=key.fold("texts"))
    learned, new = texts[:1500], texts[1500:]
    pairs = _pairs(new)
    nats: dict[str, float] = {"pairs of letters": pairs}
    curves: dict[str, list[float]] = {}
    for name, network in (("GPT", "gpt"), ("GRU", "gru")):
        model = LanguageModel(
            network, context=32, tokenizer="char", dim=48, layers=LAYERS if name == "GPT" else 1,
            heads=4, dropout=0.0, lr=5e-3, batch_size=32, max_epochs=4 if quick else 8,
            val_fraction=0.0, random_state=key.fold(name),
        )  # fmt: skip
        model.fit(learned)
        nats[name] = -model.score(new)
        curves[name] = [float(v) for v in model.history_.extra["loss"]]
    recall = _facts(key.fold("facts"))
    whole = recall["nothing"]
    drops = {name: whole - value for name, value in recall.items() if name != "nothing"}
    claims = [
        Claim.below("GPT: nats per letter over pairs of letters", nats["GPT"] / pairs, 0.8),
        Claim.below("GRU: the same", nats["GRU"] / pairs, 0.8),
        Claim.at_least("facts recalled", whole, 0.95),
        Claim.at_least("largest loss of facts by silencing one part", max(drops.values()), 0.3),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for (name, values), colour in zip(curves.items(), COLOURS):
            left.plot(range(1, len(values) + 1), values, "o-", color=colour, label=name)
        left.axhline(pairs, color="#889", ls=":", label="pairs of letters")
        left.set(title="nats per letter", xlabel="epoch")
        left.legend()
        table = np.array(
            [[recall[f"{part} {i + 1}"] for i in range(LAYERS)] for part in PARTS.values()]
        )
        right.imshow(table, cmap="Blues", vmin=0, vmax=1)
        for (i, j), value in np.ndenumerate(table):
            right.text(j, i, f"{value:.2f}", ha="center", va="center", color="#d9822b")
        right.set(title="facts recalled without", xlabel="layer",
                  xticks=range(LAYERS), yticks=range(2))  # fmt: skip
        right.set_xticklabels([str(i + 1) for i in range(LAYERS)])
        right.set_yticklabels(list(PARTS.values()))

    return Result(claims, {"nats": nats, "recall": recall, "loss": curves}, draw, size=(8.0, 3.2))


def _pairs(texts: list[str]) -> float:
    """The entropy of a letter given the one before, in these texts themselves, ends included."""
    pairs = Counter(pair for text in texts for pair in zip(f"\n{text}", f"{text}\n", strict=True))
    before: Counter[str] = Counter()
    for (a, _), n in pairs.items():
        before[a] += n
    total = sum(pairs.values())
    return float(-sum(n / total * np.log(n / before[a]) for (a, _), n in pairs.items()))


def _facts(key: Key) -> dict[str, float]:
    """Share of the towns that are right, with nothing silenced and without each part."""
    rows = [(prompt + town).split() for prompt, town in make_facts(PEOPLE, random_state=key)]
    words = {word: i for i, word in enumerate(sorted({w for row in rows for w in row}))}
    y = torch.tensor([[words[w] for w in row] for row in rows])
    net = GPT(len(words) + 1, y.shape[1], 64, 4, LAYERS, generator=key.fold("net").torch())
    energy = SequenceEnergy(net, len(words) + 1, y.shape[1], bos=len(words))
    rule = NextToken(float(y.shape[1]))
    solver = Stochastic("adam", 3e-3, None, 250, tol=None)
    fit(energy, {"y": y}, rule, solver, random_state=key.fold("steps"))
    energy.eval()
    found = {"nothing": _right(energy, y)}
    for part, name in PARTS.items():
        for i, block in enumerate(net.stack.blocks):
            hook = getattr(block, part).register_forward_hook(_silent)
            found[f"{name} {i + 1}"] = _right(energy, y)
            hook.remove()
    return found


def _silent(module: Any, given: Any, output: Tensor) -> Tensor:
    return torch.zeros_like(output)


@torch.no_grad()
def _right(energy: SequenceEnergy, y: Tensor) -> float:
    return float((energy.logits(y)[:, -1].argmax(-1) == y[:, -1]).double().mean())
