r"""A convolutional network finds a digit wherever it is; a dense one has to learn every place."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.data.builtin.mnist1d import templates
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

SIDE, TRAIN, EPOCHS = 16, 1200, 30
SIZES = (100, 300, TRAIN)
LENGTH = 40  # of a line


def dense() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), built(nn.Linear, SIDE * SIDE, 64), nn.ReLU(), built(nn.Linear, 64, 10)
    )


def convolutional() -> nn.Module:
    return nn.Sequential(
        built(nn.Conv2d, 1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        built(nn.Conv2d, 16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        built(nn.Conv2d, 32, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), built(nn.Linear, 32, 10),
    )  # fmt: skip


NETS = {"dense": dense, "convolutional": convolutional}


def dense_line() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), built(nn.Linear, LENGTH, 48), nn.ReLU(), built(nn.Linear, 48, 10)
    )


def convolutional_line() -> nn.Module:
    return nn.Sequential(
        built(nn.Conv1d, 1, 16, 5, padding=2), nn.ReLU(),
        built(nn.Conv1d, 16, 16, 5, padding=2), nn.ReLU(),
        nn.AdaptiveMaxPool1d(1), nn.Flatten(), built(nn.Linear, 16, 10),
    )  # fmt: skip


LINES = {"dense": dense_line, "convolutional": convolutional_line}


def lines(n: int, key: Key) -> Rows:
    """One of ten strokes anywhere on a line, with noise."""
    rng = key.numpy()
    strokes = templates()
    y = rng.integers(len(strokes), size=n)
    at = rng.integers(LENGTH - strokes.shape[1] + 1, size=n)
    x = 0.05 * rng.standard_normal((n, LENGTH))
    x[np.arange(n)[:, None], at[:, None] + np.arange(strokes.shape[1])] += strokes[y]
    return {"x": torch.from_numpy(x[:, None]).float(), "y": torch.from_numpy(y)}


def placed(rows: Rows, low: int, high: int, key: Key) -> Rows:
    """Digits of 8 × 8 on the canvas, their corners at random from low to high."""
    at = torch.randint(low, high + 1, (len(rows["y"]), 2), generator=key.torch())
    return {"x": on_canvas(rows["x"], SIDE, at), "y": rows["y"]}


def permuted(rows: Rows, order: Tensor) -> Rows:
    x = rows["x"].flatten(1)[:, order]
    return {"x": x.view_as(rows["x"]), "y": rows["y"]}


@experiment("ARC-x-shift", theme="architectures", title="Convolution tolerates shifts", slow=True)
def shift(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Weights that are shared by all places make a map move with its image, :math:`f(tx) = t f(x)`, and a
    mean over places forgets where: with fewer parameters a convolutional network reads digits
    anywhere on a canvas. A dense network has a weight of its own for each pixel; it does not notice
    when pixels are permuted, which takes the convolutional one its advantage.

    Digits of 8 × 8 on 16 × 16 pixels, 1,200 to learn from, 30 epochs of Adam with rate 0.003: 17,098
    weights against 14,378; the same steps with 100 and 300 digits. Lines of 40 numbers with one of ten
    strokes somewhere, 400 to learn from: 2,458 weights against 1,562.
    """
    key = Key.of(seed)
    train, test = digit_images(key.fold("rows"), TRAIN)
    epochs = 10 if quick else EPOCHS
    order = torch.randperm(SIDE * SIDE, generator=key.fold("pixels").torch())
    anywhere = [placed(r, 0, 8, key.fold(n)) for r, n in ((train, "a"), (test, "b"))]
    centred = placed(train, 4, 4, key.fold("c"))
    moved = {d: placed(test, 4 - d, 4 + d, key.fold("d", d)) for d in range(5)}
    augmented = placed(
        {n: torch.cat([v] * 2) for n, v in train.items()}, 2, 6, key.fold("augment")
    )  # every digit at two places
    shifted, mixed, by_shift, helped, weights, by_size = {}, {}, {}, {}, {}, {}
    on_line, line_weights = {}, {}
    known, unknown = lines(400, key.fold("lines")), lines(1000, key.fold("new lines"))
    for name, make in NETS.items():
        own = key.fold(name)

        def learned(rows: Rows, passes: int, make=make, own=own):  # type: ignore[no-untyped-def]
            net = drawn(make(), own)
            return trained(net, rows, 10, passes, own, lr=0.003, batch_size=64)

        weights[name] = sum(p.numel() for p in make().parameters())
        by_size[name] = [
            right(
                learned({k: v[:n] for k, v in anywhere[0].items()}, epochs * TRAIN // n),
                anywhere[1],
            )
            for n in SIZES
        ]
        shifted[name] = by_size[name][-1]
        line = drawn(LINES[name](), own.fold("line"))
        line_weights[name] = sum(p.numel() for p in line.parameters())
        on_line[name] = right(
            trained(line, known, 10, 2 * epochs, own, lr=0.003, batch_size=32), unknown
        )
        mixed[name] = right(
            learned(permuted(anywhere[0], order), epochs), permuted(anywhere[1], order)
        )
        still = learned(centred, epochs)
        by_shift[name] = [right(still, moved[d]) for d in moved]
        helped[name] = right(learned(augmented, epochs // 2), moved[2])

    def gap(row: dict[str, float]) -> float:
        return row["convolutional"] - row["dense"]

    small = {name: row[2] for name, row in by_shift.items()}
    claims = [
        Claim.equal("weights", list(weights.values()), [17_098, 14_378]),
        Claim.at_least("anywhere on the canvas: convolutional less dense", gap(shifted), 0.25),
        Claim.at_least("learned in the middle, moved by up to 2: the same", gap(small), 0.2),
        Claim.at_most("pixels permuted: the same", gap(mixed), 0.1),
        Claim.at_least("300 digits, convolutional, less 1,200, dense",
                       by_size["convolutional"][1] - by_size["dense"][2], 0.0),
        Claim.equal("weights for lines", list(line_weights.values()), [2_458, 1_562]),
        Claim.at_least("strokes anywhere on a line: convolutional less dense", gap(on_line), 0.1),
        Claim.below("learned from moved digits: the same, less that before", gap(helped) - gap(small), 0.0),
    ]  # fmt: skip
    numbers = {
        "anywhere": shifted,
        "permuted": mixed,
        "by shift": by_shift,
        "augmented": helped,
        "by size": by_size,
        "on a line": on_line,
    }

    def draw(figure: Figure) -> None:
        left, middle, other = figure.subplots(1, 3)
        for (name, row), colour in zip(by_size.items(), COLOURS):
            middle.semilogx(SIZES, row, "o-", color=colour, label=name)
        middle.set(xlabel="digits to learn from", ylim=(0, 1), xticks=SIZES,
                   xticklabels=[f"{n:,}" for n in SIZES])  # fmt: skip
        for (name, row), colour in zip(by_shift.items(), COLOURS):
            left.plot(list(moved), row, "o-", color=colour, label=name)
        left.set(xlabel="largest shift of new digits", ylabel="accuracy", ylim=(0, 1))
        left.legend()
        for i, (name, colour) in enumerate(zip(NETS, COLOURS)):
            values = [shifted[name], mixed[name], helped[name], on_line[name]]
            other.bar([v + 0.4 * i for v in range(4)], values, 0.4, color=colour, label=name)
        other.set(xticks=[0.2, 1.2, 2.2, 3.2], ylim=(0, 1),
                  xticklabels=["anywhere", "permuted", "augmented", "line"])  # fmt: skip

    return Result(claims, numbers, draw, size=(11.0, 3.4))
