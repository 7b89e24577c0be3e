r"""Two views of a row are enough to learn features; texts of pictures are enough to name new classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
FEW = ("red", "green", "blue")


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


class ZeroShot:
    """CLIP on pictures and captions of all combinations but one, asked for every combination by name."""

    def __init__(self, colours: Sequence[str], shuffled: bool, key: Key) -> None:
        self.names = np.array([f"{colour} {shape}" for colour in colours for shape in SHAPES])
        self.held = int(key.fold("held").numpy().integers(len(self.names)))
        X, texts, factors = make_captions(1200, colours=colours, random_state=key.fold("pictures"))
        shown = self._classes(factors) != self.held
        captions = np.array(texts, dtype=object)[shown]
        if shuffled:
            captions = captions[np.argsort(key.fold("order").uniform(len(captions)))]
        self.model = CLIP(
            text_encoder=Words(40, 64, key.fold("words")), template="a {c}", max_epochs=6, lr=3e-3,
            batch_size=64, random_state=key, device="cpu",
        ).fit(X[shown], captions)  # fmt: skip
        fresh, _, factors = make_captions(1200, colours=colours, random_state=key.fold("fresh"))
        true = self._classes(factors)
        right = self.model.predict(fresh, self.names) == self.names[true]
        each = [float(right[true == k].mean()) for k in range(len(self.names))]
        self.not_shown, self.balanced = each[self.held], float(np.mean(each))
        self.pictures = fresh[np.argsort(true, kind="stable")]

    def _classes(self, factors: Any) -> Any:
        return factors[:, 0] * len(SHAPES) + factors[:, 1]


@experiment(
    "GENX-contrastive", theme="generative", title="Views suffice for features, texts for names",
    slow=True,
)  # fmt: skip
def contrastive(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`-\log\frac{e^{\cos(z_i, z_{p(i)})/\tau}}{\sum_{j\ne i}e^{\cos(z_i, z_j)/\tau}}` over two changed
    views of every row. Digits of 8 × 8 without labels; a logistic regression then sees three labels of each
    class, on codes h, on those of a network that learned nothing, and on pixels. Temperatures and batch sizes
    are tried beside.

    Pictures of one shape in one of eight colours with captions such as "a red circle", of which one of the 24
    combinations, drawn anew for each of three fits, is never shown: its name has to be put together from
    words that were seen with others. With the captions in another order there is nothing to learn: each of
    24 names is then right by luck, and three standard errors of the mean over three fits are .071 above 1/24.

    How many combinations are shown decides whether colour and shape come apart. Of three colours, eight
    combinations are told apart without that, and the ninth is most often taken for one of them: the
    accuracy is reported beside.
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

    def named(colours: Sequence[str], shuffled: bool = False) -> list[ZeroShot]:
        return [ZeroShot(colours, shuffled, key.fold("texts", r)) for r in range(fits)]

    shots, mixed, nine = named(tuple(INKS)), named(tuple(INKS), shuffled=True), named(FEW)
    chance = 1 / len(shots[0].names)
    held, seen, of_nine = (
        float(np.mean([getattr(s, name) for s in found]))
        for found, name in ((shots, "not_shown"), (shots, "balanced"), (nine, "not_shown"))
    )
    shuffled = float(np.mean([s.balanced for s in mixed]))
    luck = math.sqrt(chance * (1 - chance) / len(shots[0].names) / fits)
    claims = [
        Claim.at_least("probe of h less that of an untrained network", h - untrained, 0.05),
        Claim.at_least("probe of h less that of pixels", h - raw, 0.0),
        Claim.at_least("accuracy on what was never shown, chance 1/24", held, 3 * chance),
        Claim.below("balanced accuracy with shuffled captions", shuffled, chance + 3 * luck),
    ]
    numbers = {
        "h": float(h), "untrained": untrained, "pixels": float(raw), "sweep": sweep, "not shown": held,
        "all 24": seen, "shuffled": shuffled, "not shown, of three colours": of_nine,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
        plane = PCA(2).fit_transform(np.asarray(runs[0][0].transform(X[test])))
        left.scatter(*plane.T, c=y[test], cmap="tab10", s=5)
        left.set(xticks=[], yticks=[], title="codes of unseen digits")
        bars = {"pixels": raw, "untrained": untrained, "h": h, **sweep}
        middle.barh(list(bars), list(bars.values()), color=COLOURS[0])
        middle.set(title="probe, 3 labels each", xlim=(0.5, 1))
        one = shots[0]
        prompts = [f"a {name}" for name in one.names]
        table = np.asarray(one.model.similarity(one.pictures, prompts, scale=None))
        right.imshow(table, aspect="auto")
        right.set_xticks(range(len(prompts)), list(one.names), rotation=90, fontsize=6)
        right.set(yticks=[], ylabel="pictures", title=f"never shown: {one.names[one.held]}")

    return Result(claims, numbers, draw, size=(11.0, 3.6))
