r"""More features can hurt; a learned metric repairs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.experiments.supervised.scenes import F64, clouds
from groundstate.math.distances.curse import noise_features
from groundstate.models.metrics.neighborhood_components_analysis import (
    NeighborhoodComponentsAnalysis,
)
from groundstate.models.metrics.rca import RCA
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IDLE = (0, 2, 5, 10, 20, 50, 100, 200)
TRAIN = slice(0, 1000)
TEST = slice(1000, None)


@experiment(
    "UNSX-noise-features", theme="unsupervised", title="A learned metric ignores noise", slow=True
)
def idle_features(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Columns of noise drown the two that count in :math:`\|x - x'\|^2`; in
    :math:`\|J(x - x')\|^2` with J learned from labels (neighbourhood components) they hardly count.

    Two clouds, 1,000 rows to learn from and 5,000 to judge (an accuracy of .93 has a standard error of
    .008 on 1,000, which is what is left to the bound), 5 neighbours, 0 to 200 further columns; then
    8 columns of noise five times as wide, with and without a learned metric.
    """
    key = Key.of(seed)
    X, y = clouds(key.fold("rows").numpy(), [[-1.2, -1.2], [1.2, 1.2]], 1.0, 6000)

    def accuracy(rows: F64) -> float:
        model = KNeighborsClassifier(5).fit(rows[TRAIN], y[TRAIN])
        return float(model.score(rows[TEST], y[TEST]))

    curve = [accuracy(noise_features(X, k, random_state=key.fold("idle"))) for k in IDLE]
    wide = noise_features(X, 8, 5.0, random_state=key.fold("wide"))
    plain = accuracy(wide)
    learned = {
        "neighbourhood components": NeighborhoodComponentsAnalysis(max_iter=100),
        "relevant components": RCA(),
    }
    maps = {name: model.fit(wide[TRAIN], y[TRAIN]) for name, model in learned.items()}
    mended = {name: accuracy(model.transform(wide)) for name, model in maps.items()}
    M = maps["neighbourhood components"].get_mahalanobis_matrix()
    share = float(np.diagonal(M)[:2].sum() / np.trace(M))
    claims = [
        Claim.close("accuracy of two columns", curve[0], 0.944, tol=0.02),
        Claim.close("with 50 idle columns", curve[5], 0.887, tol=0.03),
        Claim.close("with 200 idle columns", curve[-1], 0.809, tol=0.035),
        Claim.close("with 8 wide ones", plain, 0.7, tol=0.05),
        Claim.at_least(
            "with 8 wide ones, learned metric", mended["neighbourhood components"], 0.92
        ),
        Claim.at_least(
            "with 8 wide ones, spread within classes", mended["relevant components"], 0.92
        ),
        Claim.at_least("share of the metric on the two columns that count", share, 0.5),
    ]
    numbers = {"idle": list(IDLE), "accuracy": curve, "wide": plain, "learned": mended}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.plot(IDLE, curve, "o-", color=COLOURS[0])
        left.set(title="5 neighbours", xlabel="columns of noise", ylabel="accuracy", ylim=(0.5, 1))
        names = ["8 wide columns", *(name.replace(" ", "\n") for name in mended)]
        middle.bar(names, [plain, *mended.values()], color=COLOURS[:3])
        middle.set(title="accuracy", ylim=(0.5, 1))
        right.imshow(np.abs(M), cmap="viridis")
        right.set(title="|M| learned, columns 1 and 2 count")

    return Result(claims, numbers, draw, size=(11.0, 3.4))
