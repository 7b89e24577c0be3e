r"""Energies of distributions: :math:`e(x) = -\log p(x)`, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution, constraints, transform_to

from groundstate.energy.abilities import Offer
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Count, Finite, Real, Simplex, Space
from groundstate.errors import Unsupported
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.distributions.operations import (
    draw,
    gaussian_moments,
    is_gaussian,
    minus_log,
    somewhere,
    tempered,
)

# Families that can be taken apart into tensors and put together again, by the arguments kept.
FAMILIES: dict[str, tuple[str, ...]] = {
    "Normal": ("loc", "scale"),
    "MultivariateNormal": ("loc", "scale_tril"),
    "Laplace": ("loc", "scale"),
    "StudentT": ("df", "loc", "scale"),
    "Cauchy": ("loc", "scale"),
    "Uniform": ("low", "high"),
    "Exponential": ("rate",),
    "Gamma": ("concentration", "rate"),
    "Beta": ("concentration1", "concentration0"),
    "LogNormal": ("loc", "scale"),
    "Dirichlet": ("concentration",),
    "Bernoulli": ("logits",),
    "Categorical": ("logits",),
    "Poisson": ("rate",),
    "Geometric": ("logits",),
}


def space_of(distribution: Distribution) -> Space:
    """Where the values of a distribution live, from its support and event shape."""
    base: Distribution = distribution
    while isinstance(base, D.Independent):
        base = base.base_dist
    shape, support = tuple(distribution.event_shape), base.support
    if isinstance(base, D.Categorical):
        return Finite(base.logits.shape[-1])
    if isinstance(base, D.Bernoulli):
        return Binary(*shape)
    if support is constraints.simplex:
        return Simplex(shape[-1])
    if getattr(support, "is_discrete", False):
        return Count(*shape)
    low, high = (_bound(support, side) for side in ("lower_bound", "upper_bound"))
    return Real(*shape, low=low, high=high)


def _bound(support: Any, side: str) -> float | None:
    """A bound that all coordinates share, None where there is none."""
    bound = getattr(support, side, None)
    if bound is None:
        return None
    values = torch.as_tensor(bound).unique()
    return float(values) if values.numel() == 1 else None


@registered(
    r"e(x) = -\log p(x)",
    lambda: DensityEnergy(D.Normal(torch.tensor([0.5, -1.0]), torch.tensor([1.0, 2.0]))),
)
class DensityEnergy(Energy):
    r"""The energy of a distribution, :math:`e(x) = -\log p(x)`, so that :math:`Z = 1`.

    A Gaussian vector may be known in part: its conditional takes the mask of free coordinates.

    Parameters
    ----------
    dist : a torch distribution; its batch axes become axes of the event. Or a mapping with
        ``family`` (a name of ``FAMILIES``), its arguments, and ``event_axes``, as in ``config``.
    variable : name of the variable
    learn : whether the arguments are parameters θ, moved freely within their constraints

    Examples
    --------
    >>> e = DensityEnergy(D.Normal(torch.zeros(2), torch.ones(2)))
    >>> e.spaces["x"], round(float(e(x=torch.zeros(1, 2))), 4)  # log 2 pi
    (Real(2), 1.8379)
    """

    def __init__(
        self,
        dist: Distribution | Mapping[str, Any],
        variable: str = "x",
        *,
        learn: bool = False,
    ) -> None:
        distribution = _from_config(dist) if isinstance(dist, Mapping) else dist
        if distribution.batch_shape:
            distribution = D.Independent(distribution, len(distribution.batch_shape))
        super().__init__(**{variable: space_of(distribution)})
        self.variable, self.learn = variable, learn
        self.normalised = frozenset({variable})
        self.gaussian = (
            frozenset({variable})
            if is_gaussian(distribution) and distribution.event_shape
            else frozenset()
        )
        base: Distribution = distribution
        while isinstance(base, D.Independent):
            base = base.base_dist
        self.family = type(base).__name__
        self.event_axes = len(base.batch_shape)
        self._fixed = None if self.family in FAMILIES else distribution
        if self._fixed is not None and learn:
            raise Unsupported(
                f"{self.family} cannot be learned; use one of {', '.join(FAMILIES)}, or write an "
                "Energy of your own"
            )
        for name in FAMILIES.get(self.family, ()):
            value = getattr(base, name).detach().clone()
            if learn:
                self.register_parameter(name, nn.Parameter(self._free(name).inv(value)))
            else:
                self.register_buffer(name, value)

    def config(self) -> dict[str, Any]:
        if self._fixed is not None:
            raise Unsupported(f"a DensityEnergy of {self.family} cannot be stored")
        base = self.base
        arguments = {name: getattr(base, name).detach() for name in FAMILIES[self.family]}
        dist = {"family": self.family, "event_axes": self.event_axes, **arguments}
        return {"dist": dist, "variable": self.variable, "learn": self.learn}

    def _free(self, name: str) -> Any:
        """The map from an unconstrained parameter to the argument."""
        return transform_to(getattr(D, self.family).arg_constraints[name])

    @property
    def base(self) -> Distribution:
        values = {n: getattr(self, n) for n in FAMILIES[self.family]}
        if self.learn:
            values = {n: self._free(n)(v) for n, v in values.items()}
        return _build(self.family, values)

    @property
    def distribution(self) -> Distribution:
        """The distribution, batch shape ``()``."""
        if self._fixed is not None:
            return self._fixed
        base = self.base
        return D.Independent(base, self.event_axes) if self.event_axes else base

    def forward(self, **values: Tensor) -> Tensor:
        return minus_log(self.distribution, values[self.variable])

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if variables != self.normalised:
            return None
        abilities: dict[str, Callable[..., Any]] = {
            "conditional": self._conditional,
            "log_partition": self._log_partition,
        }
        return abilities.get(kind)

    def _derived_keys(self) -> Iterable[tuple[str, frozenset[str]]]:
        return (("conditional", self.normalised), ("log_partition", self.normalised))

    def offer(self, kind: str, *variables: str) -> Offer | None:
        found = super().offer(kind, *variables)
        if found is not None and kind == "conditional" and len(self._shape) == 1 and self.gaussian:
            return replace(found, partial=True)
        return found

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.spaces[self.variable].shape

    def _conditional(
        self, *, T: float = 1.0, mask: Tensor | None = None, **value: Tensor
    ) -> Distribution:
        if mask is None:
            return tempered(self.distribution, T).expand(torch.Size([1]))
        mean, cov = gaussian_moments(self.distribution)
        return PartlyKnownNormal(mean, torch.linalg.inv(cov) / T, value[self.variable], mask)

    def _log_partition(self, T: float = 1.0) -> Tensor:
        """0 at T = 1, else from :math:`\\log Z = -e(x)/T - \\log p_T(x)` at any x."""
        distribution = self.distribution
        if T == 1:
            device, dtype = self.placement()
            return torch.zeros(1, device=device, dtype=dtype)
        hot = tempered(distribution, T)
        x = somewhere(hot).detach()
        return (distribution.log_prob(x) / T - hot.log_prob(x)).reshape(1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact draws, ``(n, *event)``."""
        return {self.variable: draw(tempered(self.distribution, T), n, generator)}


def _build(family: str, arguments: Mapping[str, Tensor]) -> Distribution:
    distribution: Distribution = getattr(D, family)(**arguments, validate_args=False)
    return distribution


def _from_config(config: Mapping[str, Any]) -> Distribution:
    family = config.get("family")
    if family not in FAMILIES:
        raise Unsupported(f"family {family!r} is not one of {', '.join(FAMILIES)}")
    arguments = {name: torch.as_tensor(config[name]) for name in FAMILIES[str(family)]}
    return _build(str(family), arguments)
