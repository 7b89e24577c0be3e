r"""A discriminator of translations must see the pair; the distance to the right image makes it right."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from groundstate.compute.random import Key
from groundstate.data.builtin.pictures import make_edge_pairs
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.generative.adversarial.translation_gan import TranslationGAN

GAMES = {
    "D(a, b), L1": {"conditional_d": True, "match": 100.0},
    "D(a, b)": {"conditional_d": True, "match": 0.0},
    "D(b), L1": {"conditional_d": False, "match": 100.0},
    "D(b)": {"conditional_d": False, "match": 0.0},
}


def above(right: Any, wrong: Any) -> float:
    """How often a right pair has a higher score than a wrong one (ties count half)."""
    ranks = rankdata(np.concatenate([right, wrong]))[: len(right)]
    n, m = len(right), len(wrong)
    return float((ranks.sum() - n * (n + 1) / 2) / (n * m))


@experiment(
    "GENX-translate", theme="generative", title="A translation is judged as a pair", slow=True
)
def translate(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\min_G\max_DE\log D(a, b) + E\log(1 - D(a, G(a))) + \lambda E\|b - G(a)\|_1/d`. A discriminator
    that sees b alone takes the right picture of another outline for good, so that nothing ties the
    translation to what it is made from: a wrong pair, the filled shape of another row, has the same score
    as a right one. The L1 term lowers the error of pixels, also where the pair is seen.

    Outlines of 16 × 16 pixels are to be filled; 400 pairs to learn from, 400 to judge.
    """
    key = Key.of(seed)
    a, b, _ = make_edge_pairs(400, random_state=key.fold("train"))
    A, B, _ = make_edge_pairs(400, random_state=key.fold("test"))
    shared: dict[str, Any] = {
        "base": 8, "depth": 2, "d_base": 16, "d_depth": 2, "batch_size": 16, "ema_decay": 0.99,
        "learning_rate_init": 1e-3, "max_iter": 4 if quick else 10, "device": "cpu",
    }  # fmt: skip
    error, sees, painted = {}, {}, {}
    for name, own in GAMES.items():
        model = TranslationGAN(**shared, **own, random_state=key.fold("game")).fit(b, a)  # type: ignore[arg-type]
        painted[name] = model.translate(A)
        error[name] = float(np.abs(painted[name] - B).mean())
        right = model.discriminator_score(B, A)
        wrong = model.discriminator_score(np.roll(B, 1, 0), A)
        sees[name] = above(right, wrong)
    claims = [
        Claim.at_least("D(a, b): right pairs above wrong ones", sees["D(a, b)"], 0.8),
        Claim.close("D(b): right pairs above wrong ones", sees["D(b)"], 0.5, tol=0.01),
        Claim.below("pixel error of D(a, b), with L1 over without",
                    error["D(a, b), L1"] / error["D(a, b)"], 1.0),
        Claim.below("pixel error of D(b), with L1 over without", error["D(b), L1"] / error["D(b)"], 0.5),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        rows = [A[:8], B[:8], *(painted[name][:8] for name in GAMES)]
        wall = np.concatenate([np.concatenate(list(row), 1) for row in rows])
        left.imshow(wall, cmap="gray_r", vmin=0, vmax=1)
        left.set_yticks([16 * i + 8 for i in range(6)], ["a", "b", *GAMES])
        left.set(xticks=[], title="outlines, shapes, translations")
        right.barh(list(GAMES)[::-1], [error[n] for n in list(GAMES)[::-1]], color=COLOURS[0])
        right.set(title="error of pixels")

    return Result(claims, {"pixel error": error, "right above wrong": sees}, draw, size=(10.0, 4.0))
