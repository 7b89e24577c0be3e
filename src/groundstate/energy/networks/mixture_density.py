r"""Mixture density regression,
:math:`e(x, y) = -\log\sum_z\pi_z(x)\,N(y; \mu_z(x), \sigma_z^2(x))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported
from groundstate.math.distributions.gaussian_mixtures import GaussianMixtureDistribution
from groundstate.math.distributions.operations import tempered
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.mixture import MixtureHead


def _example() -> MixtureDensityEnergy:
    energy = MixtureDensityEnergy(2, 1, 3, net=(4,))
    spots = torch.tensor([[-1.5], [0.0], [2.0]])
    energy.head.start(torch.tensor([0.3, 0.5, 0.2]), spots, torch.tensor([0.6, 0.9, 0.7]))
    return energy


@registered(r"e(x, y) = -\log\sum_z\pi_z(x)\,N(y; \mu_z(x), \sigma_z^2(x))", _example)
class MixtureDensityEnergy(Energy):
    r"""A network gives a mixture of Gaussians,
    :math:`e(x, y) = -\log\sum_z\pi_z(x)\,N(y; \mu_z(x), \sigma_z^2(x)I)`.

    Normalised over y for every θ, so lowering it on data is maximum likelihood. Inputs and
    outcomes are standardised inside by fixed shifts and scales; energies, means and scales are in
    the units of y. With one component and a constant scale it is squared error.

    Parameters
    ----------
    d, m : numbers of inputs and of outcomes
    k : number of components
    net : hidden sizes of the trunk, or any module from ``(B, d)`` to ``(B, width)``
    weights, covariance : of the ``MixtureHead``
    min_scale : least :math:`\sigma`, in units of the scale of y
    activation : of the hidden layers
    width : outputs of a trunk that is a module; found by trying when None
    generator : source of the initial weights

    Attributes
    ----------
    trunk : module, ``(B, d)`` to ``(B, width)``
    head : MixtureHead
    x_shift, x_scale : buffers, ``(d,)``
    y_shift, y_scale : buffers, ``(m,)``

    Examples
    --------
    >>> e = MixtureDensityEnergy(2, net=(8,))
    >>> e(x=torch.zeros(3, 2), y=torch.zeros(3, 1)).shape, e.distribution(torch.zeros(3, 2)).mu.shape
    (torch.Size([3]), torch.Size([3, 5, 1]))
    """

    normalised = frozenset({"y"})
    x_shift: Tensor
    x_scale: Tensor
    y_shift: Tensor
    y_scale: Tensor
    y_volume: Tensor

    def __init__(
        self,
        d: int,
        m: int = 1,
        k: int = 5,
        net: Sequence[int] | nn.Module = (64,),
        weights: str = "learned",
        covariance: str = "isotropic",
        min_scale: float = 1e-3,
        activation: str = "tanh",
        width: int | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m, self.k, self.activation = d, m, k, activation
        generator = generator or torch.Generator().manual_seed(0)
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        self.trunk = net if isinstance(net, nn.Module) else _trunk(d, net, activation, generator)
        self.width = (self._try() if self.sizes is None else (d, *self.sizes)[-1]) or 0
        if width is not None:
            self.width = width
        self.head = MixtureHead(
            self.width, k, m, weights, covariance, min_scale, generator=generator
        )
        self.register_buffer("x_shift", torch.zeros(d))
        self.register_buffer("x_scale", torch.ones(d))
        self.register_buffer("y_shift", torch.zeros(m))
        self.register_buffer("y_scale", torch.ones(m))
        self.register_buffer("y_volume", torch.zeros(()))  # Σ log y_scale

    def _try(self) -> int:
        like = next((p for p in self.trunk.parameters()), torch.zeros(()))
        was = self.trunk.training
        with torch.no_grad():
            h = self.trunk.eval()(torch.zeros(1, self.d, dtype=like.dtype, device=like.device))
        self.trunk.train(was)
        if h.ndim != 2 or len(h) != 1:
            raise Unsupported(
                f"the trunk must map (B, {self.d}) to (B, width), got {tuple(h.shape)} for one row"
            )
        return int(h.shape[1])

    def config(self) -> dict[str, Any]:
        head = self.head
        return {
            "d": self.d, "m": self.m, "k": self.k,
            "net": self.trunk if self.sizes is None else list(self.sizes),
            "weights": head.weights, "covariance": head.covariance, "min_scale": head.min_scale,
            "activation": self.activation, "width": self.width,
        }  # fmt: skip

    def placement(self, values: Any = None) -> tuple[torch.device, torch.dtype]:
        return self.x_shift.device, self.x_shift.dtype  # asked in every step: no search

    @torch.no_grad()
    def standardise(self, x: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor]) -> None:
        """Set shift and scale of inputs ``(d,)`` and outcomes ``(m,)``."""
        for name, value in zip(("x_shift", "x_scale", "y_shift", "y_scale"), (*x, *y)):
            getattr(self, name).copy_(value)
        self.y_volume.copy_(self.y_scale.log().sum())

    def parameters_of(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π, μ and σ of standardised outcomes: ``(B, K)``, ``(B, K, m)``, ``(B, K, 1 or m)``."""
        parts: tuple[Tensor, Tensor, Tensor] = self.head(self.features(x))
        return parts

    def features(self, x: Tensor) -> Tensor:
        """What the trunk makes of standardised inputs, ``(B, width)``."""
        h: Tensor = self.trunk((x - self.x_shift) / self.x_scale)
        return h

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        e = self.head.nll(self.features(x), (y - self.y_shift) / self.y_scale)
        return e + self.y_volume

    def distribution(self, x: Tensor) -> GaussianMixtureDistribution:
        """The distribution of y, in its own units."""
        log_weights, mu, sigma = self.parameters_of(x)
        return GaussianMixtureDistribution(
            log_weights, mu * self.y_scale + self.y_shift, sigma * self.y_scale
        )

    def responsibilities(self, x: Tensor, y: Tensor) -> Tensor:
        """Which component an outcome comes from, ``(B, K)``."""
        return self.distribution(x).responsibilities(y)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.distribution(x).mode

    @offers.conditional("y")
    def conditional(self, x: Tensor, T: float = 1.0) -> Distribution:
        distribution = self.distribution(x)
        if T == 1:
            return distribution
        if self.k > 1:
            raise Unsupported(
                f"a mixture to the power 1/T is not a mixture; only T=1 is exact, got T={T}"
            )
        sigma = distribution.sigma[:, 0].expand_as(distribution.mu[:, 0])
        normal = torch.distributions.Normal(distribution.mu[:, 0], sigma, validate_args=False)
        return tempered(torch.distributions.Independent(normal, 1), T)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        if T != 1:
            raise Unsupported(f"the normaliser of a mixture is known at T=1 only, got T={T}")
        return x.new_zeros(len(x))


def _trunk(d: int, sizes: Sequence[int], activation: str, generator: torch.Generator) -> nn.Module:
    if not sizes:
        return nn.Identity()
    net = MLP(d, sizes[:-1], sizes[-1], activation, init="lecun", generator=generator)
    first = next(layer for layer in net.layers if isinstance(layer, nn.Linear))
    with torch.no_grad():
        # units that turn at different places see all of the inputs from the start, and inputs that
        # do not matter disturb small weights less
        first.weight.mul_(0.5)
        first.bias.copy_(torch.rand(len(first.bias), generator=generator) - 0.5)
    return nn.Sequential(*net.layers, make_activation(activation))
