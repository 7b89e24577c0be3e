r"""Variables without correlation can say much about each other."""

from __future__ import annotations

import math

import numpy as np
from sklearn.feature_selection import mutual_info_regression

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math import info

N = 2000
RHO = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)


@experiment("MAT-x-mi", theme="mathematics", title="Dependence beyond correlation")
def mi(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Pearson's r sees the part of a dependence that is a straight line. Mutual information
    :math:`I(X;Y) = KL(p_{xy}\|p_xp_y)` sees all of it: for a parabola, a circle and a cosine r is
    near 0 and I is large. For Gaussian pairs the line is all there is, :math:`I = -\tfrac12\log(1-\rho^2)`.

    2,000 points with a little noise; I is estimated from nearest neighbours.
    """
    rng = Key.of(seed).fold("points").numpy()
    x = rng.uniform(-1, 1, N)
    angle = rng.uniform(0, 2 * np.pi, N)
    noise = 0.02 * rng.standard_normal((2, N))
    clouds = {
        "parabola": (x, x**2 + noise[1]),
        "circle": (np.cos(angle) + noise[0], np.sin(angle) + noise[1]),
        "cosine": (x, np.cos(2 * np.pi * x) + noise[1]),
    }
    found = {}
    for k, (name, (u, v)) in enumerate(clouds.items()):
        r = float(np.corrcoef(u, v)[0, 1])
        found[name] = r, float(mutual_info_regression(u[:, None], v, random_state=k)[0])
    curve = []
    gauss = rng.standard_normal((2, N))
    for rho in RHO:
        y = rho * gauss[0] + math.sqrt(1 - rho**2) * gauss[1]
        curve.append(float(mutual_info_regression(gauss[0][:, None], y, random_state=0)[0]))
    exact = [float(info.mi_gaussian(rho)) for rho in RHO]
    away = max(abs(a - b) for a, b in zip(curve, exact, strict=True))
    table = np.array([[1, 0], [0, 1], [1, 0]])  # X = −1, 0, 1 and Y = X²
    three = float(info.mutual_information(table))
    claims = [
        *(Claim.below(f"{name}: |r|", abs(r), 0.08) for name, (r, _) in found.items()),
        *(Claim.above(f"{name}: mutual information", value, 1.0) for name, (_, value) in found.items()),
        Claim.close("three points on a parabola: mutual information", three, 0.636514, tol=1e-6),
        Claim.close("Gaussian at ρ = ½: mutual information", float(info.mi_gaussian(0.5)), 0.143841, tol=1e-6),
        Claim.at_most("Gaussian pairs: estimate less −½log(1 − ρ²), largest", away, 0.12),
    ]  # fmt: skip
    numbers = {"r and I": found, "Gaussian estimate": curve, "Gaussian exact": exact}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        for ax, colour, (name, (u, v)) in zip(axes, COLOURS, clouds.items(), strict=False):
            ax.scatter(u, v, s=1.5, color=colour)
            r, value = found[name]
            ax.set(title=f"{name}: r = {r:.2f}, I = {value:.2f}", xticks=[], yticks=[])
        rho = np.linspace(0, 0.97, 100)
        axes[3].plot(rho, info.mi_gaussian(rho), color=COLOURS[5], label="−½ log(1 − ρ²)")
        axes[3].plot(RHO, curve, "o", color=COLOURS[3], label="from 2,000 points")
        axes[3].set(title="Gaussian pairs: I", xlabel="ρ")
        axes[3].legend()

    return Result(claims, numbers, draw, size=(12.0, 3.1))
