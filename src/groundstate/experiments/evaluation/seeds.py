r"""Retraining alone moves the accuracy, and two peaks need a region."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from groundstate.compute.random import Key
from groundstate.evaluate import Scores, retrain
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64, Rng
from groundstate.math.stats import eti, hdr
from groundstate.models.networks.mlp_classifier import MLPClassifier

TRAIN, TEST = 200, 2000


def xor(rng: Rng, n: int) -> tuple[F64, I64]:
    """Clouds of sd 0.15 around (±1, ±1); the class is the exclusive or of the signs."""
    corner = rng.integers(0, 2, (n, 2))
    return 2 * corner - 1 + 0.15 * rng.standard_normal((n, 2)), corner[:, 0] ^ corner[:, 1]


@experiment(
    "EVA-X-seeds",
    theme="evaluation",
    title="Retraining moves accuracy; two peaks need a region",
    slow=True,
)
def seeds(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Same rows, same settings, other initial weights: accuracies are draws of
    :math:`p(\text{score} \mid D, D')`. Two hidden ReLU units that learn exclusive or end at all four
    corners or at three of them, so the draws have two peaks, near 1 and ¾. What they say about
    accuracy on all rows is the mixture :math:`\frac1M\sum_m\mathrm{Beta}(k_m+½, n-k_m+½)`. The
    equal-tailed interval reaches over its empty middle; the region of highest density is a piece at
    each peak, and has none between them. A few starts lose a unit and end near ½: a third, small piece
    where they are more than the region may leave out.

    200 rows, 2,000 test rows, a network 2-2-1 trained by L-BFGS from 60 seeds.
    """
    key = Key.of(seed)
    X, y = xor(key.fold("rows").numpy(), TRAIN + TEST)
    model = MLPClassifier((2,), solver="lbfgs", max_iter=200)
    found = retrain(
        model,
        X,
        y,
        (np.arange(TRAIN), np.arange(TRAIN, TRAIN + TEST)),
        seeds=30 if quick else 60,
        random_state=key.fold("seeds"),
    )
    values = 1 - np.asarray(found.scores.values)
    M = len(values)
    hits = np.round(values * TEST)

    def density(a: F64) -> F64:
        inside = np.clip(a, 1e-9, 1 - 1e-9)
        return np.mean([beta.pdf(inside, k + 0.5, TEST - k + 0.5) for k in hits], axis=0)

    tails = eti(values)
    region = hdr(density, support=(0.0, 1.0))
    three, four = int((np.abs(values - 0.75) < 0.06).sum()), int((values > 0.95).sum())
    wide = tails.high - tails.low
    claims = [
        Claim.at_least("seeds near ¾, share", three / M, 0.2),
        Claim.at_least("seeds near 1, share", four / M, 0.2),
        Claim.at_least("seeds at one of the two peaks, share", (three + four) / M, 0.9),
        Claim.equal("two peaks by BIC", Scores(values, ("seed",)).is_bimodal, True),
        Claim.at_most("equal-tailed interval: low end", tails.low, 0.78),
        Claim.at_least("equal-tailed interval: high end", tails.high, 0.99),
        Claim.equal("the region holds both peaks", all(
            any(low <= peak <= high for low, high in region)
            for peak in (float(np.median(values[np.abs(values - 0.75) < 0.06])), float(tails.high))
        ), True),
        Claim.equal("pieces of the region that reach between .8 and .95",
                    sum(low < 0.95 and high > 0.8 for low, high in region), 0),
        Claim.below("width of the region over the interval's", region.total / wide, 1 / 3),
    ]  # fmt: skip
    numbers = {
        "near ¾": three,
        "near 1": four,
        "interval": [tails.low, tails.high],
        "region": [list(piece) for piece in region],
        "sd over seeds": found.scores.std,
        "sd over that of test rows": found.relative_sd,
    }
    stuck = int(np.abs(values - 0.75).argmin())
    assert found.predictions is not None
    predicted = found.predictions[stuck]

    def draw(figure: Figure) -> None:
        ax, plane = figure.subplots(1, 2)
        ax.hist(values, np.linspace(0.45, 1.01, 57).tolist(), color=COLOURS[0])
        top = ax.get_ylim()[1]
        ax.plot(
            [tails.low, tails.high],
            [1.06 * top] * 2,
            color=COLOURS[5],
            linewidth=3,
            label="equal tails",
        )
        for k, piece in enumerate(region):
            ax.plot(
                piece,
                [1.14 * top] * 2,
                color=COLOURS[1],
                linewidth=3,
                label="region" if k == 0 else None,
            )
        ax.set(xlabel="test accuracy", ylabel="seeds", ylim=(0, 1.4 * top))
        ax.legend(loc="upper left")
        plane.scatter(*X[TRAIN:].T, s=6, c=np.where(predicted == 1, COLOURS[4], COLOURS[0]))
        plane.set(
            title="what a network at three corners says", xticks=[], yticks=[], aspect="equal"
        )

    return Result(claims, numbers, draw)
