r"""Regression that learns its noise: :math:`e = \tfrac12\log 2\pi\sigma^2(x) + (y-\mu(x))^2/2\sigma^2(x)`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError
from groundstate.math.distributions.operations import tempered

NOISE = ("log-linear", "constant")
LINKS = ("log", "square")


def _example() -> Energy:
    energy = GaussianNoiseEnergy(2)
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, -0.5]]))
        energy.V.copy_(torch.tensor([[0.4, 0.3]]))
    return energy


@registered(r"e(x, y) = \tfrac12\log 2\pi\sigma^2 + (y-\mu)^2/(2\sigma^2)", _example)
class GaussianNoiseEnergy(Energy):
    r"""Mean and noise both depend on x,
    :math:`e(x, y) = \sum_j \tfrac12\log 2\pi\sigma_j^2 + (y_j - \mu_j)^2/(2\sigma_j^2)`.

    :math:`\mu = Wx + b`; :math:`\log\sigma^2 = Vx + c` for the link "log", and
    :math:`\sigma = Vx + c` with variance :math:`\sigma^2` for "square". Any module can give the two
    instead.

    Parameters
    ----------
    d : number of features
    m : number of outputs
    noise : "log-linear" (depends on x) or "constant"
    link : "log" or "square"
    bias : whether there is a ``b``; ``c`` is always there
    net : a module from ``(B, d)`` to ``(B, 2m)``: the m means, then the m scores of the noise

    Attributes
    ----------
    W, V : Parameters, ``(m, d)``; not with ``net``
    b, c : Parameters, ``(m,)``; not with ``net``
    floor : buffer, ``(m,)``; smallest log variance

    Examples
    --------
    >>> e = GaussianNoiseEnergy(1)
    >>> round(e(x=torch.zeros(1, 1), y=torch.zeros(1, 1)).item(), 6)  # half log 2π
    0.918939
    """

    normalised = frozenset({"y"})
    gaussian = frozenset({"y"})
    W: Tensor
    b: Tensor | None
    V: Tensor
    c: Tensor
    floor: Tensor

    def __init__(
        self,
        d: int,
        m: int = 1,
        noise: str = "log-linear",
        link: str = "log",
        bias: bool = True,
        net: nn.Module | None = None,
    ) -> None:
        if noise not in NOISE or link not in LINKS:
            raise ValueError(
                f"noise must be one of {NOISE} and link one of {LINKS}, got {noise!r} and {link!r}"
            )
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m, self.noise, self.link, self.bias = d, m, noise, link, bias
        self.net = net
        self.register_buffer("floor", torch.full((m,), -60.0))
        if net is None:
            self.W = nn.Parameter(torch.zeros(m, d))
            self.b = nn.Parameter(torch.zeros(m)) if bias else None
            self.V = nn.Parameter(torch.zeros(m, d), requires_grad=noise != "constant")
            self.c = nn.Parameter(torch.full((m,), 0.0 if link == "log" else 1.0))

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "m": self.m, "noise": self.noise, "link": self.link, "bias": self.bias,
            "net": self.net,
        }  # fmt: skip

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean μ and the score of the noise, ``(B, m)`` each."""
        if self.net is None:
            mu = x @ self.W.T
            return mu if self.b is None else mu + self.b, x @ self.V.T + self.c
        both: Tensor = self.net(x)
        if both.shape[1:] != (2 * self.m,):
            raise ShapeError(
                f"the network must give {2 * self.m} numbers per row (means, then noise), got shape "
                f"{tuple(both.shape)}"
            )
        return both[:, : self.m], both[:, self.m :]

    def log_variance(self, score: Tensor) -> Tensor:
        """log σ² of the score of the noise, not below ``floor``."""
        if self.link == "log":
            return torch.maximum(score, self.floor)
        return torch.log(score.square() + self.floor.exp())

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, ``(B, m)`` each."""
        mu, score = self.scores(x)
        return mu, torch.exp(0.5 * self.log_variance(score))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        mu, score = self.scores(x)
        log_v = self.log_variance(score)
        # scaled before it is squared: a far mean with a wide distribution must not be ∞ · 0
        off = (y - mu) * torch.exp(-0.5 * log_v)
        return 0.5 * (math.log(2 * math.pi) + log_v + off.square()).sum(-1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.scores(x)[0]

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        mu, sigma = self.predict(x)
        return tempered(D.Independent(D.Normal(mu, sigma, validate_args=False), 1), T)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        if T == 1:
            return x.new_zeros(x.shape[0])
        log_v = self.log_variance(self.scores(x)[1])
        whole = math.log(2 * math.pi) + log_v
        return (0.5 * (math.log(T) + whole) - 0.5 * whole / T).sum(-1)
