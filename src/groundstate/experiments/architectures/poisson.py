r"""Poisson's equation, and a picture from its Laplacian."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.models import physics
from groundstate.models.physics.function_regressor import pixels
from groundstate.nn.coordinate.fields import fields, laplacian

SIDE = 32


def picture(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A smooth picture: three soft spots on a slope."""
    spots = ((0.3, 0.35, 0.12, 1.0), (0.7, 0.6, 0.18, -0.8), (0.35, 0.75, 0.1, 0.7))
    total = 0.3 * x
    for a, b, width, height in spots:
        total = total + height * torch.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * width**2))
    return total


def source(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The Laplacian of the picture."""
    with torch.enable_grad():
        points = torch.stack([x, y], 1)
        (u,) = fields(lambda p: picture(p[:, 0], p[:, 1])[:, None], points, "xy")
        return laplacian(u).detach()


@experiment(
    "ARC-x-poisson",
    theme="architectures",
    title="Poisson's equation, and a picture from its Laplacian",
    slow=True,
)
def poisson(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\Delta u = f` with :math:`f = -2\pi^2\sin\pi x\sin\pi y` and zero on the border of the unit
    square is solved by :math:`\sin\pi x\sin\pi y`. A smooth picture is found again from its Laplacian and
    its values on the border, and rendered at twice the resolution: the network is a function, not a grid.
    """
    settings: dict[str, Any] = {
        "optimizer": "lbfgs", "n_collocation": 800, "n_conditions": 120, "resample": False,
        "random_state": seed,
    }  # fmt: skip
    problem = physics.library["poisson2d"]()
    heavy = {"conditions": 100.0}  # u is of size 1, its Laplacian of size 20
    model = physics.PINN(problem, (20, 20, 20), lbfgs_steps=600, weights=heavy, **settings).fit()
    axes, u = model.predict_grid(51)
    exact = np.outer(*(np.sin(np.pi * a) for a in axes))
    error = float(np.linalg.norm(u - exact) / np.linalg.norm(exact))
    lost = physics.Problem(
        physics.Box(x=(0, 1), y=(0, 1)),
        lambda u, x, y: 0.1 * (u.xx + u.yy - source(x, y)),
        [physics.Dirichlet("boundary", picture)],
    )
    again = physics.PINN(lost, (24, 24, 24), lbfgs_steps=800, **settings).fit()
    truth, found = {}, {}
    for side in (SIDE, 2 * SIDE):
        places = pixels(side, side)
        x, y = torch.as_tensor(places).T
        truth[side] = picture(x, y).reshape(side, side).numpy()
        found[side] = np.asarray(again.predict(places)).reshape(side, side)
    likeness = {s: float(np.corrcoef(truth[s].ravel(), found[s].ravel())[0, 1]) for s in truth}
    pooled = found[2 * SIDE].reshape(SIDE, 2, SIDE, 2).mean((1, 3))
    gap = float(np.abs(pooled - found[SIDE]).max())
    claims = [
        Claim.below("relative L2 error of Poisson's equation", error, 5e-3),
        Claim.above("picture from its Laplacian: correlation", likeness[SIDE], 0.99),
        Claim.above("rendered at twice the resolution: correlation", likeness[2 * SIDE], 0.99),
        Claim.below("... and averaged over 2 × 2: off from the first", gap, 0.02),
    ]  # fmt: skip
    numbers = {"error": error, "correlation": list(likeness.values()), "loss": again.loss_}

    def draw(figure: Figure) -> None:
        x, y = torch.as_tensor(pixels(SIDE, SIDE)).T
        panels = {
            "Poisson: u": u, "Poisson: error": np.abs(u - exact),
            "Laplacian f": source(x, y).reshape(SIDE, SIDE).numpy(), "picture": truth[SIDE],
            "found, at 2×": found[2 * SIDE],
        }  # fmt: skip
        for ax, (name, values) in zip(figure.subplots(1, 5), panels.items()):
            ax.imshow(values.T, origin="lower", rasterized=True)
            ax.set(title=name, xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(11.0, 2.6))
