r"""A network that gives the noise beside the mean is calibrated everywhere."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, learn_population
from groundstate.nn import MLP

ROWS, NETS = 400, 5


def sigma(x: Tensor) -> Tensor:
    """Standard deviation of the noise, 0.05 at −1 to 0.45 at 1."""
    return 0.25 + 0.2 * x


def draw_rows(key: Key, n: int) -> dict[str, Tensor]:
    generator = key.torch()
    x = 2 * torch.rand(n, 1, generator=generator) - 1
    return {"x": x, "y": torch.sin(3 * x) + sigma(x) * torch.randn(n, 1, generator=generator)}


class OneSigma(nn.Module):
    """A mean from the network and one log σ² for all x."""

    def __init__(self, mean: nn.Module) -> None:
        super().__init__()
        self.mean, self.bias = mean, nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.mean(x), self.bias.expand(len(x), 1)], 1)


def one(generator: torch.Generator) -> GaussianNoiseEnergy:
    return GaussianNoiseEnergy(1, net=OneSigma(MLP(1, (32,), 1, "tanh", generator=generator)))


def each(generator: torch.Generator) -> GaussianNoiseEnergy:
    return GaussianNoiseEnergy(1, net=MLP(1, (32,), 2, "tanh", generator=generator))


@experiment("NEU-X-hetero", theme="neural", title="Noise that depends on x is learned", slow=True)
def hetero(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With two outputs :math:`\mu(x), \log\sigma^2(x)` and the loss
    :math:`\tfrac12\log2\pi\sigma^2 + (y - \mu)^2/2\sigma^2` a network learns where it is unsure. With one
    σ for all x the band is too wide where there is little noise and too narrow where there is much;
    the means are nearly the same.

    :math:`y = \sin3x` with noise from 0.05 to 0.45 over [−1, 1], 400 rows, 32 tanh units, judged on
    20,000 rows; means over 5 draws of rows and nets.
    """
    key, nets = Key.of(seed), 2 if quick else NETS
    train = draw_rows(key.fold("train"), nets * ROWS)
    own = torch.eye(nets).repeat_interleave(ROWS, 1)  # (nets, rows): each has 400 of its own
    test = draw_rows(key.fold("test"), 20_000)
    quarter = ((test["x"][:, 0] + 1) * 2).long().clamp(max=3)
    made = {}
    loss, error, cover = {}, {}, {}
    for name, make in (("one σ", one), ("σ(x)", each)):
        result = learn_population(make, nets, train, NLL(), lr=0.01, epochs=300, batch_size=100,
                                  sample_weight=own, seed=key, schedule="cosine")  # fmt: skip
        fits = [cast("GaussianNoiseEnergy", member.energy) for member in result]
        with torch.no_grad():
            loss[name] = float(torch.stack([e(**test).mean() for e in fits]).mean())
            mu, sd = (torch.stack(part) for part in zip(*(e.predict(test["x"]) for e in fits)))
        off = (test["y"] - mu)[..., 0]
        error[name] = float(off.square().mean())
        inside = (off.abs() <= 2 * sd[..., 0]).double().mean(0)
        cover[name] = [float(inside[quarter == q].mean()) for q in range(4)]
        made[name] = fits[0]
    claims = [
        Claim.above("held-out loss, one σ less σ(x)", loss["one σ"] - loss["σ(x)"], 0.1),
        *[Claim.close(f"σ(x): ±2σ hold in quarter {q + 1}", v, 0.954, tol=0.05)
          for q, v in enumerate(cover["σ(x)"])],
        Claim.above("one σ: ±2σ hold in the quietest quarter", cover["one σ"][0], 0.954 + 0.02),
        Claim.below("one σ: ±2σ hold in the loudest quarter", cover["one σ"][3], 0.954 - 0.05),
        Claim.at_most("relative difference of the squared errors",
                      abs(error["σ(x)"] / error["one σ"] - 1), 0.03),
    ]  # fmt: skip
    numbers = {"loss": loss, "squared error": error, "cover": cover}

    def draw(figure: Figure) -> None:
        at = torch.linspace(-1, 1, 200)[:, None]
        rows = {name: v[:ROWS] for name, v in train.items()}
        for ax, (name, energy) in zip(figure.subplots(1, 2, sharey=True), made.items()):
            with torch.no_grad():
                mu, sd = (v[:, 0].numpy() for v in energy.predict(at))
            ax.scatter(rows["x"], rows["y"], s=4, color=COLOURS[5], alpha=0.6)
            ax.plot(at[:, 0].numpy(), mu, color=COLOURS[0])
            ax.fill_between(
                at[:, 0].numpy(), mu - 2 * sd, mu + 2 * sd, color=COLOURS[0], alpha=0.25
            )
            ax.set(title=f"{name}: held-out loss {loss[name]:.3f}", xlabel="x")

    return Result(claims, numbers, draw)
