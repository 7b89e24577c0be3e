r"""A mixture with components of any family, :math:`e(x, z) = -\log\pi_z - \log p(x \mid z)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical as Choice

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.latent.directions import StudentT, VonMisesFisher
from groundstate.energy.latent.families import (
    Bernoulli,
    Categorical,
    ExponentialComponents,
    Family,
    Gaussian,
    Multinomial,
    PoissonComponents,
    settings_of,
)
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.info.free_energy import boltzmann_logits

FAMILIES: dict[str, type[Family]] = {
    one.name: one
    for one in (
        Bernoulli,
        Categorical,
        Multinomial,
        PoissonComponents,
        ExponentialComponents,
        Gaussian,
        StudentT,
        VonMisesFisher,
    )
}


def _example() -> FamilyMixtureEnergy:
    energy = FamilyMixtureEnergy(3, 2, "gaussian")
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2, 0.5]))
        energy.parts[0].mean.copy_(torch.tensor([[-1.0, 0.5], [1.0, 0.0], [0.3, -1.2]]))  # type: ignore[operator]
    return energy


def _named(family: Mapping[Any, str], j: int) -> str:
    return family[j] if j in family else family[str(j)]


@registered(r"e(x, z) = -\log\pi_z - \log p(x \mid z)", _example)
class FamilyMixtureEnergy(Energy):
    r"""One of k distributions of a family holds, :math:`e(x, z) = -\log\pi_z - \log p(x \mid \theta_z)`.

    Columns of different families are independent given z.

    Parameters
    ----------
    k : number of components
    d : number of columns
    family : name of a family, or names by column number for columns of different kinds
    settings : keyword arguments of each family, in the order of the columns

    Attributes
    ----------
    logits : Parameter, ``(k,)``; :math:`\pi` is their softmax
    parts : the families, each for some columns

    Examples
    --------
    >>> energy = FamilyMixtureEnergy(2, 1, "poisson").double()
    >>> energy.energies(torch.zeros(1, 1, dtype=torch.float64)).round(decimals=4).tolist()
    [[1.6931, 1.6931]]
    """

    def __init__(
        self,
        k: int,
        d: int,
        family: str | Mapping[Any, str] = "gaussian",
        settings: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(x=Real(d), z=Finite(k))
        self.k, self.d, self.family = k, d, family
        groups: dict[str, list[int]] = {}
        for j in range(d):
            name = family if isinstance(family, str) else _named(family, j)
            groups.setdefault(name, []).append(j)
        self.columns = [tuple(at) for at in groups.values()]
        given = settings or [{} for _ in groups]
        self.logits = nn.Parameter(torch.zeros(k))
        self.parts = nn.ModuleList(
            FAMILIES[name](k, len(at), **more)
            for (name, at), more in zip(groups.items(), given, strict=True)
        )

    def config(self) -> dict[str, Any]:
        family = (
            self.family
            if isinstance(self.family, str)
            else {str(j): name for j, name in self.family.items()}
        )
        settings = [settings_of(part) for part in self.families]
        return {"k": self.k, "d": self.d, "family": family, "settings": settings}

    @property
    def families(self) -> list[Family]:
        """The families in the order of ``columns``."""
        return [part for part in self.parts if isinstance(part, Family)]

    @property
    def log_weights(self) -> Tensor:
        r""":math:`\log\pi`, ``(k,)``."""
        return torch.log_softmax(self.logits, 0)

    def _split(self, x: Tensor) -> list[tuple[Family, Tensor]]:
        if len(self.columns) == 1:
            return [(self.families[0], x)]
        return [
            (part, x[:, list(at)]) for part, at in zip(self.families, self.columns, strict=True)
        ]

    def check(self, x: Tensor) -> None:
        """Raise for values outside the domain of their family."""
        for (part, values), at in zip(self._split(x), self.columns, strict=True):
            wrong = part.bad(values)
            if bool(wrong.any()):
                column = int(wrong.any(0).nonzero()[0])
                part.check(values, at[column] - column)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None]).squeeze(1)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        return -self.log_weights - sum(part.log_prob(values) for part, values in self._split(x))

    @offers.conditional("z")
    def responsibilities(self, x: Tensor, T: float = 1.0) -> Choice:
        return Choice(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.log_partition("z")
    def log_density(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Joint draws at T = 1: a component by its weight, then the columns of x."""
        generator = generator or torch.Generator(self.logits.device)
        pi = self.log_weights.detach().exp()
        z = torch.multinomial(pi, n, replacement=True, generator=generator)
        out = pi.new_zeros(n, self.d)
        for part, at in zip(self.families, self.columns, strict=True):
            out[:, list(at)] = part.draw(z, generator).to(out)
        return {"x": out, "z": z}

    # --- learning ------------------------------------------------------------------------

    def begin(self, x: Tensor) -> None:
        """Let the families look at the rows once."""
        for part, values in self._split(x):
            part.begin(values)

    def sums(self, x: Tensor, r: Tensor) -> dict[str, Tensor]:
        """Sums weighted by responsibilities ``(B, k)``, which add over chunks and shards."""
        out = {"n": r.sum(0)}
        for i, (part, values) in enumerate(self._split(x)):
            out |= {f"{i} {name}": v for name, v in part.stats(values, r).items()}
        return out

    @torch.no_grad()
    def from_sums(self, sums: dict[str, Tensor]) -> None:
        """θ from the sums of all rows."""
        n = sums["n"] + 10 * torch.finfo(torch.float64).eps
        self.logits.copy_((n / n.sum()).log())
        for i, part in enumerate(self.families):
            start = f"{i} "
            own = {key[len(start) :]: v for key, v in sums.items() if key.startswith(start)}
            part.update(own)

    def n_parameters(self) -> int:
        """Free parameters."""
        return self.k - 1 + sum(part.count() for part in self.families)
