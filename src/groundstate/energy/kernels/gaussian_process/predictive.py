r"""What all Gaussian processes given observations share: the distribution of a new observation."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.math.kernels import Geometry, Kernel
from groundstate.math.linalg.gaussian_process import draws

FLOOR = 1e-12  # variance, relative to the prior's, below which digits are gone


class ProcessDistribution(Energy):
    r""":math:`e(x, y) = -\log N(y;\, m(x),\, v(x) + \alpha)`; subclasses say what m and v are.

    Parameters
    ----------
    d, m : numbers of inputs and outputs
    kernel : covariance; its free parameters are θ
    noise : α, variance of the noise of a new observation

    Attributes
    ----------
    theta : Parameter, logarithms of the free parameters of the kernel
    shift, scale : buffers, ``(m,)``, that turn outputs back
    """

    normalised = frozenset({"y"})
    gaussian = frozenset({"y"})
    shift: Tensor
    scale: Tensor

    def __init__(self, d: int, m: int, kernel: Kernel, noise: float = 0.0) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m, self.kernel, self.noise = d, m, kernel, float(noise)
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta, dtype=torch.get_default_dtype()))
        self.register_buffer("shift", torch.zeros(m))
        self.register_buffer("scale", torch.ones(m))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "m": self.m, "kernel": self.kernel, "noise": self.noise}

    @property
    def learned_kernel(self) -> Kernel:
        """The kernel at θ."""
        return self.kernel.clone_with_theta(self.theta.detach().cpu().double().numpy())

    def mean(self, x: Tensor) -> Tensor:
        """m(x), ``(B, m)``."""
        return self.predict(x)[0]

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """m(x) and v(x), both ``(B, m)``."""
        raise TypeError(f"{type(self).__name__} must define predict(x)")

    def joint(self, x: Tensor) -> Tensor:
        """Covariance of the function at these inputs, before scaling, ``(B, B)``."""
        raise TypeError(f"{type(self).__name__} must define joint(x)")

    def prior(self, x: Tensor) -> Tensor:
        """Covariance before any observation, ``(B, B)``."""
        return self.kernel.of(Geometry(x), self.theta)

    @torch.no_grad()
    def functions(self, x: Tensor, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws of the function at these inputs, ``(n, B, m)``."""
        found = draws(self.joint(x), n * self.m, generator).reshape(n, self.m, len(x)).mT
        return found * self.scale + self.mean(x)

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, v = self.predict(x)
        least = FLOOR * self.kernel.diagonal(x, self.theta)[:, None]
        return mean, v + (self.noise + least) * self.scale.square()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        mean, v = self._moments(x)
        return 0.5 * ((y - mean).square() / v + (2 * math.pi * v).log()).sum(-1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.mean(x)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        mean, v = self._moments(x)
        normal = Normal(mean, (T * v).sqrt(), validate_args=False)
        return Independent(normal, 1, validate_args=False)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        _, v = self._moments(x)
        log = (2 * math.pi * v).log()
        return (0.5 * (math.log(T) + log) - 0.5 * log / T).sum(-1)
