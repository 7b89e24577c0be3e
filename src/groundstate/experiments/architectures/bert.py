r"""What a network learns from texts without labels helps where labels are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data.builtin.texts import make_topics
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.text.masked_language_model import MaskedLanguageModel
from groundstate.models.text.text_classifier import TextClassifier

TEXTS, NEW, TOPICS = 4000, 500, 4
LABELS = (20, 50, 150, 500)
STEPS, ROWS = 200, 16  # of fine-tuning
SIZES: dict[str, Any] = {"context": 32, "dim": 32, "layers": 2, "heads": 2, "dropout": 0.0}


@experiment(
    "ARC-x-bert", theme="architectures", title="Pre-training helps where labels are few", slow=True
)
def bert(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A network that fills gaps, :math:`-\log p(x_g\mid\tilde x)`, and says whether a sentence follows
    another must find out which words go together; a label then needs to be learned for a group of
    words, and not for each word: from few rows :math:`p(y\mid x)` is better than from scratch, and
    with many rows as good.

    Texts of two sentences about one of four topics, 30 words each; a small BERT reads 4,000 of them
    without labels. Then sentences with three words of a topic, 20 to 500 of them labelled, are
    classified by the same network from what it knows and from scratch, 200 steps each. Of pairs of
    new sentences half belong together; an exchanged one is of the same topic in one case of four, so
    that nobody can be right more often than :math:`1 - \tfrac12\cdot\tfrac14 = .875`.
    """
    key = Key.of(seed)
    texts, _ = make_topics(TEXTS, random_state=key.fold("texts"))
    model = MaskedLanguageModel(
        True, **SIZES, lr=5e-3, batch_size=128, max_epochs=12, val_fraction=0.0,
        random_state=key.fold("model"),
    ).fit(texts)  # fmt: skip
    right = _pairs(model, key.fold("pairs"))
    test, truth = _labelled(NEW, key.fold("test"))
    labels = (LABELS[0], LABELS[-1]) if quick else LABELS
    accuracy: dict[str, list[float]] = {"pre-trained": [], "from scratch": []}
    for n in labels:
        x, y = _labelled(n, key.fold("labelled", n))
        for name, base in (("pre-trained", model), ("from scratch", None)):
            fitted = TextClassifier(
                base, **SIZES, lr=2e-3, batch_size=ROWS, max_epochs=STEPS * ROWS // n,
                val_fraction=0.0, patience=None, random_state=key.fold("labels"),
            ).fit(x, y)  # fmt: skip
            accuracy[name].append(fitted.score(test, truth))
    gap = np.subtract(accuracy["pre-trained"], accuracy["from scratch"])
    few = {f"{n} labels": g for n, g in zip(labels, gap.tolist(), strict=True) if n <= 50}
    claims = [
        Claim.at_least("pairs of sentences that are told apart", right, 0.6),
        *(Claim.at_least(f"{n}: accuracy gained", g, 0.05) for n, g in few.items()),
        Claim.below("share of the first gain that is left at the last", gap[-1] / gap[0], 0.5),
        Claim.at_least("all labels: pre-trained", accuracy["pre-trained"][-1], 0.9),
    ]

    def draw(figure: Figure) -> None:
        left, right_side = figure.subplots(1, 2)
        for (name, values), colour in zip(accuracy.items(), COLOURS):
            left.semilogx(labels, values, "o-", color=colour, label=name)
        left.axhline(1 / TOPICS, color="#889", ls=":")
        left.set(title="accuracy on new sentences", xlabel="labelled sentences", ylim=(0, 1.02))
        left.legend()
        loss = [float(v) for v in model.history_.extra["loss"]]
        right_side.plot(range(1, len(loss) + 1), loss, "o-", color=COLOURS[2])
        right_side.set(title="loss of gaps and of pairs", xlabel="epoch without labels")

    numbers = {
        "labels": list(labels), "accuracy": accuracy, "pairs": right,
        "score of gaps": model.score(texts[:100]),
    }  # fmt: skip
    return Result(claims, numbers, draw, size=(8.0, 3.2))


def _labelled(n: int, key: Key) -> tuple[list[str], Any]:
    """Sentences with three words of a topic, and their topics."""
    return make_topics(n, sentences=1, length=3, random_state=key)


def _pairs(model: MaskedLanguageModel, key: Key) -> float:
    """Share of pairs of new sentences whose being a pair, or not, is predicted."""
    texts, _ = make_topics(NEW, random_state=key)
    first, second = zip(*(text.split(" . ") for text in texts), strict=True)
    follows = model.follows(first, second) > 0.5
    exchanged = model.follows(first, [*second[1:], second[0]]) > 0.5
    return float((follows.mean() + 1 - exchanged.mean()) / 2)
