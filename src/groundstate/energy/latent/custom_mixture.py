r"""A mixture whose components are torch distributions of parameters of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical as Choice
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite, Real
from groundstate.math.info.free_energy import boltzmann_logits


class CustomMixtureEnergy(Energy):
    r""":math:`e(x, z) = -\log\pi_z - \log p(x; \theta_z)` with ``component(theta)`` a torch distribution.

    Parameters
    ----------
    component : ``theta`` ``(k, p)`` to a distribution with batch shape ``(k,)`` (event ``(d,)``) or
        ``(k, d)``, columns then being independent; or a module with such a ``forward``
    theta : Tensor, ``(k, p)``, where the parameters start
    d : number of columns
    """

    def __init__(self, component: Callable[[Tensor], Distribution], theta: Tensor, d: int) -> None:
        super().__init__(x=Real(d), z=Finite(len(theta)))
        self.component = component
        self.logits = nn.Parameter(torch.zeros(len(theta)))
        self.theta = nn.Parameter(theta.clone())

    def config(self) -> dict[str, Any]:
        raise TypeError(
            "a mixture of components written as a function cannot be stored; save its θ with torch"
        )

    @property
    def log_weights(self) -> Tensor:
        r""":math:`\log\pi`, ``(k,)``."""
        return torch.log_softmax(self.logits, 0)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log densities of all components, ``(B, k)``."""
        found: Tensor = self.component(self.theta).log_prob(x[:, None])
        return found.sum(-1) if found.ndim == 3 else found

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None]).squeeze(1)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        return -self.log_weights - self.log_prob(x)

    @offers.conditional("z")
    def responsibilities(self, x: Tensor, T: float = 1.0) -> Choice:
        return Choice(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.log_partition("z")
    def log_density(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Joint draws at T = 1, by torch's own sampler of the components."""
        generator = generator or torch.Generator(self.logits.device)
        z = torch.multinomial(self.log_weights.detach().exp(), n, True, generator=generator)
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            x = self.component(self.theta[z]).sample()
        return {"x": x.reshape(n, -1), "z": z}
