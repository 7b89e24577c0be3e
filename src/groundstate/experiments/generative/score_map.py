r"""Scores are bad where data are rare; noise repairs them, and shows the way between modes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import NetEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import DenoisingScoreMatching, Stochastic, denoise, fit
from groundstate.math.diffusion import smoothed_score
from groundstate.models.generative.diffusion.score_model import ScoreModel

WEIGHTS, MEANS, ONES = [0.2, 0.8], [[-5.0, -5.0], [5.0, 5.0]], [1.0, 1.0]
ROWS, SIGMAS = 10_000, (0.1, 3.0)


def exact(x: Tensor, sigma: float) -> Tensor:
    """The score of the data after noise of level σ."""
    w, m, v = (torch.tensor(a, dtype=x.dtype) for a in (WEIGHTS, MEANS, ONES))
    found: Tensor = smoothed_score(x, w, m, v, sigma)
    return found


@experiment(
    "GENX-score-map", theme="generative", title="Noise repairs scores off the data", slow=True
)
def score_map(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Denoising score matching learns :math:`\nabla\log p_\sigma` where rows with noise σ are.

    On :math:`.2\,N((-5,-5), I) + .8\,N((5,5), I)` with σ = .1 the error between and beside the modes
    is at least five times that at the modes; with σ = 3 it is small everywhere. Langevin dynamics from
    a uniform box, :math:`x + \eta s + \sqrt{2\eta}\,\xi`, ends with about half of its chains in the small
    mode even with the exact score, for it never crosses; walking down a ladder of noise from 10 to .1
    finds the share .2.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    part = rng.choice(2, ROWS, p=WEIGHTS)
    X = np.array(MEANS)[part] + rng.normal(size=(ROWS, 2))
    x = torch.from_numpy(X).float()
    axis = torch.linspace(-8, 8, 41)
    points = torch.cartesian_prod(axis, axis)
    near = torch.stack([(points - torch.tensor(m)).norm(dim=1) for m in MEANS]).amin(0) < 2
    errors, maps = {}, {}
    for sigma in SIGMAS:
        net = NetEnergy(
            2, (64, 64), confine=0.0, activation="softplus", generator=key.fold("net").torch()
        )
        solver = Stochastic(
            lr=0.005, batch_size=200, max_epochs=20 if quick else 30, tol=None,
            schedule=lambda done: 1 - done,
        )  # fmt: skip
        fit(net, {"x": x}, DenoisingScoreMatching(sigma), solver, random_state=key)
        gap = (denoise(net, points, 1.0) - points - exact(points, sigma)).norm(dim=1)
        maps[sigma] = gap.reshape(41, 41)
        errors[sigma] = (float(gap[near].mean()), float(gap[~near].mean()))

    noise = key.fold("langevin").torch()
    chains = 16 * torch.rand(2000, 2, generator=noise) - 8
    eta = 0.1
    for _ in range(300):
        xi = torch.randn(chains.shape, generator=noise)
        chains = chains + eta * exact(chains, 0.0) + (2 * eta) ** 0.5 * xi
    plain = float((chains.sum(1) < 0).float().mean())

    spread = float(X.std(0).mean())
    model = ScoreModel(
        sigma_min=0.1 / spread, sigma_max=10 / spread, hidden_layer_sizes=(64, 64), batch_size=200,
        learning_rate_init=5e-3, max_iter=20 if quick else 30, ema_decay=0.999,
        random_state=int(key.fold("ladder").low % 2**31),
    ).fit(X)  # fmt: skip
    drawn = model.sample(2000, random_state=seed)
    annealed = float((drawn.sum(1) < 0).mean())

    (at_low, off_low), (_, off_high) = errors[0.1], errors[3.0]
    claims = [
        Claim.at_least("σ = .1: error off the modes over that at the modes", off_low / at_low, 5.0),
        Claim.below("σ = 3: error off the modes", off_high, 0.3),
        Claim.below(
            "σ = 3: error off the modes as a share of that of σ = .1", off_high / off_low, 0.1
        ),
        Claim.at_least("Langevin, exact score: share in the small mode", plain, 0.4),
        Claim.close("annealed Langevin: share in the small mode", annealed, 0.2, tol=0.07),
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        for ax, sigma in zip(axes[:2], SIGMAS):
            ax.pcolormesh(
                axis.numpy(), axis.numpy(), maps[sigma].T.numpy(), vmin=0, vmax=5, cmap="magma_r",
                rasterized=True,
            )  # fmt: skip
            at = torch.cartesian_prod(*[torch.linspace(-7, 7, 10)] * 2)
            way = exact(at, sigma)
            way = way / way.norm(dim=1, keepdim=True).clamp(min=1e-9).sqrt()
            ax.quiver(*at.T.numpy(), *way.T.numpy(), color=COLOURS[0], width=0.008)
            ax.set_title(f"σ = {sigma:g}: error of the score")
        for ax, rows, name, share in (
            (axes[2], chains.numpy(), "Langevin, exact score", plain),
            (axes[3], drawn, "annealed, learned", annealed),
        ):
            ax.plot(*rows[:600].T, ".", color=COLOURS[1], markersize=2)
            ax.set_title(f"{name}: {share:.2f}")
        for ax in axes:
            ax.set(aspect="equal", xlim=(-8.5, 8.5), ylim=(-8.5, 8.5))

    numbers = {"errors": {str(k): v for k, v in errors.items()}, "shares": [plain, annealed]}
    return Result(claims, numbers, draw, size=(12.0, 3.2))
