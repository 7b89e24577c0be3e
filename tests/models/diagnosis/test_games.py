"""A forgotten mode and a discriminator that has won are named with their numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from groundstate import GAN
from groundstate.models.diagnosis import diagnose


def clouds() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(np.repeat([[-4.0], [4.0]], 200, 0), 0.5, (400, 1))


def fitted() -> GAN:
    return GAN(2, (8,), max_iter=1, random_state=0).fit(clouds())


def test_a_generator_that_forgot_a_mode() -> None:
    model = fitted()
    last = model.generator_.net.layers[-1]
    with torch.no_grad():  # everything near the right cloud, which is at +1 in coded units
        last.weight.mul_(0.1)
        last.bias.fill_(1.0)
    found = diagnose(model, clouds())
    collapse = next(f for f in found.findings if f.name == "mode collapse")
    assert collapse.number > 0.4 and "WGAN" in collapse.advice


def test_a_discriminator_that_has_won() -> None:
    model = fitted()
    model.energy_.discriminator = Sure()
    with torch.no_grad():
        model.generator_.net.layers[-1].bias.fill_(9.0)
    won = next(f for f in diagnose(model, clouds()).findings if f.name == "discriminator has won")
    assert won.number == 1.0 and "r1" in won.advice


class Sure(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 5.0 - x


def test_a_good_game_is_not_blamed() -> None:
    model = fitted()
    with torch.no_grad():
        model.energy_.generator = Copies(model.coding_.encode(torch.from_numpy(clouds())))
    names = diagnose(model, clouds()).names
    assert "mode collapse" not in names and "discriminator has won" not in names


class Copies(nn.Module):
    """A generator that draws training rows."""

    n_components = 1

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = nn.Parameter(rows)

    def forward(self, z: torch.Tensor, y: object = None, generator: object = None) -> torch.Tensor:
        at = (
            (z[:, 0] / 2**0.5)
            .erf()
            .add(1)
            .mul(len(self.rows) / 2)
            .long()
            .clamp(0, len(self.rows) - 1)
        )
        return self.rows[at]
