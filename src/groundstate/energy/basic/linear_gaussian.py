r"""The linear-Gaussian latent energy, :math:`\tfrac12\|x-Wz-b\|^2+\|z\|^2/(2s^2)`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal, Normal

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distributions.operations import draw, fresh, gaussian_moments, isotropic
from groundstate.math.linalg.weighted_least_squares import regression_sums, solve_regression


@registered(
    r"e(x, z) = \tfrac12\|x - Wz - b\|^2 + \|z\|^2/(2s^2)",
    lambda: LinearGaussianEnergy(3, 2, s=1.5),
)
class LinearGaussianEnergy(Energy):
    r"""A linear decoder with a Gaussian code,
    :math:`e(x, z) = \tfrac12\|x - Wz - b\|^2 + \|z\|^2/(2s^2)`.

    With :math:`A = W^\top W + I/s^2` the code's distribution is
    :math:`z \mid x \sim N(A^{-1}W^\top(x-b),\ T A^{-1})`: ridge regression of x on the columns of
    W. The joint normaliser :math:`(2\pi T)^{(d+l)/2}s^l` is free of W and b.

    Parameters
    ----------
    d : number of features
    l : length of the code
    s : standard deviation of the code under the prior
    scale : standard deviation of the initial W
    generator : source of the initial W

    Attributes
    ----------
    W : Parameter, ``(d, l)``
    b : Parameter, ``(d,)``

    Examples
    --------
    >>> e = LinearGaussianEnergy(2, 1, s=2.0)
    >>> _ = e.W.data.copy_(torch.tensor([[1.0], [2.0]])), e.b.data.copy_(torch.tensor([0.5, -1.0]))
    >>> round(e.code(torch.tensor([[2.0, 1.0]])).mean.item(), 4)
    1.0476
    """

    gaussian = frozenset({"x", "z"})

    def __init__(
        self,
        d: int,
        l: int,
        s: float = 1.0,
        *,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), z=Real(l))
        if not s > 0:
            raise ValueError(f"s is a standard deviation and must be positive, got {s}")
        self.s = float(s)
        self.W = nn.Parameter(normal(d, l, scale=scale, generator=seeded(generator)))
        self.b = nn.Parameter(torch.zeros(d))

    def config(self) -> dict[str, Any]:
        return {"d": self.W.shape[0], "l": self.W.shape[1], "s": self.s}

    def decode(self, z: Tensor) -> Tensor:
        """Wz + b, ``(B, d)``."""
        return torch.addmm(self.b, z, self.W.T)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        fit = (x - self.decode(z)).square().sum(-1)
        return 0.5 * (fit + z.square().sum(-1) / self.s**2)

    def _precision(self) -> Tensor:
        eye = torch.eye(self.W.shape[1], dtype=self.W.dtype, device=self.W.device)
        return self.W.T @ self.W + eye / self.s**2  # (l, l)

    def _mean(self, x: Tensor, chol: Tensor) -> Tensor:
        return torch.cholesky_solve(((x - self.b) @ self.W).T, chol).T  # (B, l)

    def joint_precision(self) -> Tensor:
        r"""Precision of (x, z), :math:`\begin{pmatrix}I & -W\\ -W^\top & W^\top W + s^{-2}I\end{pmatrix}`."""
        eye = torch.eye(self.W.shape[0], dtype=self.W.dtype, device=self.W.device)
        top = torch.cat([eye, -self.W], 1)
        return torch.cat([top, torch.cat([-self.W.T, self._precision()], 1)])

    def joint_covariance(self) -> Tensor:
        r"""Covariance of (x, z),
        :math:`\begin{pmatrix}I + s^2WW^\top & s^2W\\ s^2W^\top & s^2I\end{pmatrix}`."""
        d, l = self.W.shape
        eye = torch.eye(d + l, dtype=self.W.dtype, device=self.W.device)
        both = torch.cat([self.W, torch.eye(l, dtype=self.W.dtype, device=self.W.device)])
        noise = eye.clone()
        noise[d:, d:] = 0
        return noise + self.s**2 * both @ both.T

    def marginal_x(self) -> MultivariateNormal:
        r"""The distribution of x, :math:`N(b, I + s^2WW^\top)`."""
        d = len(self.b)
        return MultivariateNormal(self.b, self.joint_covariance()[:d, :d], validate_args=False)

    def unit_bound(self, x: Tensor) -> Tensor:
        r"""The bound on :math:`\log p(x)` of :math:`q(z) = N(\mu, I)` at its best μ, the posterior
        mean, ``(B,)``: what is left of a posterior whose spread is not learned."""
        return self.marginal_x().log_prob(x) - self.unit_gap()

    def unit_gap(self) -> Tensor:
        r""":math:`\mathrm{KL}(N(\mu, I)\,\|\,p(z \mid x)) = \tfrac12[\operatorname{tr}A - l -
        \log\det A]` with the precision A of the posterior, the same for every x."""
        A = self._precision()
        return 0.5 * (A.trace() - len(A) - torch.linalg.slogdet(A).logabsdet)

    @offers.argmin("z")
    def encode(self, x: Tensor) -> Tensor:
        return self._mean(x, torch.linalg.cholesky(self._precision()))

    @offers.conditional("z")
    def code(self, x: Tensor, T: float = 1.0) -> MultivariateNormal:
        A = self._precision()
        mean = self._mean(x, torch.linalg.cholesky(A))
        return MultivariateNormal(mean, precision_matrix=A / T, validate_args=False)

    @offers.conditional("x")
    def around(self, z: Tensor, T: float = 1.0) -> Distribution:
        mean = self.decode(z)
        return isotropic(mean, T**0.5)

    @offers.log_partition("z")
    def log_evidence(self, x: Tensor, T: float = 1.0) -> Tensor:
        chol = torch.linalg.cholesky(self._precision())
        lowest = self(x=x, z=self._mean(x, chol))
        volume = 0.5 * len(chol) * math.log(2 * math.pi * T) - chol.diagonal().log().sum()
        return volume - lowest / T

    @offers.log_partition("x")
    def given_code(self, z: Tensor, T: float = 1.0) -> Tensor:
        volume = 0.5 * self.W.shape[0] * math.log(2 * math.pi * T)
        return volume - z.square().sum(-1) / (2 * self.s**2 * T)

    @offers.log_partition("x", "z")
    def total(self, T: float = 1.0) -> Tensor:
        d, l = self.W.shape
        return self.W.new_full(
            (1,), 0.5 * (d + l) * math.log(2 * math.pi * T) + l * math.log(self.s)
        )

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: a code from the prior, then x around its image."""
        generator = fresh(generator)
        zero = self.W.new_zeros(self.W.shape[1])
        z = draw(Normal(zero, zero + self.s * T**0.5), n, generator)
        return {"x": draw(self.around(z, T), 1, generator)[0], "z": z}

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, z: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Sums for the regression of x on z; ``z`` as a Gaussian distribution gives expected sums."""
        if isinstance(z, Distribution):
            mean, cov = gaussian_moments(z)
            return regression_sums(weights, mean, x, cov)
        return regression_sums(weights, z, x)

    @offers.from_stats
    def from_stats(self, stats: dict[str, Tensor], l2: float = 0.0) -> None:
        W, b = solve_regression(stats, l2)
        with torch.no_grad():
            self.W.copy_(W)
            self.b.copy_(b)


def best_squared_weights(variances: Tensor, s: float = 1.0, *, unit: bool = False) -> Tensor:
    r"""Squared lengths of the columns of W that fit these variances of x best,
    :math:`\max(0, (\lambda_i - 1)/s^2)`.

    With the posterior replaced by :math:`N(\mu, I)` (``unit=True``) the bound is largest at
    :math:`\max(0, \sqrt{\lambda_i}/s - 1/s^2)`: learning with too small a family makes another model.

    >>> best_squared_weights(torch.tensor([9.0, 4.0, 0.5]))
    tensor([8., 3., 0.])
    >>> best_squared_weights(torch.tensor([9.0, 4.0, 0.5]), unit=True)
    tensor([2., 1., 0.])
    """
    best = variances.sqrt() / s - 1 / s**2 if unit else (variances - 1) / s**2
    return best.clamp_min(0.0)


LinearGaussianLVM = LinearGaussianEnergy
