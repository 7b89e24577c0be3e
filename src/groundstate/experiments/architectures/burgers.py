r"""Burgers' equation from a hundred points of its conditions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models import physics

STEPS, POINTS = 1000, 1000


@experiment(
    "ARC-x-burgers",
    theme="architectures",
    title="A network solves Burgers' equation from 100 points",
    slow=True,
)
def burgers(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The initial wave :math:`-\sin\pi x` and zero at both ends, at 100 points, and
    :math:`u_t + uu_x = \nu u_{xx}` at 1,000 others determine u everywhere; the same network without the
    residual passes the 99 points and is wrong between them. :math:`\nu = 0.1/\pi`, four layers of 20, at
    most 1,000 steps of L-BFGS in float64, against Cole and Hopf's solution.
    """
    problem = physics.library["burgers"](0.1 / math.pi)
    settings: dict[str, Any] = {
        "hidden": (20,) * 4, "optimizer": "lbfgs", "n_collocation": POINTS, "n_conditions": 100,
        "resample": False, "random_state": seed,
    }  # fmt: skip
    model = physics.PINN(problem, lbfgs_steps=STEPS, **settings).fit()
    alone = physics.PINN(problem, lbfgs_steps=100, weights={"equation": 0.0}, **settings).fit()
    axes, u = model.predict_grid((101, 201))
    _, blind = alone.predict_grid((101, 201))
    _, X = problem.domain.grid((101, 201))
    exact = problem.solution(X).reshape(u.shape)

    def off(found: np.ndarray) -> float:
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))

    claims = [
        Claim.below("relative L2 error", off(u), 5e-3),
        Claim.above("without the residual", off(blind), 0.5),
        Claim.below(
            "without the residual: misfit at the conditions", alone.loss_["conditions"], 1e-3
        ),
    ]
    numbers = {"error": off(u), "without": off(blind), "loss": model.loss_, "steps": model.n_iter_}

    def draw(figure: Figure) -> None:
        top, *slices = figure.subplot_mosaic([["u", "u", "u"], ["a", "b", "c"]]).values()
        image = top.pcolormesh(*axes, u.T, cmap="RdBu", shading="nearest", rasterized=True)
        figure.colorbar(image, ax=top)
        from groundstate.compute.random import Key

        for piece in problem.pieces(100, Key.of(seed).fold("conditions")):
            top.plot(*piece.points.T, "kx", ms=3, clip_on=False)
        top.set(xlabel="t", ylabel="x", title="u and the points of its conditions")
        for ax, at in zip(slices, (25, 50, 75)):
            ax.plot(axes[1], exact[at], color="0.7", lw=4, label="exact")
            ax.plot(axes[1], u[at], color=COLOURS[0], label="network")
            ax.plot(axes[1], blind[at], ":", color=COLOURS[1], label="without residual")
            ax.set(title=f"t = {axes[0][at]:.2f}", xlabel="x", ylim=(-1.2, 1.2))
        slices[0].legend()

    return Result(claims, numbers, draw, size=(9.0, 5.5))
