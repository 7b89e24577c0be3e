r"""Lévy's distribution: of :math:`1/Z^2` for a normal Z, and of first passage times."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import broadcast_all

EULER = 0.5772156649015329


class Levy(Distribution):
    r""":math:`p(x) = \sqrt{\frac{c}{2\pi}}\,\frac{e^{-c/(2(x - \mu))}}{(x - \mu)^{3/2}}` for
    :math:`x > \mu`; stable with :math:`\alpha = \tfrac12, \beta = 1`.

    It is :math:`\mu + c/Z^2` and :math:`\mu + \mathrm{InverseGamma}(\tfrac12, c/2)`; its mean is infinite.

    Parameters
    ----------
    loc : μ, the end of the support
    scale : c, positive

    Examples
    --------
    >>> levy = Levy(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    >>> round(float(levy.icdf(torch.tensor(0.5).double())), 7)
    2.1981093
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def support(self) -> Any:
        return constraints.greater_than(self.loc)

    @property
    def mean(self) -> Tensor:
        return torch.full_like(self.loc, math.inf)

    @property
    def variance(self) -> Tensor:
        return torch.full_like(self.loc, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc + self.scale / 3

    def expand(self, batch_shape: Any, _instance: Any = None) -> Levy:
        return Levy(self.loc.expand(batch_shape), self.scale.expand(batch_shape),
                    validate_args=False)  # fmt: skip

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = value - self.loc
        safe = torch.where(y > 0, y, 1.0)
        log_p = 0.5 * (self.scale / (2 * math.pi)).log() - self.scale / (2 * safe)
        return torch.where(y > 0, log_p - 1.5 * safe.log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """P(X ≤ value), differentiable."""
        y = value - self.loc
        safe = torch.where(y > 0, y, 1.0)
        return torch.where(y > 0, torch.erfc((self.scale / (2 * safe)).sqrt()), 0.0)

    def log_sf(self, value: Tensor) -> Tensor:
        """log P(X > value), to full digits far out."""
        y = (value - self.loc).clamp(min=torch.finfo(value.dtype).tiny)
        return torch.erf((self.scale / (2 * y)).sqrt()).log()

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function, differentiable."""
        return self.loc + self.scale / torch.special.ndtri(0.5 * value).square()

    def entropy(self) -> Tensor:
        return 0.5 * (1 + 3 * EULER + math.log(16 * math.pi)) + self.scale.log()

    def _of(self, noise: Tensor) -> Tensor:
        return self.loc + self.scale / noise.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(torch.Size(sample_shape))
        return self._of(torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device))

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, *batch)`` from an explicit generator."""
        size = (n, *self.batch_shape)
        noise = torch.randn(
            size, generator=generator, device=generator.device, dtype=self.loc.dtype
        )
        return self._of(noise.to(self.loc.device))
