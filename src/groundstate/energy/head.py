r"""A network gives the law of the outcome: :math:`e(x, y) = -\log p(y \mid f_\theta(x))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn.functional import softplus

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Count, Finite, Real, Space
from groundstate.errors import Unsupported
from groundstate.math.laws import minus_log, somewhere, tempered
from groundstate.nn.mlp import network


def _positive(a: Tensor) -> Tensor:
    return softplus(a) + 1e-6


@dataclass(frozen=True)
class Family:
    """How raw network outputs become a law of y with m coordinates."""

    outputs: int  # numbers per coordinate
    law: Callable[[list[Tensor]], Distribution]  # from ``outputs`` tensors (B, m)
    space: Callable[[int], Space]


def _unit(m: int) -> Space:
    return Real(m, low=0.0, high=1.0)


def _above(m: int) -> Space:
    return Real(m, low=0.0)


def _law(family: Any, *arguments: Tensor) -> Distribution:
    law: Distribution = family(*arguments, validate_args=False)
    return law


HEADS: dict[str, Family] = {
    "normal": Family(2, lambda p: _law(D.Normal, p[0], _positive(p[1])), Real),
    "laplace": Family(2, lambda p: _law(D.Laplace, p[0], _positive(p[1])), Real),
    "student": Family(
        3, lambda p: _law(D.StudentT, 2 + _positive(p[2]), p[0], _positive(p[1])), Real
    ),
    "bernoulli": Family(1, lambda p: D.Bernoulli(logits=p[0], validate_args=False), Binary),
    "poisson": Family(1, lambda p: _law(D.Poisson, _positive(p[0])), Count),
    "exponential": Family(1, lambda p: _law(D.Exponential, _positive(p[0])), _above),
    "gamma": Family(2, lambda p: _law(D.Gamma, _positive(p[0]), _positive(p[1])), _above),
    "lognormal": Family(2, lambda p: _law(D.LogNormal, p[0], _positive(p[1])), _above),
    "beta": Family(2, lambda p: _law(D.Beta, _positive(p[0]), _positive(p[1])), _unit),
}


@registered(r"e(x, y) = -\log p(y \mid f_\theta(x))", lambda: DistributionHead("normal", 3, 2))
class DistributionHead(Energy):
    r"""Choose a law with the support of y and let a network give its parameters,
    :math:`e(x, y) = -\log p(y \mid f_\theta(x))`.

    Normalised over y, so lowering e on the data is maximum likelihood. Several outputs are
    independent given x and add. ``"categorical"`` is one label with m classes.

    Parameters
    ----------
    family : a name of ``HEADS``, or ``"categorical"``
    d : number of features
    m : number of coordinates of y, or of classes
    net : hidden sizes (``()`` is linear), or a module to ``(B, outputs * m)``
    activation : of the hidden layers
    variable, given : names of the outcome and of the input
    generator : source of the initial weights

    Examples
    --------
    >>> e = DistributionHead("poisson", 3, net=())
    >>> e.spaces["y"], e.ability("conditional", "y")(x=torch.zeros(2, 3)).batch_shape
    (Count(1), torch.Size([2]))
    """

    def __init__(
        self,
        family: str,
        d: int,
        m: int = 1,
        net: Sequence[int] | nn.Module = (),
        activation: str = "tanh",
        *,
        variable: str = "y",
        given: str = "x",
        generator: torch.Generator | None = None,
    ) -> None:
        if family not in HEADS and family != "categorical":
            raise Unsupported(
                f"family {family!r} is not known; use one of {', '.join([*HEADS, 'categorical'])}"
            )
        outputs = 1 if family == "categorical" else HEADS[family].outputs
        space = Finite(m) if family == "categorical" else HEADS[family].space(m)
        super().__init__(**{given: Real(d), variable: space})
        self.family, self.d, self.m, self.outputs = family, d, m, outputs
        self.variable, self.input, self.activation = variable, given, activation
        self.normalised = frozenset({variable})
        self.gaussian = frozenset({variable}) if family == "normal" else frozenset()
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        self.net = network(net, d, outputs * m, generator, activation)

    def config(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "d": self.d,
            "m": self.m,
            "net": self.net if self.sizes is None else list(self.sizes),
            "activation": self.activation,
            "variable": self.variable,
            "given": self.input,
        }

    def law(self, x: Tensor) -> Distribution:
        """The law of y, batch shape ``(B,)``."""
        raw: Tensor = self.net(x)
        if self.family == "categorical":
            return D.Categorical(logits=raw, validate_args=False)
        pieces = list(raw.view(x.shape[0], self.outputs, self.m).unbind(1))
        return D.Independent(HEADS[self.family].law(pieces), 1, validate_args=False)

    def forward(self, **values: Tensor) -> Tensor:
        return minus_log(self.law(values[self.input]), values[self.variable])

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if variables != self.normalised:
            return None
        if kind == "table" and self.family == "categorical":
            return lambda **given: -torch.log_softmax(self.net(given[self.input]), -1)
        abilities: dict[str, Callable[..., Any]] = {
            "conditional": self._conditional,
            "log_partition": self._log_partition,
        }
        return abilities.get(kind)

    def _derived_keys(self) -> list[tuple[str, frozenset[str]]]:
        return [(k, self.normalised) for k in ("table", "conditional", "log_partition")]

    def _conditional(self, *, T: float = 1.0, **given: Tensor) -> Distribution:
        return tempered(self.law(given[self.input]), T)

    def _log_partition(self, *, T: float = 1.0, **given: Tensor) -> Tensor:
        x = given[self.input]
        if T == 1:
            return x.new_zeros(x.shape[0])
        law = self.law(x)
        hot = tempered(law, T)
        y = somewhere(hot).detach()
        return law.log_prob(y) / T - hot.log_prob(y)


__all__ = ["HEADS", "DistributionHead", "Family"]
