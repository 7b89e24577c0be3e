r"""Eight ways to keep a net from learning its noise by heart."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.compute.random import Key
from groundstate.energy import Energy, NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows, cross_entropy, digits
from groundstate.experiments.tools import Watch
from groundstate.learn import NLL, Augmented, Rule, Stochastic, Terms, adamw, fit, learn_population
from groundstate.nn import MLP, Augment, InputNoise, LabelNoise
from groundstate.nn.augment import Shift

ROWS, FLIPPED, EPOCHS, DRAWS, MEMBERS, RATE, BATCH = 200, 0.2, 150, 3, 5, 2e-3, 32


class Smoothed(Rule):
    r""":math:`(1 - \epsilon)e_y + \epsilon\bar e - F`: cross-entropy against
    :math:`(1 - \epsilon)\mathbb 1_y + \epsilon/K`."""

    def __init__(self, smoothing: float) -> None:
        super().__init__()
        self.smoothing = smoothing

    def forward(
        self, energy: Energy, batch: Any, *, generator: torch.Generator | None = None
    ) -> Terms:
        e, eps = energy.table("y", x=batch["x"]), self.smoothing
        loss = functional.cross_entropy(-e, batch["y"], label_smoothing=eps, reduction="none")
        low = (1 - eps) * e.gather(1, batch["y"][:, None])[:, 0] + eps * e.mean(1)
        return Terms(loss, lambda: (low, low - loss))


def make(
    generator: torch.Generator, dropout: float = 0.0, first: nn.Module | None = None
) -> NetClassEnergy:
    """64-256-256-10, with something before the first layer if given."""
    net: nn.Module = MLP(64, (256, 256), 10, dropout=dropout, generator=generator)
    return NetClassEnergy(64, 10, net if first is None else nn.Sequential(first, net))


def stacked(
    rows: Rows, keys: tuple[Key, ...], dropout: float = 0.0, decay: float = 0.0, **more: Any
) -> list[Energy]:
    grid = [{"dropout": dropout, "weight_decay": decay, "seed": key} for key in keys]
    learned = learn_population(make, grid, rows, NLL(), optimizer="adamw", lr=RATE, epochs=EPOCHS,
                               batch_size=BATCH, **more)  # fmt: skip
    return [m.energy for m in learned]


def single(
    rows: Rows, key: Key, rule: Rule, first: nn.Module | None = None, watch: Any = ()
) -> Energy:
    energy = make(key.fold("init").torch(), first=first)
    solver = Stochastic(lambda p, lr: adamw(p, lr, weight_decay=0.0), RATE, BATCH, EPOCHS, tol=None)
    fit(energy, rows, rule, solver, callbacks=watch, random_state=key)
    return energy


class Move(Shift):
    """The digit by up to one pixel in both directions, as a row of 64."""

    def change(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return super().change(x.view(-1, 1, 8, 8), generator).view(-1, 64)


def table(key: Key) -> tuple[Rows, Rows]:
    """200 digits with a fifth of wrong labels to learn from, the others to judge by."""
    train, test = digits(key.fold("rows"), ROWS)
    flip = LabelNoise(FLIPPED, 10, key.fold("labels").torch())
    return {"x": train["x"], "y": flip(train["y"])}, test


def ways(train: Rows, key: Key) -> dict[str, Energy]:
    """One net by each way of learning, from the same start."""
    own = key.split(MEMBERS)[:1]
    held = torch.zeros(ROWS)
    held[key.fold("held").numpy().permutation(ROWS)[: ROWS // 5].copy()] = 1
    return {
        "none": stacked(train, own)[0],
        "dropout": stacked(train, own, dropout=0.5)[0],
        "decay": stacked(train, own, decay=1.0)[0],
        "smoothing": single(train, own[0], Smoothed(0.1)),
        "input noise": single(train, own[0], NLL(), InputNoise(0.3)),
        "shifts": single(train, own[0], Augmented(NLL(), Augment([Move(1)]))),
        "early stop": stacked(train, own, sample_weight=1 - held, validation_weight=held,
                              early_stopping=True)[0],
    }  # fmt: skip


def loss_of_mistakes(energy: Energy, rows: Rows) -> float:
    """Cross-entropy of the rows whose label has not the least energy."""
    with torch.no_grad():
        wrong = energy.eval().table("y", x=rows["x"]).argmin(1) != rows["y"]
    return cross_entropy(energy, {name: v[wrong] for name, v in rows.items()})


@experiment(
    "NEU-X-regularise", theme="neural", title="Regularisers help an overfitting net", slow=True
)
def regularise(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A net with 87,000 weights learns 200 rows by heart, the wrong labels included, and its
    cross-entropy :math:`-\log p(y\mid x)` on new rows grows while it does. Dropout, weight decay, noise
    on inputs, shifted copies, stopping early and averaging nets, :math:`-\log\frac1M\sum_mp_m`, each
    lower it; an average is never worse than its members' mean (Jensen). Label smoothing bounds the
    confidence: mistakes cost about half, right answers more. On all rows that is a gain in most draws,
    and a loss where the plain net had overfitted least, so no claim is made about its sum.

    Digits, 200 rows with 20 % wrong labels, 64-256-256-10, AdamW at 2e-3, 150 epochs, means over 3 draws
    of rows, labels and weights; decay 1, dropout 0.5, smoothing 0.1, noise 0.3, one pixel, a fifth held
    out for stopping, 5 members on the first draw. Quick runs have one draw.
    """
    key = Key.of(seed)
    rows = [table(key.fold("draw", i)) for i in range(1 if quick else DRAWS)]
    made = [ways(train, key.fold("nets", i)) for i, (train, _) in enumerate(rows)]
    tests = [test for _, test in rows]
    each = {name: [cross_entropy(e[name], t) for e, t in zip(made, tests)] for name in made[0]}
    loss = {name: float(np.mean(results)) for name, results in each.items()}
    wrong = {
        name: float(np.mean([loss_of_mistakes(e[name], t) for e, t in zip(made, tests)]))
        for name in ("none", "smoothing")
    }
    (train, test), keys = rows[0], key.fold("nets", 0).split(MEMBERS)
    plain = [made[0]["none"], *stacked(train, keys[1:])]
    members = float(np.mean([cross_entropy(e, test) for e in plain]))
    with torch.no_grad():
        p = torch.stack([torch.softmax(-e.eval().table("y", x=test["x"]), 1) for e in plain]).mean(
            0
        )
    together = float(-p.gather(1, test["y"][:, None]).log().mean())
    each["ensemble"] = [together]
    loss["ensemble"] = loss["none"] * together / each["none"][0]
    curve = Watch(lambda e: [cross_entropy(e, train), cross_entropy(e, test)], every=5)
    single(train, keys[0], NLL(), watch=[curve])
    seen = curve.seen.numpy()
    best = int(seen[:, 1].argmin())
    claims = [
        *[Claim.below(f"{name}: test loss over that of none", v / loss["none"], 1.0)
          for name, v in loss.items() if name not in ("none", "smoothing")],
        Claim.below("smoothing: loss of the rows it gets wrong, over that of none",
                    wrong["smoothing"] / wrong["none"], 1.0),
        Claim.below("ensemble over the mean of its members", together / members, 1.0),
        Claim.above("none: last test loss over the best on the way", float(seen[-1, 1] / seen[best, 1]), 1.0),
    ]  # fmt: skip
    numbers = {"test loss": loss, "by draw": each, "loss of mistakes": wrong,
               "members": members, "best epoch": 5 * best}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.barh(
            list(loss)[::-1],
            list(loss.values())[::-1],
            color=[*[COLOURS[0]] * (len(loss) - 1), COLOURS[5]],
        )
        left.axvline(loss["none"], color=COLOURS[5], linestyle=":", linewidth=1)
        left.set(xlabel="cross-entropy on new digits")
        epochs = 5 * np.arange(len(seen))
        for column, name, colour in ((0, "training", COLOURS[0]), (1, "test", COLOURS[1])):
            right.plot(epochs, seen[:, column], color=colour, label=name)
        right.plot(5 * best, seen[best, 1], "o", color=COLOURS[1], label=f"best: epoch {5 * best}")
        right.set(xlabel="epoch", ylabel="cross-entropy", title="without regularisation")
        right.legend()

    return Result(claims, numbers, draw, size=(9.0, 3.6))
