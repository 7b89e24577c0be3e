r"""Generalised linear models: a linear score sets the mean of a distribution, :math:`e = -\log p(y; \mu)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Count, Real, Space
from groundstate.errors import Unsupported
from groundstate.math.distributions import Bernoulli, Categorical, Family, Gaussian, family_of
from groundstate.math.distributions.links import Link, Logit, Softmax, link_of
from groundstate.math.distributions.operations import tempered


def space_of_family(family: Family, m: int) -> Space:
    """Where m values of a family live."""
    if family.whole:
        return Binary(m) if family.high == 1 else Count(m)
    return Real(m, low=0.0) if family.low == 0 else Real(m)


def _example() -> Energy:
    energy = GLMEnergy(3, 1, "poisson")
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[0.3, -0.5, 0.2]]))
    return energy


@registered(r"e(x, y) = -\log p(y;\, \mu = g^{-1}(Wx + b),\, \varphi)", _example)
class GLMEnergy(Energy):
    r"""Minus the log probability of y under a family whose mean follows a linear score,
    :math:`e(x, y) = -\log p(y;\, \mu, \varphi)`, :math:`g(\mu) = Wx + b + o`.

    Since :math:`e = d(y, \mu)/(2\varphi) + h(y, \varphi)` with the unit deviance d, lowering e in W
    is lowering the deviance. Several outputs are independent given x and add.

    Parameters
    ----------
    d : number of features
    m : number of outputs
    family : a name of ``groundstate.math.distributions.FAMILIES`` or a ``Family``
    link : a name of ``groundstate.math.distributions.links.LINKS``, a ``Link``, or ``"canonical"``
    bias : whether there is a ``b``

    Attributes
    ----------
    W : Parameter, ``(m, d)``
    b : Parameter, ``(m,)``
    phi : buffer, ``(m,)``; the dispersion φ, 1 until it is estimated

    Examples
    --------
    >>> e = GLMEnergy(1, family="poisson")
    >>> x, y = torch.zeros(1, 1), torch.tensor([[0.0]])
    >>> e(x=x, y=y).item(), e.mean(x).item()  # a count of 0 where the mean is exp(0)
    (1.0, 1.0)
    """

    context = ("offset",)
    normalised = frozenset({"y"})
    W: Tensor
    b: Tensor | None
    phi: Tensor

    def __init__(
        self,
        d: int,
        m: int = 1,
        family: Family | str = "poisson",
        link: Link | str = "canonical",
        bias: bool = True,
    ) -> None:
        self_family = family_of(family)
        if isinstance(self_family, Categorical) or isinstance(link, Softmax) or link == "softmax":
            raise Unsupported(
                "GLMEnergy has one score per output; for labels of one of K classes use "
                "LinearEnergy with SoftMin (LogisticRegression)"
            )
        super().__init__(x=Real(d), y=space_of_family(self_family, m))
        self.d, self.m, self.bias = d, m, bias
        self.family = self_family
        self.link = self_family.canonical if link == "canonical" else link_of(link)
        self.gaussian = frozenset({"y"}) if isinstance(self_family, Gaussian) else frozenset()
        self.W = nn.Parameter(torch.zeros(m, d))
        self.b = nn.Parameter(torch.zeros(m)) if bias else None
        self.register_buffer("phi", torch.ones(m))

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "m": self.m, "family": self.family, "link": self.link, "bias": self.bias,
        }  # fmt: skip

    def score(self, x: Tensor, offset: Tensor | None = None) -> Tensor:
        """η = Wx + b + o, ``(B, m)``; sparse rows stay sparse."""
        eta = x @ self.W.T
        if self.b is not None:
            eta = eta + self.b
        return eta if offset is None else eta + offset.reshape(len(eta), -1)

    def mean(self, x: Tensor, offset: Tensor | None = None) -> Tensor:
        """μ, ``(B, m)``."""
        return self.link.inverse(self.score(x, offset))

    def spread(self, x: Tensor, offset: Tensor | None = None) -> Tensor:
        """Standard deviation of y, ``(B, m)``."""
        return (self.phi * self.family.variance(self.mean(x, offset))).sqrt()

    def forward(self, x: Tensor, y: Tensor, offset: Tensor | None = None) -> Tensor:
        eta = self.score(x, offset)
        if isinstance(self.family, Bernoulli) and isinstance(self.link, Logit):
            return -_coins(eta).log_prob(y).sum(-1)  # exact in the tails, where μ rounds to 0 or 1
        return -self.family.log_prob(y, self.link.inverse(eta), self.phi).sum(-1)

    @offers.conditional("y")
    def distribution(self, x: Tensor, offset: Tensor | None = None, T: float = 1.0) -> Distribution:
        eta = self.score(x, offset)
        if isinstance(self.family, Bernoulli) and isinstance(self.link, Logit):
            distribution: Distribution = _coins(eta)
        else:
            distribution = self.family.distribution(self.link.inverse(eta), self.phi)
        return tempered(D.Independent(distribution, 1, validate_args=False), T)

    @offers.log_partition("y")
    def constant(self, x: Tensor, offset: Tensor | None = None, T: float = 1.0) -> Tensor:
        if T != 1:
            distribution, hot = self.distribution(x, offset), self.distribution(x, offset, T)
            y = hot.mean.detach()
            return distribution.log_prob(y) / T - hot.log_prob(y)
        return self.W.new_zeros(x.shape[0])


def _coins(eta: Tensor) -> Distribution:
    return D.Bernoulli(logits=eta, validate_args=False)
