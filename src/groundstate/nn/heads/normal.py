r"""A normal outcome whose variance is fixed, common to all rows, or a function of the input."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.nn.heads.base import Head

LOG_2PI = math.log(2 * math.pi)
CLAMP = 20.0  # of log σ²: from 2e-9 to 5e8


class NormalHead(Head):
    r"""The normal distribution of y, :math:`\ell = \tfrac12\log 2\pi\sigma^2 + (y - \mu)^2/(2\sigma^2)`.

    With "fixed" variance the minimiser is that of least squares whatever σ is, and the gradient in
    μ is that of the squared error over :math:`2\sigma^2`. With "learned" variance σ is one number
    per coordinate, and at the optimum :math:`\hat\sigma^2` is the mean squared residual. With "net"
    the network gives :math:`\log\sigma^2(x)` beside :math:`\mu(x)`, clamped to [−20, 20].

    Parameters
    ----------
    m : coordinates of y
    scale : "net", "learned" or "fixed"
    sigma : the fixed σ, or the start of the learned one
    param : what the network gives for "net": "log_var", or "std" for :math:`\sigma^2 = f_2^2`

    Attributes
    ----------
    log_var : Parameter ``(m,)`` with scale="learned"

    Examples
    --------
    >>> NormalHead(scale="fixed")(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([1.4189])
    """

    kind = "real"
    name = "normal"

    def __init__(
        self,
        m: int = 1,
        scale: Literal["net", "learned", "fixed"] = "net",
        sigma: float = 1.0,
        param: Literal["log_var", "std"] = "log_var",
    ) -> None:
        super().__init__()
        if scale not in ("net", "learned", "fixed"):
            raise ValueError(f"scale must be 'net', 'learned' or 'fixed', got {scale!r}")
        if param not in ("log_var", "std"):
            raise ValueError(f"param must be 'log_var' or 'std', got {param!r}")
        if not sigma > 0:
            raise ValueError(f"sigma must be positive, got {sigma}")
        self.m, self.scale, self.sigma, self.param = m, scale, float(sigma), param
        self.n_outputs = 2 * m if scale == "net" else m
        if scale == "learned":
            self.log_var = nn.Parameter(torch.full((m,), 2 * math.log(sigma)))

    def config(self) -> dict[str, Any]:
        return {"m": self.m, "scale": self.scale, "sigma": self.sigma, "param": self.param}

    def extra_repr(self) -> str:
        return f"m={self.m}, scale={self.scale!r}"

    def moments(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """μ and log σ², each ``(B, m)``."""
        raw = self.raw(raw)
        if self.scale == "fixed":
            return raw, torch.full_like(raw, 2 * math.log(self.sigma))
        if self.scale == "learned":
            return raw, self.log_var.clamp(-CLAMP, CLAMP).expand_as(raw)
        mu, second = raw.split(self.m, 1)
        if self.param == "std":
            second = second.square().clamp_min(torch.finfo(raw.dtype).tiny).log()
        return mu, second.clamp(-CLAMP, CLAMP)

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        mu, log_var = self.moments(raw)
        square = (self.target(y, raw) - mu).square() * (-log_var).exp()
        return 0.5 * (square + log_var + LOG_2PI).sum(1)

    def dist(self, raw: Tensor) -> Distribution:
        mu, log_var = self.moments(raw)
        distribution = D.Normal(mu, (0.5 * log_var).exp(), validate_args=False)
        return D.Independent(distribution, 1, validate_args=False)
