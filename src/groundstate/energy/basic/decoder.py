r"""A nonlinear decoder, :math:`e(x, z) = \|x - g(z)\|^2/(2\sigma^2) + \tfrac12\|z\|^2`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Normal

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distributions.operations import draw, fresh, isotropic
from groundstate.nn.blocks.mlp import network


@registered(
    r"e(x, z) = \|x - g_\theta(z)\|^2/(2\sigma^2) + \tfrac12\|z\|^2",
    lambda: DecoderEnergy(2, 1, net=(8,), sigma=0.5),
)
class DecoderEnergy(Energy):
    r"""A network maps a Gaussian code to x,
    :math:`e(x, z) = \|x - g_\theta(z)\|^2/(2\sigma^2) + \tfrac12\|z\|^2`.

    The distribution of x given z is in closed form and so is the joint normaliser
    :math:`(2\pi T)^{(d+l)/2}\sigma^d`; the distribution of z given x is not.

    Parameters
    ----------
    d : number of features
    l : length of the code
    net : hidden sizes, or a module from ``(B, l)`` to ``(B, d)``
    sigma : noise of x around its image
    activation : of the hidden layers
    generator : source of the initial weights

    Examples
    --------
    >>> e = DecoderEnergy(3, 1)
    >>> e(x=torch.zeros(2, 3), z=torch.zeros(2, 1)).shape
    torch.Size([2])
    """

    gaussian = frozenset({"x"})

    def __init__(
        self,
        d: int,
        l: int,
        net: Sequence[int] | nn.Module = (16,),
        sigma: float = 1.0,
        activation: str = "tanh",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), z=Real(l))
        if not sigma > 0:
            raise ValueError(f"sigma is a standard deviation and must be positive, got {sigma}")
        self.d, self.l, self.sigma, self.activation = d, l, float(sigma), activation
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        self.net = network(net, l, d, generator, activation)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d,
            "l": self.l,
            "net": self.net if self.sizes is None else list(self.sizes),
            "sigma": self.sigma,
            "activation": self.activation,
        }

    def decode(self, z: Tensor) -> Tensor:
        """g(z), ``(B, d)``."""
        result: Tensor = self.net(z)
        return result

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        fit = (x - self.decode(z)).square().sum(-1) / self.sigma**2
        return 0.5 * (fit + z.square().sum(-1))

    @offers.conditional("x")
    def around(self, z: Tensor, T: float = 1.0) -> Distribution:
        mean = self.decode(z)
        return isotropic(mean, self.sigma * T**0.5)

    def _volume(self, T: float) -> float:
        return 0.5 * self.d * math.log(2 * math.pi * T) + self.d * math.log(self.sigma)

    @offers.log_partition("x")
    def given_code(self, z: Tensor, T: float = 1.0) -> Tensor:
        return self._volume(T) - z.square().sum(-1) / (2 * T)

    @offers.log_partition("x", "z")
    def total(self, T: float = 1.0) -> Tensor:
        volume = self._volume(T) + 0.5 * self.l * math.log(2 * math.pi * T)
        device, dtype = self.placement()
        return torch.full((1,), volume, device=device, dtype=dtype)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: a code from the prior, then x around its image."""
        generator = fresh(generator)
        device, dtype = self.placement()
        zero = torch.zeros(self.l, device=device, dtype=dtype)
        z = draw(Normal(zero, zero + T**0.5), n, generator)
        return {"x": draw(self.around(z, T), 1, generator)[0], "z": z}
