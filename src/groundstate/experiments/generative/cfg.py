r"""Guidance trades diversity for fidelity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_moons

from groundstate.compute.random import Key
from groundstate.evaluate.generators.coverage import precision_recall
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.generative.diffusion.ddpm import DDPM
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTS = (0.0, 1.0, 2.0, 5.0, 10.0)


@experiment(
    "GENX-cfg", theme="generative", title="Guidance trades diversity for fidelity", slow=True
)
def cfg(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two moons that overlap, a conditional diffusion trained with its label dropped at times, and samples
    with :math:`\hat\epsilon = \epsilon_u + w(\epsilon_c - \epsilon_u)`. As w grows the class of a
    sample (that of its nearest training rows) is right more often and classes shrink; at w = 10
    samples leave the data, so that they spread again and their precision falls.
    """
    rng = Key.of(seed).fold("cfg").numpy()
    X, y = make_moons(800, noise=0.25, random_state=int(rng.integers(2**31)))
    model = DDPM(
        50, "cosine", hidden_layer_sizes=(64, 64), batch_size=400, max_iter=200, label_dropout=0.2,
        learning_rate_init=4e-3, clip_denoised=False, random_state=seed,
    ).fit(X, y)  # fmt: skip
    judge = KNeighborsClassifier(25).fit(X, y)
    asked = np.repeat(np.arange(2), 200)
    clouds, right, inside, precision = {}, [], [], []
    for w in WEIGHTS:
        drawn = model.sample(
            y=asked, guidance_scale=w, sampler="ddim", sample_steps=25, random_state=seed
        )
        right.append(float((judge.predict(drawn) == asked).mean()))
        inside.append(float(np.mean([drawn[asked == k].var(0).sum() for k in range(2)])))
        precision.append(float(precision_recall(X, drawn, 5).precision))
        clouds[w] = drawn
    claims = [
        Claim.at_least(
            "lowest step of the share of right classes", float(np.diff(right).min()), -0.02
        ),
        Claim.above("right classes at w=5 less at w=0", right[3] - right[0], 0.3),
        Claim.below("variance within classes at w=2 over that at w=1", inside[2] / inside[1], 0.9),
        Claim.below(
            "highest step of the variance from w=0 to w=2", float(np.diff(inside[:3]).max()), 0.0
        ),
        Claim.below("precision at w=10 less at w=1", precision[-1] - precision[1], -0.05),
    ]

    def draw(figure: Figure) -> None:
        axes: Any = figure.subplots(1, len(WEIGHTS), sharex=True, sharey=True)
        for ax, (w, rows), share in zip(axes, clouds.items(), right, strict=True):
            ax.scatter(*X.T, s=1, color="lightgrey")
            for k in range(2):
                ax.scatter(*rows[asked == k].T, s=2, color=COLOURS[k])
            ax.set(title=f"w = {w:g}\n{share:.0%} right", xticks=[], yticks=[])

    numbers = {"right": right, "variance": inside, "precision": precision, "w": list(WEIGHTS)}
    return Result(claims, numbers, draw)
