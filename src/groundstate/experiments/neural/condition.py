r"""Centring, standardising and whitening of inputs: the condition number sets the speed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.optim.conditioning import hessian_condition, least_squares_hessian
from groundstate.nn import Center, Standardize, Whiten

F64 = NDArray[np.float64]
LAYERS = {"raw": None, "centred": Center, "standardised": Standardize, "whitened": Whiten}


def descend(X: F64, y: F64, goal: float = 1e-6, most: int = 1_000_000) -> F64:
    """Gaps :math:`J - J^*` of descent with the step 1/L, until ``goal`` of the first gap is left."""
    H = least_squares_hessian(X)
    rows = np.column_stack([np.ones(len(X)), X])
    best = np.linalg.solve(H, rows.T @ y / len(X))
    step = 1 / np.linalg.eigvalsh(H)[-1]
    away = -best  # θ − θ*, from θ = 0
    gaps = [0.5 * away @ H @ away]
    while gaps[-1] > goal * gaps[0] and len(gaps) <= most:
        away = away - step * (H @ away)
        gaps.append(0.5 * away @ H @ away)
    return np.array(gaps)


@experiment(
    "NEU-X-condition", theme="neural", title="Conditioning sets the speed of descent", slow=True
)
def condition(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For a linear layer under squared loss the Hessian is
    :math:`\begin{pmatrix}1 & \bar x^\top\\ \bar x & \overline{xx^\top}\end{pmatrix}`, and descent with
    the step 1/L shrinks the slowest direction by :math:`1 - 1/\kappa` per step. An offset couples
    weights and bias, unequal scales and correlation stretch the bowl: each input layer removes one of
    them, and whitened rows arrive in one step.

    500 rows of two correlated inputs around (5, −3); steps until a millionth of the gap is left.
    A run takes about a second; quick ones are the same.
    """
    rng = Key.of(seed).numpy()
    mix = np.array([[1.0, 0.0], [1.3 * 0.994, 1.3 * np.sqrt(1 - 0.994**2)]])
    X = rng.standard_normal((500, 2)) @ mix.T + np.array([5.0, -3.0])
    y = X @ np.array([1.0, -2.0]) + 3 + 0.1 * rng.standard_normal(500)
    kappa, gaps = {}, {}
    for name, layer in LAYERS.items():
        rows = torch.from_numpy(X)
        Z = X if layer is None else layer(2).double().fit(rows)(rows).numpy()
        kappa[name], gaps[name] = hessian_condition(Z), descend(Z, y)
    steps = {name: len(gap) - 1 for name, gap in gaps.items()}
    names = list(LAYERS)
    claims = [
        *[Claim.below(f"κ {b} over κ {a}", kappa[b] / kappa[a], 1) for a, b in pairwise(names)],
        Claim.close("κ whitened", kappa["whitened"], 1.0, tol=1e-9),
        *[Claim.below(f"steps {b} over steps {a}", steps[b] / steps[a], 1) for a, b in pairwise(names)],
        Claim.equal("steps of whitened rows", steps["whitened"], 1),
    ]  # fmt: skip
    numbers = {"condition": kappa, "steps": steps}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for name, colour in zip(names, COLOURS):
            gap = gaps[name]
            shown = np.unique(np.geomspace(1, len(gap), 200).astype(int)) - 1
            ax.loglog(shown + 1, np.maximum(gap[shown] / gap[0], 1e-8), "o-", markersize=2,
                      color=colour, label=f"{name}: κ = {kappa[name]:.0f}")  # fmt: skip
        ax.set(xlabel="steps + 1", ylabel="gap over the first gap", ylim=(3e-9, 2))
        ax.legend()

    return Result(claims, numbers, draw, size=(6.0, 3.6))
