r"""A restricted Boltzmann machine learns bars and stripes by four gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data import make_bars_and_stripes
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn.callbacks import Callback, Run
from groundstate.models.generative.energy.bernoulli_rbm import BernoulliRBM

STEPS, HIDDEN, LOOK, RATE = 6000, 12, 200, 0.15
BEST = -math.log(14)
WAYS: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "CD-10": {"method": "cd", "k": 10},
    "PCD": {"method": "pcd"},
    "CD-1": {"method": "cd"},
}


class _Look(Callback):
    """The exact mean log-likelihood along the run."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.seen: list[float] = []

    def on_epoch(self, run: Run) -> bool:
        if run.epoch % LOOK == 0:
            energy = run.problem.energy
            x = run.problem.resident["x"]
            free = energy.over_z(x) - energy.total()  # type: ignore[operator]
            self.seen.append(float(free.mean().detach()))
        return False


@experiment("GENX-rbm-bas", theme="generative", title="CD-1 is usable, PCD near exact", slow=True)
def rbm_bas(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Contrastive divergence replaces the model's phase of :math:`\nabla L = \nabla F(x) -
    E_p\nabla F` by k sweeps from the data, persistent chains by sweeps that never stop.

    On the 14 pictures of 3 × 3 bars and stripes, a machine with 12 hidden bits and 6000 steps: the
    exact gradient, ten sweeps and chains that never stop come near the best mean log-likelihood
    −log 14 = −2.639, one sweep stops short. Copies of the pictures make one sweep of a batch a mean
    over many.
    """
    X = make_bars_and_stripes(3)
    rows = np.repeat(X, 8, axis=0)
    key = Key.of(seed)
    repeats = 1 if quick else 3
    last: dict[str, list[float]] = {name: [] for name in WAYS}
    curves: dict[str, list[float]] = {}
    for r in range(repeats):
        for name, way in WAYS.items():
            look = _Look(X)
            own = X if name == "exact" else rows
            model = BernoulliRBM(
                HIDDEN, learning_rate=RATE, batch_size=len(own), n_iter=STEPS, n_chains=len(rows),
                random_state=int(key.fold("run", r).low % 2**31), callbacks=[look], **way,
            ).fit(own)  # fmt: skip
            last[name].append(model.score(X))
            curves.setdefault(name, look.seen)
            best = model if name == "PCD" and r == 0 else None
            if best is not None:
                drawn = best.sample(40, random_state=0)
    mean = {name: float(np.mean(v)) for name, v in last.items()}
    claims = [
        Claim.close("exact gradient: mean log-likelihood", mean["exact"], -2.80, tol=0.15),
        Claim.above("CD-10 less CD-1", mean["CD-10"] - mean["CD-1"], 0.0),
        Claim.above("PCD less CD-1", mean["PCD"] - mean["CD-1"], 0.0),
        Claim.at_most(
            "what PCD loses against the exact gradient", mean["exact"] - mean["PCD"], 0.15
        ),
        Claim.at_most(
            "what CD-10 loses against the exact gradient", mean["exact"] - mean["CD-10"], 0.15
        ),
        Claim.below("the best, never above −log 14", max(mean.values()), BEST),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        for (name, seen), colour in zip(curves.items(), COLOURS):
            steps = LOOK * np.arange(1, len(seen) + 1)
            left.plot(steps, seen, color=colour, label=f"{name}: {mean[name]:.2f}")
        left.axhline(BEST, color=COLOURS[5], linestyle=":", label="−log 14")
        left.set(title="exact mean log-likelihood", xlabel="step", ylim=(-5, -2.5))
        left.legend()
        sheet = np.full((5 * 4 - 1, 8 * 4 - 1), 0.5)
        for i in range(40):
            a, b = 4 * (i // 8), 4 * (i % 8)
            sheet[a : a + 3, b : b + 3] = drawn[i].reshape(3, 3)
        right.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
        right.set(title="draws after PCD", xticks=[], yticks=[])

    return Result(claims, {"log-likelihood": mean}, draw, size=(9.0, 3.4))
