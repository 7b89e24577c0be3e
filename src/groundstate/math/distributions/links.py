r"""Links: how a linear score :math:`\eta = g(\mu)` becomes the mean :math:`\mu = g^{-1}(\eta)`.

=============  =======================  ==============================
name           :math:`\eta = g(\mu)`    :math:`\mu = g^{-1}(\eta)`
=============  =======================  ==============================
identity       μ                        η
log            log μ                    exp η
logit          log μ/(1 − μ)            σ(η) = 1/(1 + exp(−η))
probit         Φ⁻¹(μ)                   Φ(η)
cloglog        log(−log(1 − μ))         1 − exp(−exp η)
inverse        1/μ                      1/η
inverse_power  μ^−k                     η^(−1/k)
softmax        log μ (sum zero)         exp η / Σ exp η
=============  =======================  ==============================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.errors import Unsupported


class Link(ABC):
    r"""A monotone map :math:`g` between the mean μ and the linear score η.

    Attributes
    ----------
    name : what it is called in menus
    code : number of the link in compiled passes; −1: only here
    low, high : range of means that it can reach
    """

    name: ClassVar[str]
    code: ClassVar[int] = -1
    low: ClassVar[float] = -math.inf
    high: ClassVar[float] = math.inf

    @abstractmethod
    def link(self, mu: Tensor) -> Tensor:
        r""":math:`\eta = g(\mu)`."""

    @abstractmethod
    def inverse(self, eta: Tensor) -> Tensor:
        r""":math:`\mu = g^{-1}(\eta)`."""

    @abstractmethod
    def derivative(self, eta: Tensor) -> Tensor:
        r""":math:`\partial\mu/\partial\eta`."""


@dataclass(frozen=True)
class Identity(Link):
    r""":math:`\mu = \eta`."""

    name = "identity"
    code = 0

    def link(self, mu: Tensor) -> Tensor:
        return mu

    def inverse(self, eta: Tensor) -> Tensor:
        return eta

    def derivative(self, eta: Tensor) -> Tensor:
        return torch.ones_like(eta)


@dataclass(frozen=True)
class Log(Link):
    r""":math:`\mu = e^\eta`.

    >>> Log().inverse(torch.tensor([0.0, 1.0])).tolist()
    [1.0, 2.7182817459106445]
    """

    name = "log"
    code = 1
    low = 0.0

    def link(self, mu: Tensor) -> Tensor:
        return mu.log()

    def inverse(self, eta: Tensor) -> Tensor:
        return eta.exp()

    def derivative(self, eta: Tensor) -> Tensor:
        return eta.exp()


@dataclass(frozen=True)
class Logit(Link):
    r""":math:`\mu = \sigma(\eta) = 1/(1 + e^{-\eta})`; :math:`\sigma' = \sigma(1 - \sigma)`.

    >>> Logit().inverse(torch.tensor([0.0, 1000.0, -1000.0])).tolist()
    [0.5, 1.0, 0.0]
    """

    name = "logit"
    code = 2
    low, high = 0.0, 1.0

    def link(self, mu: Tensor) -> Tensor:
        return mu.log() - torch.log1p(-mu)

    def inverse(self, eta: Tensor) -> Tensor:
        return torch.sigmoid(eta)

    def derivative(self, eta: Tensor) -> Tensor:
        return torch.sigmoid(eta) * torch.sigmoid(-eta)  # 1 − σ would lose the tail


@dataclass(frozen=True)
class Probit(Link):
    r""":math:`\mu = \Phi(\eta)`, the normal distribution function.

    >>> Probit().inverse(torch.tensor([0.0])).item()
    0.5
    """

    name = "probit"
    code = 3
    low, high = 0.0, 1.0

    def link(self, mu: Tensor) -> Tensor:
        return torch.special.ndtri(mu)

    def inverse(self, eta: Tensor) -> Tensor:
        return torch.special.ndtr(eta)

    def derivative(self, eta: Tensor) -> Tensor:
        return torch.exp(-0.5 * eta.square()) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class CLogLog(Link):
    r""":math:`\mu = 1 - e^{-e^\eta}`: the chance that a count with mean :math:`e^\eta` is not zero.

    >>> round(CLogLog().inverse(torch.tensor([0.0])).item(), 6)
    0.632121
    """

    name = "cloglog"
    code = 4
    low, high = 0.0, 1.0

    def link(self, mu: Tensor) -> Tensor:
        return torch.log(-torch.log1p(-mu))

    def inverse(self, eta: Tensor) -> Tensor:
        return -torch.expm1(-eta.exp())

    def derivative(self, eta: Tensor) -> Tensor:
        # e^η e^{−e^η} in one exponent: inf · 0 never arises
        return torch.exp(eta.clamp_max(700.0) - eta.clamp_max(700.0).exp())


@dataclass(frozen=True)
class Inverse(Link):
    r""":math:`\mu = 1/\eta`.

    >>> Inverse().inverse(torch.tensor([4.0])).item()
    0.25
    """

    name = "inverse"
    code = 5

    def link(self, mu: Tensor) -> Tensor:
        return 1 / mu

    def inverse(self, eta: Tensor) -> Tensor:
        return 1 / eta

    def derivative(self, eta: Tensor) -> Tensor:
        return -1 / eta.square()


@dataclass(frozen=True)
class InversePower(Link):
    r""":math:`\mu = \eta^{-1/k}` for positive η; k = 2 is canonical for the inverse Gaussian.

    Parameters
    ----------
    k : the power

    >>> InversePower(2.0).inverse(torch.tensor([4.0])).item()
    0.5
    """

    name = "inverse_power"
    code = 6
    low = 0.0
    k: float = 2.0

    def link(self, mu: Tensor) -> Tensor:
        return mu**-self.k

    def inverse(self, eta: Tensor) -> Tensor:
        return eta ** (-1 / self.k)

    def derivative(self, eta: Tensor) -> Tensor:
        return -(eta ** (-1 / self.k - 1)) / self.k


@dataclass(frozen=True)
class Softmax(Link):
    r""":math:`\mu_k = e^{\eta_k}/\sum_j e^{\eta_j}` over the last axis; K = 2 is σ of the difference.

    ``derivative`` is the Jacobian :math:`\mathrm{diag}\,\mu - \mu\mu^\top`, ``(..., K, K)``.

    >>> [round(p, 6) for p in Softmax().inverse(torch.tensor([1.0, 2.0, 3.0]).double()).tolist()]
    [0.090031, 0.244728, 0.665241]
    """

    name = "softmax"
    low, high = 0.0, 1.0

    def link(self, mu: Tensor) -> Tensor:
        score = mu.log()
        return score - score.mean(-1, keepdim=True)

    def inverse(self, eta: Tensor) -> Tensor:
        return torch.softmax(eta, -1)

    def derivative(self, eta: Tensor) -> Tensor:
        p = self.inverse(eta)
        return torch.diag_embed(p) - p[..., :, None] * p[..., None, :]


LINKS: dict[str, type[Link]] = {
    cls.name: cls for cls in (Identity, Log, Logit, Probit, CLogLog, Inverse, InversePower, Softmax)
}


def link_of(link: Any) -> Link:
    """A link by name, or the object itself.

    >>> link_of("log")
    Log()
    """
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in LINKS:
        return LINKS[link]()
    raise Unsupported(
        f"link {link!r} is not known; use one of {', '.join(LINKS)}, 'canonical' where a family is "
        "at hand, or a Link object"
    )
