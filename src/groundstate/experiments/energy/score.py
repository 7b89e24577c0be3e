r"""A score that is learned where data are is wrong where they are not, unless noise takes it there."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.energy import DensityEnergy, Energy, Mixture, NetEnergy, mixture
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.learn import DenoisingScoreMatching, Stochastic, denoise, fit
from groundstate.math.distributions.operations import draw

CENTRES, WEIGHTS = (-5.0, 5.0), (0.2, 0.8)
SIGMAS = (0.1, 3.0)
STEPS, BATCH, ROWS = 1500, 200, 10_000


@experiment("ENE-X-score", theme="energy", title="Scores need noise off the data", slow=True)
def score(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Denoising score matching,
    :math:`L = \tfrac12\|\sigma\nabla e(x+\sigma\varepsilon) - \varepsilon\|^2`, on
    :math:`.2\,N((-5,-5), I) + .8\,N((5,5), I)`: the slope of e becomes that of the data smoothed by
    N(0, σ²).

    With σ = .1 rows lie in two small discs, and elsewhere on [−8, 8]² the slope is anything: a
    relative error above .4, and between the clouds nothing tells how much each weighs. With σ = 3
    noisy rows cover the square and the error falls below .15; what is learned is then a blurred
    distribution.
    """
    key = Key.of(seed)
    x = draw(_smoothed(0.0).ability("conditional", "x")(), ROWS, key.fold("rows").torch())[:, 0]  # type: ignore[misc]
    axis = torch.linspace(-8, 8, 41)
    points = torch.cartesian_prod(axis, axis)
    nets, errors, maps = {}, {}, {}
    for sigma in SIGMAS:
        net = NetEnergy(
            2, (64, 64), confine=0.0, activation="softplus", generator=key.fold("net").torch()
        )
        solver = Stochastic(
            lr=0.005, batch_size=BATCH, max_epochs=STEPS * BATCH // ROWS, tol=None,
            schedule=lambda done: 1 - done,
        )  # fmt: skip
        fit(net, {"x": x}, DenoisingScoreMatching(sigma), solver, random_state=key)
        nets[sigma] = net
        true, found = _score(_smoothed(sigma), points), _score(net, points)
        gap = (found - true).square().sum(1)
        maps[sigma] = (gap.sqrt() / true.square().sum(1).mean().sqrt()).reshape(41, 41)
        errors[sigma] = float((gap.mean() / true.square().sum(1).mean()).sqrt())
    near = {sigma: _near(net, x[:2000], sigma) for sigma, net in nets.items()}

    low, high = SIGMAS
    claims = [
        Claim.above("σ = .1: relative error of the score on [−8, 8]²", errors[low], 0.4),
        Claim.below("σ = 3: relative error of the score on [−8, 8]²", errors[high], 0.15),
        Claim.below("σ = .1: error at the data as a share of that on the square",
                    near[low] / errors[low], 0.5),
    ]  # fmt: skip
    numbers = {
        "error on the square": [errors[s] for s in SIGMAS],
        "error at the data": [near[s] for s in SIGMAS],
    }

    def draw_all(figure: Figure) -> None:
        top, bottom = figure.subplots(2, 3, sharex=True, sharey=True)
        for row, sigma in zip((top, bottom), SIGMAS):
            _arrows(row[0], _smoothed(sigma), f"σ = {sigma:g}: true score")
            _arrows(row[1], nets[sigma], f"learned: error {errors[sigma]:.2f}")
            shade = row[2].pcolormesh(
                axis.numpy(), axis.numpy(), maps[sigma].T.numpy(), vmin=0, vmax=1.5, cmap="magma_r",
                rasterized=True,
            )  # fmt: skip
            row[2].set_title("relative error")
            noisy = x[:200] + sigma * torch.randn(200, 2, generator=key.fold("seen").torch())
            for ax in row:
                ax.plot(*noisy.T.numpy(), ".", color=COLOURS[1], markersize=2)
                ax.set(aspect="equal", xlim=(-8, 8), ylim=(-8, 8))
            figure.colorbar(shade, ax=row[2])

    return Result(claims, numbers, draw_all, size=(9.5, 6.0))


def _smoothed(sigma: float) -> Mixture:
    """The energy of the data after noise of level σ, known exactly."""
    scale = torch.full((2,), math.sqrt(1 + sigma**2))
    parts = [DensityEnergy(Normal(torch.full((2,), m), scale)) for m in CENTRES]
    return mixture(parts, WEIGHTS)


def _score(energy: Energy, x: Tensor) -> Tensor:
    """−∇e, from Tweedie's formula with unit noise: denoise(x) = x − ∇e."""
    return denoise(energy, x, 1.0) - x


def _near(net: Energy, x: Tensor, sigma: float) -> float:
    true, found = _score(_smoothed(sigma), x), _score(net, x)
    return float(((found - true).square().sum(1).mean() / true.square().sum(1).mean()).sqrt())


def _arrows(ax: Axes, energy: Energy, title: str) -> None:
    at = torch.cartesian_prod(*[torch.linspace(-7.5, 7.5, 13)] * 2)
    way = _score(energy, at)
    way = way / way.norm(dim=1, keepdim=True).clamp(min=1e-9) * way.norm(dim=1, keepdim=True).sqrt()
    ax.quiver(*at.T.numpy(), *way.T.numpy(), color=COLOURS[0], width=0.006)
    ax.set_title(title)
