r"""A trained discriminator is the best one, and the game is worth what the formula says."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.energy import AdversarialEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import Game, learn
from groundstate.learn.losses.gan import value
from groundstate.math.divergences import optimal_discriminator, optimal_value
from groundstate.nn.adversarial import DenseDiscriminator

MEANS = (0.0, 1.0, 2.0, 4.0)
VALUES = (-1.386294, -1.163451, -0.712633, -0.120854)


class Shifted(torch.nn.Module):
    """Draws of N(μ, 1); its one parameter changes nothing."""

    n_components = 1

    def __init__(self, mu: float) -> None:
        super().__init__()
        self.mu, self.idle = mu, torch.nn.Parameter(torch.zeros(1))

    def forward(self, z: Tensor, y: Tensor | None = None, generator: object = None) -> Tensor:
        return z + self.mu + 0 * self.idle


@experiment(
    "GENX-gan-js", theme="generative", title="The best discriminator and its value", slow=True
)
def gan_js(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Against a generator that stays as it is, the discriminator becomes
    :math:`D^* = p/(p + q) = \sigma(\log p - \log q)`, and the game
    :math:`V^* = 2\,JS(p, q) - 2\log2`.

    N(0, 1) against N(μ, 1), μ = 0, 1, 2, 4: a network of 32 units is trained on 60,000 rows, the
    generator stands still; the value is measured on 100,000 fresh rows of each.
    """
    key = Key.of(seed)
    x = torch.randn(60_000, 1, generator=key.fold("data").torch())
    grid = torch.linspace(-3, 3, 121)[:, None]
    found, curves, errors = [], [], []
    for mu in MEANS:
        own = key.fold("game", int(mu))
        net = DenseDiscriminator(1, (32,), activation="softplus", generator=own.fold("net").torch())
        energy = AdversarialEnergy(net, Shifted(mu), 1)
        learn(energy, {"x": x}, Game(), lr=1e-2, epochs=8, batch_size=1000, schedule="cosine",
              seed=own)  # fmt: skip
        fresh = own.fold("fresh").torch()
        with torch.no_grad():
            real = energy.logits(torch.randn(100_000, 1, generator=fresh))
            made = energy.logits(torch.randn(100_000, 1, generator=fresh) + mu)
            found.append(float(value(real, made)))
            curves.append(torch.sigmoid(energy.logits(grid))[:, 0].numpy())
        best = optimal_discriminator(norm.logpdf(grid[:, 0]), norm.logpdf(grid[:, 0], mu))
        errors.append(float(np.abs(curves[-1] - best).max()))
    exact = [float(optimal_value(Normal(0.0, 1.0), Normal(mu, 1.0))) for mu in MEANS]
    claims = [
        Claim.at_most("largest |D - D*| on [-3, 3], over the four games", max(errors), 0.03),
        *(
            Claim.close(f"value against N({mu:g}, 1)", v, known, tol=0.02)
            for mu, v, known in zip(MEANS, found, VALUES, strict=True)
        ),
        Claim.close("2 JS - 2 log 2 at μ = 2, computed", exact[2], VALUES[2], tol=1e-5),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for k, (mu, curve) in enumerate(zip(MEANS, curves, strict=True)):
            best = optimal_discriminator(norm.logpdf(grid[:, 0]), norm.logpdf(grid[:, 0], mu))
            left.plot(grid[:, 0], best, color=COLOURS[k], label=f"μ = {mu:g}")
            left.plot(grid[:, 0], curve, color=COLOURS[k], linestyle="--")
        left.legend()
        left.set_title("D* (lines) and D (dashed)")
        mus = np.linspace(0, 5, 26)
        right.plot(mus, [float(optimal_value(Normal(0.0, 1.0), Normal(float(m), 1.0))) for m in mus],
                   color=COLOURS[0], label="2 JS - 2 log 2")  # fmt: skip
        right.plot(MEANS, found, "o", color=COLOURS[1], label="trained")
        right.set_xlabel("μ")
        right.legend()
        right.set_title("value of the game")

    return Result(claims, {"values": found, "errors": errors, "exact": exact}, draw)
