r"""The divergence of a map falls, and neighbours are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.manifold import trustworthiness
from groundstate.math.manifold.affinities import joint
from groundstate.math.manifold.descent import EARLY, Schedule, descend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILM = (10, 100, 250, 400, 1000)


@experiment("UNSX-tsne", theme="unsupervised", title="KL falls, neighbours are kept", slow=True)
def tsne(seed: int = 0, *, quick: bool = False) -> Result:
    r"""t-SNE lowers :math:`\mathrm{KL}(P\,\|\,Q)` with momentum and gains, 12 times exaggerated for
    the first 250 steps. From then on the mean of ten steps does not rise, and of the ten neighbours
    in the map of 1,000 digits nearly all are neighbours among the rows; of those in the plane of the
    first two principal components a fifth are not. The seed moves the start.
    """
    digits = load_digits()
    X, y = digits.data[:1000], digits.target[:1000]
    i, j, p, _ = joint(torch.from_numpy(X), 30.0, sparse=False)
    starts = torch.zeros(1001, dtype=torch.int64)
    starts[1:] = torch.bincount(i, minlength=1000).cumsum(0)
    centred = X - X.mean(0)
    plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    noise = Key.of(seed).fold("start").numpy().normal(size=plane.shape)
    start = torch.from_numpy(1e-4 * (plane / plane[:, 0].std() + noise))
    values: list[float] = []
    film: dict[int, Any] = {}

    def watch(step: int, value: float, Y: torch.Tensor) -> None:
        values.append(value)
        if step in FILM:
            film[step] = Y.numpy().copy()

    steps = 500 if quick else 1000
    schedule = Schedule(rate=50.0, max_iter=steps, every=1)
    found = descend(start, starts, j, p, schedule, method="exact", watch=watch)
    curve = np.array(values)
    tens = curve[EARLY:].reshape(-1, 10).mean(1)
    kept, before = (float(trustworthiness(X, Y, 10)) for Y in (found.Y.numpy(), plane))
    claims = [
        Claim.at_most("largest rise of the ten-step mean after exaggeration", float(np.diff(tens).max()), 1e-3),
        Claim.at_most("KL at the end", found.divergence, 0.62),
        Claim.at_least("trustworthiness of the map", kept, 0.99),
        Claim.at_most("of the first two principal components", before, 0.85),
    ]  # fmt: skip
    numbers = {"kl": curve[9::10].tolist(), "trustworthiness": [kept, before]}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(film) + 1)
        for ax, (step, Y) in zip(axes, sorted(film.items()), strict=False):
            ax.scatter(*Y.T, c=y, cmap="tab10", s=2)
            ax.set(title=f"step {step}", xticks=[], yticks=[])
        axes[-1].plot(np.arange(1, len(curve) + 1), curve, color=COLOURS[0])
        axes[-1].axvline(EARLY, color="black", linewidth=0.6, linestyle=":")
        axes[-1].set(title="KL(P‖Q)", xlabel="step")

    return Result(claims, numbers, draw, size=(12.0, 2.6))
