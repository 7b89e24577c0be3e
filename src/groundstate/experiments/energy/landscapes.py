r"""What the losses look like over θ: terraces, planes, and a smooth bowl."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy
from groundstate.errors import Unsupported
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs
from groundstate.learn import (
    Margin,
    ParameterEnergy,
    Perceptron,
    Rule,
    SoftMin,
    Stochastic,
    ZeroOne,
    fit,
    random_search,
    sgd,
    zero_one,
)

RULES: dict[str, Rule] = {"perceptron": Perceptron(), "hinge": Margin(), "cross-entropy": SoftMin()}


@experiment(
    "ENE-X-landscapes", theme="energy", title="0-1 terraces, hinge planes, smooth CE", slow=True
)
def landscapes(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The 0-1 loss is flat almost everywhere, so it can only be searched; its stand-ins can be
    descended.

    Over two parameters (a, b) of :math:`e(x, y) = \mp\tfrac12(a x_1 + b x_2)` the 0-1 loss
    :math:`1(\arg\min_k e_k \ne y)` is a set of terraces: its differences are exactly 0 at almost
    every θ. Perceptron and hinge are piecewise linear, cross-entropy is smooth. Best of 1000 random
    θ gets worse as the number of features grows from 2 to 50; gradient descent does not.
    """
    key = Key.of(seed)
    x, y = blobs(key.fold("plane"), [[1.0, 0.6], [-1.0, -0.6]], 1.0, 100)
    surfaces, axis = _surfaces(x, y)
    flat, jump = _flatness(key.fold("points"), x, y, 100 if quick else 400)
    try:
        ZeroOne()(LinearEnergy(2, 2).double(), {"x": x, "y": y})
        refused = False
    except Unsupported:
        refused = True

    dims = (2, 5, 10, 20, 50)
    repeats = 2 if quick else 4
    searched = torch.zeros(repeats, len(dims))
    descended = torch.zeros(repeats, len(dims))
    for r in range(repeats):
        for i, d in enumerate(dims):
            searched[r, i], descended[r, i] = _race(key.fold("race", r, d), d)
    tries, steps = searched.mean(0), descended.mean(0)

    claims = [
        Claim.equal("share of θ where every 0-1 difference is exactly 0", flat, 1.0),
        Claim.above("share of θ where no cross-entropy difference is 0", jump, 0.99),
        Claim.equal("ZeroOne refuses to train", refused, True),
        Claim.above("best of 1000: smallest growth of the error from one d to the next",
                    float(tries.diff().min()), 0.0),
        Claim.at_least("best of 1000: error at d = 50 less that at d = 2",
                       float(tries[-1] - tries[0]), 0.05),
        Claim.at_most("SGD: error at d = 50 less that at d = 2",
                      float(steps[-1] - steps[0]), 0.01),
        Claim.at_least("d = 50: error of best of 1000 less that of SGD",
                       float(tries[-1] - steps[-1]), 0.05),
    ]  # fmt: skip
    numbers = {
        "flat": flat, "dims": list(dims), "random search": tries.tolist(), "SGD": steps.tolist(),
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 5)
        for ax, (name, surface) in zip(axes, surfaces.items()):
            ax.contourf(axis.numpy(), axis.numpy(), surface.numpy(), levels=14, cmap="viridis")
            ax.set(title=name, xlabel="a", aspect="equal")
        axes[0].set_ylabel("b")
        axes[4].plot(dims, tries.numpy(), marker="o", color=COLOURS[1], label="best of 1000")
        axes[4].plot(dims, steps.numpy(), marker="o", color=COLOURS[0], label="SGD")
        axes[4].set(title="0-1 error", xlabel="features d", ylim=(0, None))
        axes[4].legend()

    return Result(claims, numbers, draw, size=(12.0, 2.7))


def _spread(ab: Tensor) -> Tensor:
    """Two parameters as the four of ``LinearEnergy(2, 2)``: opposite weights of two classes."""
    return 0.5 * torch.cat([ab, -ab], 1)  # (G, 4)


def _errors(x: Tensor, y: Tensor, theta: Tensor) -> Tensor:
    """The 0-1 loss at every θ, ``(G,)``."""
    energy = LinearEnergy(2, 2, bias=False).double()
    out = []
    for row in theta:
        energy.W.data.copy_(row.view(2, 2))
        out.append(zero_one(energy.table("y", x=x), y))
    return torch.stack(out)


def _surfaces(x: Tensor, y: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    axis = torch.linspace(-4, 4, 41, dtype=x.dtype)
    b, a = torch.meshgrid(axis, axis, indexing="ij")
    theta = _spread(torch.stack([a.reshape(-1), b.reshape(-1)], 1))
    surfaces = {"0-1": _errors(x, y, theta).view(a.shape)}
    for name, rule in RULES.items():
        energy = ParameterEnergy(LinearEnergy(2, 2, bias=False).double(), rule, {"x": x, "y": y})
        with torch.no_grad():
            surfaces[name] = energy(theta=theta).view(a.shape) / len(x)
    return surfaces, axis


def _flatness(key: Key, x: Tensor, y: Tensor, n: int) -> tuple[float, float]:
    """Shares of random θ whose 0-1 differences vanish, and whose cross-entropy ones do not."""
    theta = _spread(torch.randn(n, 2, generator=key.torch(), dtype=x.dtype))
    h = 1e-9
    moves = [torch.zeros_like(theta).index_fill(1, torch.tensor([i]), h) for i in range(4)]
    smooth = ParameterEnergy(LinearEnergy(2, 2, bias=False).double(), SoftMin(), {"x": x, "y": y})
    zero = torch.ones(n, dtype=torch.bool)
    moved = torch.ones(n, dtype=torch.bool)
    for move in moves:
        zero &= _errors(x, y, theta + move) == _errors(x, y, theta - move)
        with torch.no_grad():
            moved &= smooth(theta=theta + move) != smooth(theta=theta - move)
    return float(zero.double().mean()), float(moved.double().mean())


def _race(key: Key, d: int) -> tuple[float, float]:
    """0-1 error on new rows of the best of 1000 random θ and of SGD, two classes in d-D."""
    centre = torch.full((d,), 1.8 / d**0.5, dtype=torch.float64)  # distance 3.6 for every d
    centres = [centre.tolist(), (-centre).tolist()]
    x, y = blobs(key.fold("train"), centres, 1.0, 2000)
    new_x, new_y = blobs(key.fold("test"), centres, 1.0, 5000)
    energy = LinearEnergy(d, 2).double()
    random_search(
        energy,
        lambda: zero_one(energy.table("y", x=x), y),
        1000,
        generator=key.fold("search").torch(),
    )
    learned = LinearEnergy(d, 2).double()
    solver = Stochastic(sgd, lr=0.1, batch_size=50, max_epochs=5, tol=None)
    fit(learned, {"x": x, "y": y}, SoftMin(), solver, random_state=key.fold("sgd"))
    with torch.no_grad():
        errors = [float(zero_one(e.table("y", x=new_x), new_y)) for e in (energy, learned)]
    return errors[0], errors[1]
