r"""What the losses of a linear classifier look like over its parameters."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs
from groundstate.learn import margin_loss, perceptron_loss, softmin_loss, zero_one
from groundstate.math.optim import landscape

EXTENT = 6.0


def sigmoid_squared(e: Tensor, y: Tensor) -> Tensor:
    """(σ(s) − y)² with s = e₀ − e₁."""
    return (torch.sigmoid(e[:, 0] - e[:, 1]) - y).square().mean()


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "0-1": zero_one,
    "perceptron": perceptron_loss,
    "margin": margin_loss,
    "cross-entropy": softmin_loss,
    "sigmoid + squared": sigmoid_squared,
}


@experiment("NEU-X-surfaces", theme="neural", title="What each loss looks like", slow=True)
def surfaces(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Over the two weights of a classifier with :math:`e(x, y) = -y\,w^\top x`, the share of errors
    :math:`\tfrac1n\sum 1(\hat y_i \ne y_i)` is terraced, with no slope to follow. The perceptron and the
    margin loss are convex and made of planes, the cross-entropy is convex and smooth; a sigmoid under
    the squared error, :math:`(\sigma(s) - y)^2`, is smooth but not convex.

    Two clouds of 40 rows that overlap, w in [−6, 6]². Slopes and second derivatives at 500 random w;
    convexity on 10,000 random pairs, :math:`f(\tfrac{a+b}2) \le \tfrac{f(a)+f(b)}2`;
    2,000 in quick runs.
    """
    key, several = Key.of(seed), 2000 if quick else 10_000
    x, y = blobs(key.fold("data"), ((0.8, 0.5), (-0.8, -0.5)), 0.9, 40)

    def over(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def f(w: Tensor) -> Tensor:
            s = x @ w
            return loss(torch.stack([torch.zeros_like(s), -s], 1), y)

        return f

    g = key.fold("points").torch()
    w = EXTENT * (2 * torch.rand(500, 2, generator=g, dtype=torch.float64) - 1)
    pairs = EXTENT * (2 * torch.rand(2, several, 2, generator=g, dtype=torch.float64) - 1)
    found: dict[str, dict[str, float]] = {}
    for name, loss in LOSSES.items():
        f = over(loss)
        many = torch.func.vmap(f)
        step = 1e-7 * torch.eye(2, dtype=torch.float64)
        slope = torch.stack([(many(w + h) - many(w - h)) / 2e-7 for h in step], 1)
        bend = 0.0
        if name != "0-1":
            bend = float(
                torch.func.vmap(torch.func.jacrev(torch.func.grad(f)))(w)
                .abs()
                .amax((1, 2))
                .median()
            )
        above = many(pairs.mean(0)) - 0.5 * (many(pairs[0]) + many(pairs[1]))
        found[name] = {"slope": float(slope.norm(dim=1).median()), "bend": bend,
                       "above the chord": float(above.max())}  # fmt: skip
    levels = len({round(float(v), 9) for v in torch.func.vmap(over(zero_one))(w)})
    claims = [
        Claim.equal("0-1: slope at a random w", found["0-1"]["slope"], 0.0),
        Claim.between("0-1: number of terraces met", levels, 2, len(y) + 1),
        *[Claim.equal(f"{name}: second derivatives at a random w", found[name]["bend"], 0.0)
          for name in ("perceptron", "margin")],
        *[Claim.above(f"{name}: slope at a random w", found[name]["slope"], 1e-3)
          for name in ("perceptron", "margin", "cross-entropy")],
        *[Claim.at_most(f"{name}: largest rise above a chord", found[name]["above the chord"], 1e-12)
          for name in ("perceptron", "margin", "cross-entropy")],
        Claim.above("cross-entropy: second derivatives at a random w",
                    found["cross-entropy"]["bend"], 1e-4),
        Claim.above("sigmoid + squared: largest rise above a chord",
                    found["sigmoid + squared"]["above the chord"], 1e-2),
    ]  # fmt: skip
    numbers = {**found, "terraces": levels}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 5, subplot_kw={"projection": "3d"})
        for ax, (name, loss) in zip(axes, LOSSES.items()):
            seen = landscape(over(loss), torch.zeros(2, dtype=torch.float64), directions=(0, 1),
                             extent=EXTENT, n=49)  # fmt: skip
            a, b = torch.meshgrid(seen.a, seen.b, indexing="xy")
            ax.plot_surface(a.numpy(), b.numpy(), seen.values.numpy(), cmap="viridis",
                            rcount=49, ccount=49, linewidth=0, antialiased=False, rasterized=True)  # fmt: skip
            ax.set(title=name, xlabel="w₁", ylabel="w₂")

    return Result(claims, numbers, draw, size=(14.0, 3.0))
