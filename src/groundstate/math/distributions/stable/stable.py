r"""Stable distributions: those of sums that keep their shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, biject_to, constraints
from torch.distributions.utils import broadcast_all

from groundstate.math.distributions.stable.integrals import distribution_function, log_density
from groundstate.math.distributions.stable.table import tabulated

BLOCK = 2**14  # integrals at a time
CACHED = 2**13  # draws at a time


class _Stability(constraints.Constraint):
    """(0, 2]."""

    lower_bound, upper_bound = 0.0, 2.0

    def check(self, value: Tensor) -> Tensor:
        return (value > 0) & (value <= 2)


@biject_to.register(_Stability)
def _unbounded(constraint: _Stability) -> Any:
    return biject_to(constraints.interval(constraint.lower_bound, constraint.upper_bound))


class Stable(Distribution):
    r"""The distribution with characteristic function

    .. math:: \log\varphi(t) = i\mu t
              - |ct|^\alpha\bigl(1 - i\beta\,\mathrm{sign}(t)\tan\tfrac{\pi\alpha}2\bigr)

    (parametrisation S1; for :math:`\alpha = 1` the bracket is
    :math:`1 + i\beta\tfrac2\pi\mathrm{sign}(t)\log|t|`).

    A sum of independent stable variables of one α is stable again. α = 2 is the normal distribution of
    variance :math:`2c^2`, α = 1, β = 0 Cauchy's, α = ½, β = 1 Lévy's. Below 2 the tails fall like
    :math:`|x|^{-\alpha}` and the variance is infinite, up to 1 the mean too.

    Densities are Zolotarev's integrals, to about ten digits, tails included. Where one distribution
    scores many values they are interpolated in a table of a few hundred. Draws are those of Chambers,
    Mallows and Stuck. Everything is differentiable in x and in the four parameters.

    Parameters
    ----------
    alpha : stability in (0, 2]
    beta : skewness in [−1, 1]
    scale : c, positive
    loc : μ

    Examples
    --------
    >>> x = torch.tensor([0.0, 1.0]).double()
    >>> Stable(2.0).log_prob(x).exp()[0].item(), Stable(1.0).log_prob(x).exp()[0].item()
    (0.28209479177387..., 0.31830988618379...)
    >>> round(Stable(0.5, 1.0).log_prob(x).exp()[1].item(), 6)
    0.241971
    """

    arg_constraints = {
        "alpha": _Stability(),
        "beta": constraints.interval(-1, 1),
        "scale": constraints.positive,
        "loc": constraints.real,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        alpha: Any,
        beta: Any = 0.0,
        scale: Any = 1.0,
        loc: Any = 0.0,
        validate_args: bool | None = None,
    ) -> None:
        given = [alpha, beta, scale, loc]
        if not any(isinstance(v, Tensor) for v in given):
            given = [torch.as_tensor(v, dtype=torch.float64) for v in given]
        self.alpha, self.beta, self.scale, self.loc = broadcast_all(*given)
        single = all(not isinstance(v, Tensor) or v.numel() == 1 for v in (alpha, beta))
        self._single = single or self.alpha.numel() == 1  # one shape for all of the batch
        super().__init__(self.alpha.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return torch.where(self.alpha > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return torch.where(self.alpha == 2, 2 * self.scale.square(), math.inf)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Stable:
        parts = (self.alpha, self.beta, self.scale, self.loc)
        alpha, beta, scale, loc = (v.expand(batch_shape) for v in parts)
        out = Stable(alpha, beta, scale, loc, validate_args=False)
        out._single = self._single
        return out

    def _shift(self) -> Tensor:
        """What a scale adds to the location where α = 1."""
        moved = (2 / math.pi) * self.beta * self.scale * self.scale.log()
        return torch.where(self.alpha == 1, moved, 0.0)

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self.loc - self._shift()) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._standard(value)
        closed = self._closed(z)
        if closed is None:
            closed = self._by(log_density, z)
        return closed - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """P(X ≤ value), differentiable."""
        return self._by(distribution_function, self._standard(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function, by bisection, differentiable."""
        from groundstate.math.distributions.calculus.cumulative import inverted

        return inverted(self, value)

    def _closed(self, z: Tensor) -> Tensor | None:
        """Normal, Cauchy and Lévy where the parameters are theirs and are not being learned."""
        if not self._single or self.alpha.requires_grad or self.beta.requires_grad:
            return None
        alpha, beta = self._shape()
        if alpha == 2:
            return -0.25 * z.square() - 0.5 * math.log(4 * math.pi)
        if alpha == 1 and beta == 0:
            return -torch.log1p(z.square()) - math.log(math.pi)
        if alpha == 0.5 and abs(beta) == 1:
            y = z * beta
            safe = torch.where(y > 0, y, 1.0)
            log_p = -0.5 * math.log(2 * math.pi) - 0.5 / safe - 1.5 * safe.log()
            return torch.where(y > 0, log_p, -math.inf)
        return None

    def _shape(self) -> tuple[float, float]:
        """α and β where they are the same for all of the batch."""
        return float(self.alpha.detach().flatten()[0]), float(self.beta.detach().flatten()[0])

    def _by(self, function: Callable[[Tensor, Tensor, Tensor], Tensor], z: Tensor) -> Tensor:
        if self._single and z.numel():
            found = tabulated(function, z, self.alpha.flatten()[0], self.beta.flatten()[0])
            if found is not None:
                return found
        alpha, beta = self.alpha.expand(z.shape), self.beta.expand(z.shape)
        flat = [v.reshape(-1).split(BLOCK) for v in (z, alpha, beta)]
        parts = [function(*block) for block in zip(*flat)]
        return torch.cat(parts).reshape(z.shape) if parts else z

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.scale * self._noise(shape, None) + (self.loc + self._shift())

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, *batch)`` from an explicit generator."""
        with torch.no_grad():
            z = self._noise(torch.Size([n, *self.batch_shape]), generator)
            return torch.addcmul(self.loc + self._shift(), z, self.scale, out=z)

    def _noise(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Standard draws, in blocks that stay in the cache where the parameters are plain numbers."""
        device = self.loc.device if generator is None else generator.device
        like: dict[str, Any] = {"dtype": self.loc.dtype, "device": device}
        learned = self.alpha.requires_grad or self.beta.requires_grad
        if learned or not self._single or device.type != "cpu":
            u, v = (torch.rand(shape, generator=generator, **like) for _ in range(2))
            return self._of(u.to(self.loc.device), v.to(self.loc.device))
        z = torch.empty(shape, **like)
        for part in z.view(-1).split(CACHED):
            u = torch.rand(len(part), generator=generator, **like)
            part.copy_(self._of(u, part.uniform_(generator=generator)))
        return z.to(self.loc.device)

    def _of(self, u: Tensor, v: Tensor) -> Tensor:
        """Chambers, Mallows and Stuck's function of two uniform variables, which it overwrites."""
        angle = u.sub_(0.5).mul_(math.pi)
        w = v.neg_().log1p_().neg_().clamp_(min=torch.finfo(v.dtype).tiny)  # exponential
        if self._single and not (self.alpha.requires_grad or self.beta.requires_grad):
            alpha, beta = self._shape()
            return _unit(angle, w, beta) if alpha == 1 else _general_(angle, w, alpha, beta)
        one = self.alpha == 1
        safe = torch.where(one, 1.5, self.alpha)
        return torch.where(one, _unit(angle, w, self.beta), _general(angle, w, safe, self.beta))

    @classmethod
    def fit(cls, x: Any) -> Stable:
        """The distribution whose quantiles match those of a sample (McCulloch 1986).

        A quick, consistent start; ``stats.fit_mle(Stable, x)`` goes on from it.

        Parameters
        ----------
        x : ``(n,)``

        Examples
        --------
        >>> x = Stable(1.5, 0.5).draw(20_000, torch.Generator().manual_seed(0))
        >>> found = Stable.fit(x)
        >>> bool((found.alpha - 1.5).abs() < 0.05), bool((found.beta - 0.5).abs() < 0.1)
        (True, True)
        """
        from groundstate.math.distributions.stable.mcculloch import quantile_fit

        return cls(*quantile_fit(x))


