r"""Learned features against hand-made ones and raw pixels, and what the first filters become."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.experiments.architectures.pictures import (
    built,
    digit_images,
    drawn,
    on_canvas,
    right,
    trained,
)
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows
from groundstate.models.svm.linear_svc import LinearSVC
from groundstate.models.vision.hog import HOG

SIDE, SIZES, EPOCHS = 20, (100, 300, 1000), 15


def network() -> nn.Module:
    return nn.Sequential(
        built(nn.Conv2d, 1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        built(nn.Conv2d, 16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        built(nn.Conv2d, 32, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), built(nn.Linear, 32, 10),
    )  # fmt: skip


def shifted(rows: Rows, key: Key) -> Rows:
    """Digits of 12 × 12 pixels anywhere on the canvas."""
    at = torch.randint(0, SIDE - 12 + 1, (len(rows["y"]), 2), generator=key.torch())
    return {"x": on_canvas(rows["x"], SIDE, at), "y": rows["y"]}


def linear_svm(train: np.ndarray, y: Tensor, test: np.ndarray, labels: Tensor) -> float:
    model = LinearSVC(C=1.0, max_iter=3000, random_state=0).fit(train, y.numpy())
    return float(model.score(test, labels.numpy()))


@experiment(
    "ARC-x-features", theme="architectures", title="Learned beat hand-made features", slow=True
)
def features(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Before networks learned their features, people wrote them: histograms of oriented gradients
    count which way edges run in each cell and give a linear classifier some freedom of place that raw
    pixels do not have. A convolutional network finds its own filters,
    :math:`h = \operatorname{relu}(W * x + b)`. The picture shows its first ones:
    after a thousand digits they still have much of the noise that they started from, and no claim is
    made about their form.

    Digits of 12 × 12 pixels anywhere on 20 × 20, learned from 100 to 1,000 of them, judged on the
    others; HOG of 9 orientations in cells of 5 pixels with a linear SVM, the same SVM on pixels, and a
    network of three convolutions.
    """
    key = Key.of(seed)
    train, test = (
        shifted(rows, key.fold(name))
        for rows, name in zip(
            digit_images(key.fold("rows"), SIZES[-1], 12), ("train", "test"), strict=True
        )
    )
    hog = HOG(pixels_per_cell=5, cells_per_block=2)
    tables = {
        "HOG + SVM": [hog.fit_transform(rows["x"].numpy()) for rows in (train, test)],
        "pixels + SVM": [rows["x"].flatten(1).double().numpy() for rows in (train, test)],
    }
    curves: dict[str, list[float]] = {"CNN": [], **{name: [] for name in tables}}
    filters = torch.zeros(0)
    for n in SIZES:
        own = key.fold("net", n)
        some = {name: v[:n] for name, v in train.items()}
        net = drawn(network(), own)
        first: nn.Conv2d = net[0]  # type: ignore[index]
        epochs = max(1, (EPOCHS // (2 if quick else 1)) * SIZES[-1] // (n if n > 300 else 2 * n))
        curves["CNN"].append(
            right(trained(net, some, 10, epochs, own, lr=0.004, batch_size=50), test)
        )
        filters = first.weight.detach()
        for name, (X, new) in tables.items():
            curves[name].append(linear_svm(X[:n], train["y"][:n], new, test["y"]))
    last = {name: curve[-1] for name, curve in curves.items()}
    claims = [
        Claim.above("1,000 digits: CNN less HOG + SVM", last["CNN"] - last["HOG + SVM"], 0.0),
        Claim.above("1,000 digits: HOG + SVM less pixels + SVM",
                    last["HOG + SVM"] - last["pixels + SVM"], 0.0),
        Claim.above("1,000 digits less 100, CNN", curves["CNN"][-1] - curves["CNN"][0], 0.0),
    ]  # fmt: skip
    numbers = {"accuracy": curves, "rows": list(SIZES)}

    def draw(figure: Figure) -> None:
        halves: Any = figure.subfigures(1, 2)
        ax = halves[0].subplots()
        for (name, curve), colour in zip(curves.items(), COLOURS):
            ax.semilogx(SIZES, curve, "o-", color=colour, label=name)
        ax.set(xlabel="digits to learn from", ylabel="accuracy", ylim=(0, 1), xticks=SIZES,
               xticklabels=[f"{n:,}" for n in SIZES])  # fmt: skip
        ax.legend()
        high = float(filters.abs().max())
        for axis, one in zip(halves[1].subplots(4, 4).flat, filters, strict=True):
            axis.imshow(one[0].numpy(), cmap="coolwarm", vmin=-high, vmax=high)
            axis.set(xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(9.0, 3.8))
