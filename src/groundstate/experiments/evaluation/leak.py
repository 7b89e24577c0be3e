r"""Resampling before splitting and selecting before cross-validation both leak."""

from __future__ import annotations

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.pipeline import make_pipeline

from groundstate.compute.random import Key
from groundstate.evaluate import cross_validate, pipeline_bootstrap
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier


@experiment(
    "EVA-X-leak",
    theme="evaluation",
    title="Resample-then-split and early selection are optimistic",
    slow=True,
)
def leak(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Labels by coin flip: every honest error is ½. Resample n of n rows and then split: a share
    :math:`1 - e^{-\rho}` of the test rows is also among the training rows (0.55 for ρ = 0.8), and
    one nearest neighbour knows those by heart, so its error seems to be :math:`½e^{-.8} = .227`.
    Testing on the rows that were not drawn is honest. Choosing the 20 of 1,000 noise columns that
    go best with all labels, and cross-validating afterwards, finds an accuracy of 0.9; chosen
    inside each fold it is ½.

    One neighbour on 200 rows in 5 dimensions, 20 tables with 20 resamples; 50 rows with 1,000
    columns of noise, 20 tables.
    """
    tables = 8 if quick else 20
    key = Key.of(seed)
    neighbour = KNeighborsClassifier(n_neighbors=1)
    found = []
    for own in key.fold("neighbours").split(tables):
        rng = own.fold("rows").numpy()
        X, y = rng.standard_normal((200, 5)), rng.integers(0, 2, 200)
        split, out = (
            pipeline_bootstrap(neighbour, X, y, 20, how, random_state=own.fold("resample"))
            for how in ("resplit", "oob")
        )
        found.append([split.estimate, out.estimate, split.duplicates])
    resplit, oob, twins = np.mean(found, axis=0).tolist()

    scores = []
    model = LogisticRegression()
    for own in key.fold("columns").split(tables):
        rng = own.numpy()
        X, y = rng.standard_normal((50, 1000)), rng.permutation(np.arange(50) % 2)
        before = SelectKBest(f_classif, k=20).fit_transform(X, y)
        inside = make_pipeline(SelectKBest(f_classif, k=20), model)
        scores.append(
            [
                cross_validate(model, before, y, cv=5, random_state=0).scores.mean,
                cross_validate(inside, X, y, cv=5, random_state=0).scores.mean,
            ]
        )
    outside, within = np.mean(scores, axis=0).tolist()
    claims = [
        Claim.close("resample, then split: error", resplit, 0.227, tol=0.02),
        Claim.close("out of bag: error", oob, 0.50, tol=0.03),
        Claim.close("tested rows that also trained", twins, 0.55, tol=0.01),
        Claim.above("columns chosen before the folds: accuracy", outside, 0.8),
        Claim.close("columns chosen inside the folds: accuracy", within, 0.5, tol=0.08),
    ]
    numbers = {
        "resplit": resplit,
        "oob": oob,
        "duplicates": twins,
        "outside": outside,
        "inside": within,
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.bar(
            ["resample,\nthen split", "out of bag"], [resplit, oob], color=[COLOURS[4], COLOURS[2]]
        )
        left.set(ylabel="error of one neighbour", title="labels by coin flip")
        right.bar(
            ["chosen before", "chosen inside"], [outside, within], color=[COLOURS[4], COLOURS[2]]
        )
        right.set(ylabel="cross-validated accuracy", title="20 of 1,000 columns of noise")
        for ax in (left, right):
            ax.axhline(0.5, color="black", linestyle=":", linewidth=0.9)

    return Result(claims, numbers, draw)
