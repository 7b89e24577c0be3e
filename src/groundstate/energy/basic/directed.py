r"""Directed models: :math:`e(x, z) = -\log p(z) - \log p(x \mid z)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.base import Energy
from groundstate.energy.basic.density import DensityEnergy, space_of
from groundstate.energy.basic.likelihood import CONJUGATE, LinearNormal
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Space
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import draw, fresh, minus_log, somewhere, tempered
from groundstate.math.info.free_energy import boltzmann_logits


def _example() -> DirectedEnergy:
    z = D.Normal(torch.zeros(1), torch.ones(1))
    return DirectedEnergy(z, LinearNormal(torch.tensor([[1.0], [2.0]]), scale=0.5))


@registered(r"e(x, z) = -\log p(z) - \log p(x \mid z)", _example)
class DirectedEnergy(Energy):
    r"""A hidden cause and what it makes, :math:`e(x, z) = -\log p(z) - \log p(x \mid z)`.

    Normalised over x and z. Offers ancestral draws always, the distribution of x given z, and the
    posterior of z where it stays in a known family: any likelihood under a categorical prior, and
    the conjugate pairs of :mod:`groundstate.energy.basic.likelihood`.

    Parameters
    ----------
    prior : a distribution of z, or a ``DensityEnergy``
    likelihood : maps values of z ``(B, ...)`` to a distribution of x with batch shape ``(B,)``
    space : where x lives; found by trying one draw of z when None
    observed, latent : names of x and z

    Examples
    --------
    >>> from groundstate.energy import BernoulliOf
    >>> e = DirectedEnergy(D.Beta(torch.tensor(2.0), torch.tensor(3.0)), BernoulliOf(2))
    >>> distribution = e.ability("conditional", "z")(x=torch.tensor([[1.0, 1.0]]))
    >>> distribution.concentration1.tolist(), distribution.concentration0.tolist()
    ([4.0], [3.0])
    """

    def __init__(
        self,
        prior: Distribution | DensityEnergy,
        likelihood: Callable[[Tensor], Distribution],
        space: Space | None = None,
        *,
        observed: str = "x",
        latent: str = "z",
    ) -> None:
        if isinstance(prior, Distribution):
            prior = DensityEnergy(prior, latent)
        if prior.variable != latent:
            raise ValueError(f"the prior is over {prior.variable!r}, but latent={latent!r}")
        z = draw(prior.distribution, 1, torch.Generator().manual_seed(0))
        distribution = likelihood(z)
        if tuple(distribution.batch_shape) != (1,):
            raise Unsupported(
                f"likelihood(z) must have batch shape (B,) for z of shape {tuple(z.shape)}, got "
                f"{tuple(distribution.batch_shape)}; wrap it in Independent(..., n)"
            )
        super().__init__(
            **{observed: space or space_of(distribution), latent: prior.spaces[latent]}
        )
        self.prior, self.likelihood = prior, likelihood  # a Module is registered, a function kept
        self.observed, self.latent = observed, latent
        self.normalised = frozenset({observed, latent})
        self.update = CONJUGATE.get((prior.family, type(likelihood)))
        base = distribution.base_dist if isinstance(distribution, D.Independent) else distribution
        normal = isinstance(base, D.Normal | D.MultivariateNormal) and bool(
            distribution.event_shape
        )
        names = {observed} if normal else set()
        if self.update is not None and prior.gaussian:
            names.add(latent)
        self.gaussian = frozenset(names)

    def config(self) -> dict[str, Any]:
        if not isinstance(self.likelihood, nn.Module):
            raise Unsupported(
                "a likelihood that is a plain function cannot be stored; make it an nn.Module"
            )
        return {
            "prior": self.prior,
            "likelihood": self.likelihood,
            "observed": self.observed,
            "latent": self.latent,
        }

    def forward(self, **values: Tensor) -> Tensor:
        x, z = values[self.observed], values[self.latent]
        return self.prior(**{self.latent: z}) + minus_log(self.likelihood(z), x)

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if kind == "conditional" and variables == {self.observed}:
            return self._distribution_of_x
        if kind == "conditional" and variables == {self.latent}:
            if self.update is not None:
                return self._conjugate
            if self.prior.family == "Categorical":
                return self._by_table
        if kind == "log_partition" and variables == {self.observed}:
            return self._given_z
        if kind == "log_partition" and variables == self.normalised:
            return self._total
        return None

    def _derived_keys(self) -> list[tuple[str, frozenset[str]]]:
        x, z = frozenset({self.observed}), frozenset({self.latent})
        return [
            ("conditional", x), ("conditional", z), ("log_partition", x), ("log_partition", x | z),
        ]  # fmt: skip

    def _distribution_of_x(self, *, T: float = 1.0, **given: Tensor) -> Distribution:
        return tempered(self.likelihood(given[self.latent]), T)

    def _conjugate(self, *, T: float = 1.0, **given: Tensor) -> Distribution:
        assert self.update is not None
        return tempered(
            self.update(self.prior.distribution, self.likelihood, given[self.observed]), T
        )

    def _by_table(self, *, T: float = 1.0, **given: Tensor) -> Distribution:
        e = self.table(self.latent, **given)
        return D.Categorical(logits=boltzmann_logits(e, T), validate_args=False)

    def _given_z(self, *, T: float = 1.0, **given: Tensor) -> Tensor:
        z = given[self.latent]
        prior = self.prior(**{self.latent: z})
        if T == 1:
            return -prior
        distribution = self.likelihood(z)
        hot = tempered(distribution, T)
        x = somewhere(hot).detach()
        return distribution.log_prob(x) / T - hot.log_prob(x) - prior / T

    def _total(self, T: float = 1.0) -> Tensor:
        if T != 1:
            raise Unsupported(f"log Z of a directed energy is 0 at T=1 and unknown at T={T}")
        device, dtype = self.placement()
        return torch.zeros(1, device=device, dtype=dtype)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: z from the prior, then x from the likelihood, ``(n, *event)``."""
        if T != 1:
            raise Unsupported(f"ancestral draws are exact at T=1 only, got T={T}")
        generator = fresh(generator)
        with torch.no_grad():
            z = draw(self.prior.distribution, n, generator)
            x = draw(self.likelihood(z), 1, generator)[0]
        return {self.observed: x, self.latent: z}
