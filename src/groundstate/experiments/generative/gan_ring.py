r"""A game of two players ends at D = ½; the saturating loss has no gradient while D is ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.data.builtin.densities import make_eight_gaussians
from groundstate.energy import AdversarialEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import Game, learn
from groundstate.learn.losses.gan import gan, value
from groundstate.models.generative.adversarial.gan import GAN
from groundstate.models.generative.adversarial.wgan import WGAN
from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator

CENTRES = 2 * np.exp(2j * np.pi * np.arange(8) / 8)
MAIN = "non-saturating, R1"
BESIDE: dict[str, dict[str, Any]] = {"non-saturating": {}, "minimax": {"loss": "minimax"}}


def modes(rows: Any) -> tuple[int, float]:
    """Gaussians of the ring that have at least a fortieth of the rows, and rows within 0.4 of one."""
    away = np.abs((rows[:, 0] + 1j * rows[:, 1])[:, None] - CENTRES)
    near = away.min(1) < 0.4
    shares = np.bincount(away.argmin(1)[near], minlength=8) / len(rows)
    return int((shares >= 1 / 40).sum()), float(near.mean())


class Still(torch.nn.Module):
    """A generator that waits: its turns move one number that changes nothing."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.n_components: Any = net.n_components
        self.net = net.requires_grad_(False)
        self.idle = torch.nn.Parameter(torch.zeros(1))

    def forward(self, z: Any, y: Any = None, generator: Any = None) -> Any:
        return self.net(z, y, generator) + 0 * self.idle


def first_slopes(x: torch.Tensor, key: Key) -> dict[str, float]:
    """Norms of the generator's first gradient when the discriminator has learned 500 steps alone."""
    D = DenseDiscriminator(2, (128, 128), generator=key.fold("D").torch())
    G = DenseGenerator(16, (128, 128), [1, 1], generator=key.fold("G").torch())
    energy = AdversarialEnergy(D, Still(G), 2)
    learn(energy, {"x": x}, Game(), lr=1e-3, epochs=500 * 256 // len(x), batch_size=256,
          seed=key.fold("alone"))  # fmt: skip
    G.requires_grad_(True)
    found = {}
    for name in ("nonsaturating", "minimax"):
        made = energy.draw(4096, generator=key.fold("noise").torch())[0]
        loss = gan(name).generator(energy.logits(made)).mean()
        slope = torch.autograd.grad(loss, tuple(G.parameters()))
        found[name] = float(torch.cat([g.flatten() for g in slope]).norm())
    return found


@experiment(
    "GENX-gan-ring", theme="generative", title="The game on a ring ends at one half", slow=True
)
def gan_ring(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\min_G\max_DV`, :math:`V = E\log D(x) + E\log(1 - D(G(z)))`, ends where the generator's rows
    are the data's, :math:`D = \tfrac12` and :math:`V = -2\log2`. A discriminator that is ahead leaves the
    saturating generator, which lowers :math:`\log(1 - D(G))`, without a gradient:
    :math:`\partial\log(1 - \sigma(t))/\partial t = -\sigma(t) \to 0`, while that of
    :math:`-\log\sigma(t)` tends to -1.

    Eight Gaussians on a ring; the slope of D at the data is held small (R1 with γ = 0.1, which calms the
    circling of the two players), and weights are averaged. Beside it, with fewer steps, games without a
    penalty and a Wasserstein critic. The gradients are those of a generator whose discriminator had 500
    steps alone.
    """
    key = Key.of(seed)
    X, _ = make_eight_gaussians(12_800, random_state=key.fold("data"))
    fresh, _ = make_eight_gaussians(20_000, random_state=key.fold("fresh"))
    shared: dict[str, Any] = {
        "n_components": 16, "hidden_layer_sizes": (128, 128), "learning_rate_init": 1e-3,
        "batch_size": 256, "max_iter": 100, "ema_decay": 0.999, "random_state": seed,
        "device": "cpu", "scale": None,
    }  # fmt: skip
    x = X.astype(np.float32)
    made: dict[str, Any] = {MAIN: GAN(**shared, r1=0.1).fit(x)}
    shared["max_iter"] = 10 if quick else 33
    made |= {name: GAN(**shared, **own).fit(x) for name, own in BESIDE.items()}
    made["Wasserstein"] = WGAN(**shared, gp_weight=0.1, n_critic=2).fit(x)
    drawn = {name: model.sample(20_000, random_state=seed) for name, model in made.items()}
    found = {name: modes(rows) for name, rows in drawn.items()}
    best = made[MAIN]
    with torch.no_grad():
        real, fake = (
            best.energy_.logits(torch.from_numpy(np.asarray(rows, np.float32)))
            for rows in (fresh, drawn[MAIN])
        )
    V = float(value(real, fake))
    slopes = first_slopes(torch.from_numpy(x), key.fold("first"))
    claims = [
        Claim.equal("modes of the non-saturating game", found[MAIN][0], 8),
        Claim.at_least("rows within 0.4 of a mode", found[MAIN][1], 0.85),
        Claim.between("value of the game at its end, -2 log 2 = -1.386", V, -1.45, -1.30),
        Claim.below("first gradient, saturating over non-saturating",
                    slopes["minimax"] / slopes["nonsaturating"], 0.1),
    ]  # fmt: skip
    numbers = {
        "modes": {name: n for name, (n, _) in found.items()},
        "near": {name: share for name, (_, share) in found.items()},
        "value": V, "first gradient": slopes,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 5, width_ratios=(1, 1, 1, 1, 1.3))
        for ax, (name, rows) in zip(axes, drawn.items(), strict=False):
            ax.plot(*rows[:1500].T, ",", color=COLOURS[0])
            ax.plot(CENTRES.real, CENTRES.imag, "x", color=COLOURS[1], markersize=4)
            ax.set(
                title=f"{name}\n{found[name][0]} modes", xlim=(-3, 3), ylim=(-3, 3), aspect="equal"
            )
            ax.set(xticks=[], yticks=[])
        axes[-1].plot(best.loss_curve_, color=COLOURS[0], label="D")
        axes[-1].plot(best.generator_loss_curve_, color=COLOURS[1], label="G")
        axes[-1].axhline(2 * np.log(2), color=COLOURS[5], linewidth=0.8)
        axes[-1].set(title="losses of the first", xlabel="epoch")
        axes[-1].legend()

    return Result(claims, numbers, draw, size=(12.0, 2.8))
