r"""A network gives the distribution of the outcome: :math:`e(x, y) = -\log p(y \mid f_\theta(x))`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy import spaces
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Count, Finite, Real, Space
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import minus_log, somewhere, tempered
from groundstate.nn.blocks.mlp import network
from groundstate.nn.heads import base as heads

SPACES: dict[heads.Kind, Callable[[int], Space]] = {
    "real": Real,
    "positive": lambda m: Real(m, low=0.0),
    "unit": lambda m: Real(m, low=0.0, high=1.0),
    "angle": lambda m: Real(m, low=-math.pi, high=math.pi),
    "binary": Binary,
    "count": Count,
    "labels": Finite,
    "ranking": lambda m: spaces.Sequence(Finite(m), m),
}
HEADS: dict[str, Callable[[int], Space]] = {  # name -> space of y
    name: SPACES[family.kind] for name, family in heads.FAMILIES.items()
}


@registered(r"e(x, y) = -\log p(y \mid f_\theta(x))", lambda: DistributionHead("normal", 3, 2))
class DistributionHead(Energy):
    r"""Choose a distribution with the support of y and let a network give its parameters,
    :math:`e(x, y) = -\log p(y \mid f_\theta(x))`.

    Normalised over y, so lowering e on the data is maximum likelihood. Several outputs are
    independent given x and add. ``"categorical"`` is one label with m classes, ``"plackett_luce"``
    a ranking of m items; a sequence that is no ranking has the energy +inf.

    Parameters
    ----------
    family : a name of ``HEADS``, the distributions of ``groundstate.nn.heads.base``
    d : number of features
    m : number of coordinates of y, of classes, or of items
    net : hidden sizes (``()`` is linear), or a module to ``(B, head.n_outputs)``
    activation : of the hidden layers
    link : how raw numbers become positive, "softplus" or "exp"
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
        link: heads.Link = "softplus",
        generator: torch.Generator | None = None,
    ) -> None:
        if family not in HEADS:
            raise Unsupported(f"family {family!r} is not known; use one of {', '.join(HEADS)}")
        super().__init__(**{given: Real(d), variable: HEADS[family](m)})
        self.family, self.d, self.m, self.link = family, d, m, link
        self.variable, self.input, self.activation = variable, given, activation
        self.normalised = frozenset({variable})
        is_normal = family in ("normal", "multivariate_normal")
        self.gaussian = frozenset({variable}) if is_normal else frozenset()
        self.head = heads.DistributionHead(family, m, link)
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        self.net = network(net, d, self.head.n_outputs, generator, activation)

    def config(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "d": self.d,
            "m": self.m,
            "net": self.net if self.sizes is None else list(self.sizes),
            "activation": self.activation,
            "variable": self.variable,
            "given": self.input,
            "link": self.link,
        }

    @staticmethod
    def upgrade_config(config: dict[str, Any]) -> dict[str, Any]:
        """An earlier name of Student's distribution."""
        return {
            **config,
            "family": {"student": "student_t"}.get(config["family"], config["family"]),
        }

    def distribution(self, x: Tensor) -> Distribution:
        """The distribution of y, batch shape ``(B,)``."""
        return self.head.dist(self.net(x))

    def forward(self, **values: Tensor) -> Tensor:
        return minus_log(self.distribution(values[self.input]), values[self.variable])

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
        return tempered(self.distribution(given[self.input]), T)

    def _log_partition(self, *, T: float = 1.0, **given: Tensor) -> Tensor:
        x = given[self.input]
        if T == 1:
            return x.new_zeros(x.shape[0])
        distribution = self.distribution(x)
        hot = tempered(distribution, T)
        y = somewhere(hot).detach()
        return distribution.log_prob(y) / T - hot.log_prob(y)
