r"""Predictions averaged over parameters, :math:`p(y\mid x) = \tfrac1M\sum_m p(y\mid x,\theta_m)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.infer import posterior
from groundstate.learn.posterior.parameters import ThetaDraws
from groundstate.math.distributions.operations import draw


class AveragedDistribution(Distribution):
    r"""The equal mixture of M distributions with one batch shape, :math:`\tfrac1M\sum_m p_m`."""

    arg_constraints: dict[str, Any] = {}

    def __init__(self, distributions: Sequence[Distribution]) -> None:
        self.distributions = list(distributions)
        super().__init__(
            distributions[0].batch_shape, distributions[0].event_shape, validate_args=False
        )

    @property
    def support(self) -> Any:
        return self.distributions[0].support

    def log_prob(self, value: Tensor) -> Tensor:
        each = torch.stack([distribution.log_prob(value) for distribution in self.distributions])
        return torch.logsumexp(each, 0) - math.log(len(self.distributions))

    @property
    def mean(self) -> Tensor:
        return torch.stack([distribution.mean for distribution in self.distributions]).mean(0)

    @property
    def variance(self) -> Tensor:
        means = torch.stack([distribution.mean for distribution in self.distributions])
        within = torch.stack([distribution.variance for distribution in self.distributions]).mean(0)
        return within + means.var(0, unbiased=False)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, *batch, *event)`` from an explicit generator."""
        which = torch.randint(
            len(self.distributions),
            (n, *self.batch_shape),
            generator=generator,
            device=generator.device,
        )
        values: Tensor | None = None
        for m, distribution in enumerate(self.distributions):
            value = draw(distribution, n, generator)
            chosen = (which == m).to(value.device)
            chosen = chosen.reshape(*chosen.shape, *(1,) * (value.ndim - chosen.ndim))
            values = value if values is None else torch.where(chosen, value, values)
        assert values is not None
        return values

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        flat = self.draw(shape.numel(), generator)
        return flat.reshape(*shape, *self.batch_shape, *self.event_shape)


@dataclass(frozen=True)
class Predictive:
    """The averaged distribution of one variable given the others.

    Attributes
    ----------
    distribution : ``Categorical`` of mean probabilities or an ``AveragedDistribution``; batch shape ``(B,)``
    members : the distributions of the single θ
    """

    distribution: Distribution
    members: tuple[Distribution, ...]

    @property
    def mean(self) -> Tensor:
        """Mean of the distribution ``(B, *event)``; of a finite variable, its probabilities ``(B, K)``."""
        return (
            self.distribution.probs
            if isinstance(self.distribution, Categorical)
            else self.distribution.mean
        )

    def energy(self, value: Tensor) -> Tensor:
        """−log p of values ``(B, *event)``, never above the mean over the members, ``(B,)``."""
        return -self.distribution.log_prob(value)

    def member_energies(self, value: Tensor) -> Tensor:
        """−log p under each member, ``(M, B)``."""
        return torch.stack([-distribution.log_prob(value) for distribution in self.members])


@torch.no_grad()
def posterior_predictive(
    draws: ThetaDraws,
    x: Tensor | Mapping[str, Tensor] | None = None,
    *,
    free: str | None = None,
    T: float = 1.0,
) -> Predictive:
    r"""The mean of :math:`p(y\mid x,\theta_m)` over draws of θ.

    Parameters
    ----------
    draws : ``ParameterEnergy.draws(...)`` or ``Snapshots.draws``
    x : the given variables by name; a tensor stands for ``x``; None gives nothing
    free : the predicted variable; None is the one that is not given
    T : temperature of the member distributions

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> energy = LinearEnergy(1, 2)
    >>> theta = torch.tensor([[-1.0, 1.0, 0.0, 0.0], [-3.0, 3.0, 0.0, 0.0]])
    >>> predictive = posterior_predictive(ThetaDraws(energy, theta, ("W", "b")), torch.ones(1, 1))
    >>> [round(v, 3) for v in predictive.mean[0].tolist()]
    [0.061, 0.939]
    """
    given: dict[str, Tensor] = {"x": x} if isinstance(x, Tensor) else dict(x or {})
    energy = draws.energy
    if free is None:
        hidden = [name for name in energy.spaces if name not in given]
        if len(hidden) != 1:
            raise Unsupported(
                f"one variable is predicted at a time, and {', '.join(hidden) or 'nothing'} is not "
                "given; name it with free= and give the others"
            )
        free = hidden[0]

    def distribution_of(member: Energy) -> Distribution:
        return posterior(member, free, given, T=T)

    members = tuple(_frozen(draws.call(m, distribution_of)) for m in range(len(draws)))
    finite = [
        distribution.probs for distribution in members if isinstance(distribution, Categorical)
    ]
    if len(finite) == len(members):
        probs = torch.stack(finite).mean(0)
        return Predictive(Categorical(probs=probs, validate_args=False), members)
    return Predictive(AveragedDistribution(members), members)


def _frozen(distribution: Distribution) -> Distribution:
    """Lazy attributes of a distribution are taken while its parameters are in place."""
    if isinstance(distribution, Categorical):
        return Categorical(logits=distribution.logits, validate_args=False)
    return distribution