def _general(angle: Tensor, w: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    slope = beta * torch.tan(0.5 * math.pi * alpha)
    turned, across = alpha * angle + torch.atan(slope), torch.cos(angle)
    rest = (torch.cos(angle - turned) / (w * across)).log() * ((1 - alpha) / alpha)
    return torch.sin(turned) / across * (rest + (1 + slope.square()).log() / (2 * alpha)).exp()


def _general_(angle: Tensor, w: Tensor, alpha: float, beta: float) -> Tensor:
    """The same for plain numbers, in the memory of ``angle`` and ``w``."""
    slope = beta * math.tan(0.5 * math.pi * alpha)
    turned = torch.mul(angle, alpha).add_(math.atan(slope))
    rest, across = torch.sub(angle, turned).cos_(), angle.cos_()
    rest.div_(w.mul_(across)).log_().mul_((1 - alpha) / alpha)
    rest.add_(math.log(1 + slope**2) / (2 * alpha)).exp_()
    return turned.sin_().div_(across).mul_(rest)


def _unit(angle: Tensor, w: Tensor, beta: Any) -> Tensor:
    level = 0.5 * math.pi + beta * angle
    inner = (0.5 * math.pi * w * torch.cos(angle) / level).log()
    return (2 / math.pi) * (level * torch.tan(angle) - beta * inner)
