r"""Contrastive divergence approaches the exact gradient; without a contrast everything sinks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.energy.cd import _biases
from groundstate.models.generative.energy.energy_model import EnergyModel


@experiment("GENX-cd-bias", theme="generative", title="CD's bias falls; naive learning collapses")
def cd_bias(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The gradient of CD-k is that of :math:`F(x) - E\,F(x^-)`, :math:`x^- \sim P^k\delta_x`.

    On two by two bits its bias is computed exactly: it falls with every step and is below 1e-4 at
    k = 5. On a ring in the plane, an energy that is only lowered at the data (``naive``) falls
    everywhere, and does not know where the data were; the exact gradient, by a sum over a grid, digs
    a valley: it raises the energy off the data.
    """
    ks = range(1, 9)
    _, bias, slope_bias = _biases(ks)
    key = Key.of(seed)
    rng = key.fold("ring").numpy()
    angle = 2 * np.pi * rng.random(200)
    X = 2 * np.c_[np.cos(angle), np.sin(angle)] + 0.15 * rng.normal(size=(200, 2))
    off = np.r_[rng.normal(size=(100, 2)) * 0.3, 4 * X[:100] / 2]  # the middle and far outside
    settings: dict[str, Any] = {
        "hidden_layer_sizes": (32, 32), "learning_rate_init": 5e-3, "batch_size": 200,
        "random_state": int(key.fold("net").low % 2**31),
    }  # fmt: skip
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the naive rule warns of what is shown here
        models["before"] = EnergyModel(
            method="grid", max_iter=1, **{**settings, "learning_rate_init": 1e-12}
        ).fit(X)
        models["naive"] = EnergyModel(method="naive", max_iter=40, **settings).fit(X)
        models["likelihood"] = EnergyModel(method="grid", max_iter=120, **settings).fit(X)
        # what fell everywhere reaches beyond every box: its log Z is too low, its score too good
        gain = models["likelihood"].score(X) - models["naive"].score(X)
    at = {name: float(m.energy(X).mean()) for name, m in models.items()}
    elsewhere = {name: float(m.energy(off).mean()) for name, m in models.items()}
    claims = [
        Claim.below("2×2, k = 5: bias of the gradient", float(slope_bias[4]), 1e-4),
        Claim.below("2×2: largest ratio of the bias at k + 1 and k",
                    float((slope_bias[1:] / slope_bias[:-1]).max()), 1.0),
        Claim.below("naive: change of the energy at the data", at["naive"] - at["before"], 0.0),
        Claim.below("naive: change of the energy off the data",
                    elsewhere["naive"] - elsewhere["before"], 0.0),
        Claim.above("likelihood: energy off the data less that at the data",
                    elsewhere["likelihood"] - at["likelihood"], 1.0),
        Claim.above("mean log-likelihood, exact less naive", gain, 1.0),
    ]  # fmt: skip
    numbers = {"gradient bias": slope_bias.tolist(), "data": at, "elsewhere": elsewhere}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        axes[0].semilogy(ks, slope_bias.numpy(), "s-", color=COLOURS[1], label="gradient")
        axes[0].semilogy(ks, bias.numpy(), "o-", color=COLOURS[0], label="mean of x⁻")
        axes[0].set(title="2 × 2: bias of CD-k", xlabel="k")
        axes[0].legend()
        side = np.linspace(-4, 4, 60)
        grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
        for ax, (name, model) in zip(axes[1:], models.items()):
            e = model.energy(grid).reshape(60, 60)
            ax.contourf(side, side, e, levels=14, cmap="viridis")
            ax.plot(*X[:80].T, ".", color=COLOURS[1], markersize=2)
            ax.set(title=f"{name}: energy", aspect="equal", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(12.0, 3.2))
