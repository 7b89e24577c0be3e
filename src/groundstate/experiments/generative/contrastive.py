r"""Two views of a row are enough to learn features; texts of pictures are enough to name new classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.compute.rows import Tokens
from groundstate.data.builtin.pictures import COLOURS as INKS
from groundstate.data.builtin.pictures import make_captions
from groundstate.data.builtin.shapes import SHAPES
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.factors.pca import PCA
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.representations.clip import CLIP
from groundstate.models.representations.sim_clr import SimCLR
from groundstate.nn.text.heads import padded

TAUS, BATCHES = (0.1, 0.5, 2.0), (64, 256)
MAIN = (0.5, 64)
CLASSES = np.array([f"{ink} {shape}" for ink in INKS for shape in SHAPES])
HELD = (0, 4, 8)  # combinations that are not shown, one in each fit


class Words(nn.Module):
    """The sum of the vectors of a text's words, ``(B, k)``."""

    def __init__(self, vocabulary: int, k: int, key: Key) -> None:
        super().__init__()
        start = torch.randn(vocabulary, k, generator=key.torch())
        self.vectors = nn.Embedding(vocabulary, k, _weight=start)

    def forward(self, x: Tokens) -> Tensor:
        numbers, real = padded(x.tokens)
        found: Tensor = (self.vectors(numbers) * real[..., None]).sum(1)
        return found


def probed(model: Any, X: Any, y: Any, test: Any, y_test: Any, rng: np.random.Generator) -> Any:
    """Accuracies of logistic regressions on codes h and on pixels, from three labels of each class:
    means over ten draws of the labelled rows."""
    h = [np.asarray(model.transform(rows)) for rows in (X, test)]
    flat = [rows.reshape(len(rows), -1) / 16 for rows in (X, test)]
    found = []
    for _ in range(10):
        few = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), 3, replace=False) for c in range(10)]
        )
        mean, std = h[0][few].mean(0), h[0][few].std(0).clip(1e-6)
        sides = [((h[0][few] - mean) / std, (h[1] - mean) / std), (flat[0][few], flat[1])]
        found.append([
            LogisticRegression(max_iter=1000).fit(a, y[few]).score(b, y_test) for a, b in sides
        ])  # fmt: skip
    return np.mean(found, 0)


def zero_shot(held: int, shuffled: bool, key: Key) -> tuple[float, float, CLIP, Any]:
    """Accuracy on the combination that was not shown and balanced accuracy, of nine classes."""
    X, texts, factors = make_captions(900, random_state=key.fold("pictures"))
    true = factors[:, 0] * len(SHAPES) + factors[:, 1]
    shown = true != held
    captions = np.array(texts, dtype=object)[shown]
    if shuffled:
        captions = captions[np.argsort(key.fold("order").uniform(len(captions)))]
    model = CLIP(
        n_components=8, text_encoder=Words(40, 8, key.fold("words")), template="a {c}", max_epochs=6,
        lr=3e-3, batch_size=64, random_state=key, device="cpu",
    ).fit(X[shown], captions)  # fmt: skip
    fresh, _, factors = make_captions(900, random_state=key.fold("fresh"))
    true = factors[:, 0] * len(SHAPES) + factors[:, 1]
    right = model.predict(fresh, CLASSES) == CLASSES[true]
    each = [float(right[true == k].mean()) for k in range(len(CLASSES))]
    return each[held], float(np.mean(each)), model, fresh[np.argsort(true, kind="stable")]


@experiment(
    "GENX-contrastive", theme="generative", title="Views suffice for features, texts for names",
    slow=True,
)  # fmt: skip
def contrastive(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`-\log\frac{e^{\cos(z_i, z_{p(i)})/\tau}}{\sum_{j\ne i}e^{\cos(z_i, z_j)/\tau}}` over two changed
    views of every row. Digits of 8 × 8 without labels; a logistic regression then sees three labels of each
    class, on codes h, on those of a network that learned nothing, and on pixels. Temperatures and batch sizes
    are tried beside.

    Pictures of one coloured shape with captions such as "a red circle", of which one of the nine
    combinations is never shown: its name would have to be put together from words that were seen with others.
    With the captions in another order there is nothing to learn. Numbers are means of three fits. That names of
    combinations are found is reported and not claimed: accuracies were .51, .52, .21 and .03 at seeds 0 to 3,
    with a chance of .11.
    """
    from sklearn.datasets import load_digits

    key = Key.of(seed)
    rows, labels = load_digits(return_X_y=True)
    order = np.argsort(key.fold("split").uniform(len(rows)))
    X, y = rows[order].reshape(-1, 8, 8), labels[order]
    train, test = slice(0, 1200), slice(1200, None)

    def learned(r: int, tau: float, batch: int, epochs: int = 10, rate: float = 2e-3) -> Any:
        model = SimCLR(
            temperature=tau, batch_size=batch, max_iter=epochs, learning_rate_init=rate,
            random_state=key.fold("model", r), device="cpu",
        ).fit(X[train])  # fmt: skip
        rng = key.fold("labels", r).numpy()
        return model, probed(model, X[train], y[train], X[test], y[test], rng)

    fits = 1 if quick else 3
    runs = [learned(r, *MAIN) for r in range(fits)]
    blank = [learned(r, *MAIN, 1, 1e-12)[1][0] for r in range(fits)]
    h, raw = np.mean([found for _, found in runs], 0)
    untrained = float(np.mean(blank))
    sweep = {f"τ = {t:g}": float(learned(0, t, MAIN[1])[1][0]) for t in TAUS if t != MAIN[0]}
    sweep |= {f"batch {b}": float(learned(0, MAIN[0], b)[1][0]) for b in BATCHES if b != MAIN[1]}
    shots = [zero_shot(c, False, key.fold("texts", c)) for c in HELD[:fits]]
    mixed = [zero_shot(c, True, key.fold("texts", c)) for c in HELD[:fits]]
    held, seen = (float(np.mean([s[i] for s in shots])) for i in (0, 1))
    chance = float(np.mean([s[1] for s in mixed]))
    claims = [
        Claim.at_least("probe of h less that of an untrained network", h - untrained, 0.05),
        Claim.at_least("probe of h less that of pixels", h - raw, 0.0),
        Claim.between("balanced accuracy with shuffled captions, chance 0.11", chance, 0.04, 0.2),
    ]
    numbers = {
        "h": float(h), "untrained": untrained, "pixels": float(raw), "sweep": sweep,
        "not shown": held, "all nine": seen, "shuffled": chance,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
        plane = PCA(2).fit_transform(np.asarray(runs[0][0].transform(X[test])))
        left.scatter(*plane.T, c=y[test], cmap="tab10", s=5)
        left.set(xticks=[], yticks=[], title="codes of unseen digits")
        bars = {"pixels": raw, "untrained": untrained, "h": h, **sweep}
        middle.barh(list(bars), list(bars.values()), color=COLOURS[0])
        middle.set(title="probe, 3 labels each", xlim=(0.5, 1))
        _, _, model, pictures = shots[0]
        prompts = [f"a {name}" for name in CLASSES]
        right.imshow(np.asarray(model.similarity(pictures, prompts, scale=None)), aspect="auto")
        right.set_xticks(range(len(CLASSES)), list(CLASSES), rotation=90, fontsize=6)
        right.set(yticks=[], ylabel="pictures", title=f"never shown: {CLASSES[HELD[0]]}")

    return Result(claims, numbers, draw, size=(11.0, 3.6))
