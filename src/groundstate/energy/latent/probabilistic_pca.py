r"""A linear decoder with Gaussian noise, :math:`e = -\log N(x; Wz + b, \Psi) - \log N(z; 0, \sigma^2I)`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal, Normal

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.compose.hidden import Marginal
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.distributions.operations import draw, gaussian_moments
from groundstate.math.linalg.weighted_least_squares import regression_sums, solve_regression

TINY = 1e-12  # of the mean variance: the least noise that statistics may leave


@registered(
    r"e(x, z) = \|x - Wz - b\|^2/(2\nu) + \|z\|^2/(2\sigma^2) + \tfrac d2\log 2\pi\nu"
    r" + \tfrac l2\log 2\pi\sigma^2",
    lambda: ProbabilisticPCAEnergy(2, 1, noise=0.5),
)
class ProbabilisticPCAEnergy(Energy):
    r"""A Gaussian code, decoded linearly, with noise of variance ν,
    :math:`e(x, z) = \frac{\|x - Wz - b\|^2}{2\nu} + \frac{\|z\|^2}{2\sigma^2}
    + \tfrac d2\log 2\pi\nu + \tfrac l2\log 2\pi\sigma^2`.

    It is normalised over x and z for every θ. With :math:`A = W^\top W/\nu + I/\sigma^2` the code's
    distribution is
    :math:`z\mid x \sim N(A^{-1}W^\top(x-b)/\nu,\ A^{-1})`, and summed over z it is the Gaussian
    :math:`x \sim N(b,\ \sigma^2WW^\top + \nu I)`, so missing coordinates have a closed form too.

    Parameters
    ----------
    d : number of features
    l : length of the code
    noise : the initial ν
    prior_variance : σ², which is not learned
    scale : standard deviation of the initial W
    generator : source of the initial W

    Attributes
    ----------
    W : Parameter, ``(d, l)``
    b : Parameter, ``(d,)``
    log_noise : Parameter, ``()``; :math:`\log\nu`

    Examples
    --------
    >>> e = ProbabilisticPCAEnergy(2, 1)
    >>> _ = e.W.data.copy_(torch.tensor([[1.0], [2.0]]))
    >>> round(e.code(torch.tensor([[2.0, 1.0]])).mean.item(), 4)  # Wᵀx / (‖W‖² + ν)
    0.6667
    """

    normalised = frozenset({"x", "z"})
    gaussian = frozenset({"x", "z"})

    def __init__(
        self,
        d: int,
        l: int,
        *,
        noise: float = 1.0,
        prior_variance: float = 1.0,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), z=Real(l))
        if not noise > 0:
            raise ValueError(f"noise is a variance and must be positive, got {noise}")
        if not prior_variance > 0:
            raise ValueError(f"prior_variance must be positive, got {prior_variance}")
        self.prior_variance = float(prior_variance)
        self.W = nn.Parameter(normal(d, l, scale=scale, generator=seeded(generator)))
        self.b = nn.Parameter(torch.zeros(d))
        self.log_noise = nn.Parameter(self._initial(math.log(noise)))

    def _initial(self, log_noise: float) -> Tensor:
        return torch.tensor(log_noise)

    def config(self) -> dict[str, Any]:
        d, l = self.W.shape
        return {"d": d, "l": l, "prior_variance": self.prior_variance}

    @property
    def noise(self) -> Tensor:
        """ν, a scalar; with a variance for each feature, ``(d,)``."""
        return self.log_noise.exp()

    @property
    def _rate(self) -> Tensor:
        """:math:`W^\\top\\Psi^{-1}`, ``(l, d)``."""
        return self.W.T / self.noise

    def _log_volume(self) -> Tensor:
        """:math:`\\log\\det\\Psi`."""
        return self.log_noise * len(self.b)

    def decode(self, z: Tensor) -> Tensor:
        """Wz + b, ``(B, d)``."""
        return torch.addmm(self.b, z, self.W.T)

    def covariance(self) -> Tensor:
        """Of x with the code summed out, :math:`\\sigma^2WW^\\top + \\Psi`, ``(d, d)``."""
        noise = torch.diag(self.noise.expand(len(self.b)))
        return self.prior_variance * (self.W @ self.W.T) + noise

    def precision(self) -> Tensor:
        r""":math:`(\sigma^2WW^\top + \Psi)^{-1} = \Psi^{-1} - \Psi^{-1}WA^{-1}W^\top\Psi^{-1}`, ``(d, d)``."""
        if self.noise.ndim:  # one ν near zero would leave nothing of that difference
            return torch.cholesky_inverse(torch.linalg.cholesky(self.covariance()))
        rate = self._rate
        own = torch.diag(1 / self.noise.expand(len(self.b)))
        return own - rate.T @ torch.cholesky_solve(rate, self._factor())

    def _constant(self) -> Tensor:
        d, l = self.W.shape
        fixed = (d + l) * math.log(2 * math.pi) + l * math.log(self.prior_variance)
        return 0.5 * (self._log_volume() + fixed)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        misfit = ((x - self.decode(z)).square() / self.noise).sum(-1)
        return 0.5 * (misfit + z.square().sum(-1) / self.prior_variance) + self._constant()

    def _A(self) -> Tensor:
        eye = torch.eye(self.W.shape[1], dtype=self.W.dtype, device=self.W.device)
        return self._rate @ self.W + eye / self.prior_variance  # (l, l)

    def _factor(self) -> Tensor:
        return torch.linalg.cholesky(self._A())

    def _mean(self, x: Tensor, factor: Tensor) -> Tensor:
        return torch.cholesky_solve(self._rate @ (x - self.b).T, factor).T  # (B, l)

    @offers.argmin("z")
    def encode(self, x: Tensor) -> Tensor:
        return self._mean(x, self._factor())

    @offers.conditional("z")
    def code(self, x: Tensor, T: float = 1.0) -> MultivariateNormal:
        A = self._A()
        mean = self._mean(x, torch.linalg.cholesky(A))
        return MultivariateNormal(mean, precision_matrix=A / T, validate_args=False)

    @offers.conditional("x", partial=True)
    def around(
        self, z: Tensor, T: float = 1.0, x: Tensor | None = None, mask: Tensor | None = None
    ) -> Distribution:
        """x given its code: N(Wz + b, Tν); with ``mask``, of the free coordinates of ``x``."""
        mean, variance = self.decode(z), self.noise * T
        if x is not None and mask is not None:
            own = torch.diag(1 / variance.expand(len(self.b)))
            return PartlyKnownNormal(mean, own, x, mask)
        scale = variance.sqrt().expand_as(mean)
        return torch.distributions.Independent(Normal(mean, scale, validate_args=False), 1)

    @offers.log_partition("z")
    def log_evidence(self, x: Tensor, T: float = 1.0) -> Tensor:
        factor = self._factor()
        lowest = self(x=x, z=self._mean(x, factor))
        volume = 0.5 * len(factor) * math.log(2 * math.pi * T) - factor.diagonal().log().sum()
        return volume - lowest / T

    @offers.log_partition("x")
    def given_code(self, z: Tensor, T: float = 1.0) -> Tensor:
        volume = 0.5 * (len(self.b) * math.log(2 * math.pi * T) + self._log_volume())
        return volume - (0.5 * z.square().sum(-1) / self.prior_variance + self._constant()) / T

    @offers.log_partition("x", "z")
    def total(self, T: float = 1.0) -> Tensor:
        if T == 1:
            return self.W.new_zeros(1)
        d, l = self.W.shape
        fixed = (d + l) * math.log(2 * math.pi * T) + l * math.log(self.prior_variance)
        volume = 0.5 * (self._log_volume() + fixed)
        return (volume - self._constant() / T).reshape(1)

    def marginal(self, *variables: str, T: float = 1.0, method: Any = None) -> Marginal:
        """Without its code, x has the distribution N(b, T(σ²WWᵀ + Ψ)), also in part."""
        if variables == ("z",) and method is None:
            return DecodedMarginal(self, ("z",), T)
        return super().marginal(*variables, T=T, method=method)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: a code from the prior, then x around its image."""
        generator = seeded(generator)
        zero = self.W.new_zeros(self.W.shape[1])
        z = draw(Normal(zero, zero + (T * self.prior_variance) ** 0.5), n, generator)
        return {"x": draw(self.around(z, T), 1, generator)[0], "z": z}

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, z: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Sums for the regression of x on z; ``z`` as a Gaussian distribution gives expected sums."""
        mean, cov = gaussian_moments(z) if isinstance(z, Distribution) else (z, None)
        square = x.double().square()
        square = square.sum(0) if weights is None else weights.double() @ square
        return {**regression_sums(weights, mean, x, cov), "square": square}

    @offers.from_stats
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """W and b by regression; ν is the mean squared residual of a coordinate, or of each."""
        W, b = solve_regression(stats)
        n = stats["n"]
        fit = (W * stats["xy"].T).sum(1) + b * stats["y"]  # normal equations: Σx(Wz + b)
        mean = (lambda v: v) if self.log_noise.ndim else torch.mean
        noise = mean((stats["square"] - fit) / n)
        least = TINY * mean(stats["square"] / n) + torch.finfo(torch.float64).tiny
        with torch.no_grad():
            self.W.copy_(W)
            self.b.copy_(b)
            self.log_noise.copy_(torch.maximum(noise, least).log())


@registered(
    r"e(x, z) = \tfrac12(x - Wz - b)^\top\Psi^{-1}(x - Wz - b) + \tfrac12\|z\|^2"
    r" + \tfrac12\log\det 2\pi\Psi + \tfrac l2\log 2\pi",
    lambda: FactorAnalysisEnergy(2, 1, noise=0.5),
)
class FactorAnalysisEnergy(ProbabilisticPCAEnergy):
    r"""A Gaussian code, decoded linearly, with a noise variance for each feature,
    :math:`e(x, z) = \tfrac12(x - Wz - b)^\top\Psi^{-1}(x - Wz - b) + \tfrac12\|z\|^2
    + \tfrac12\log\det 2\pi\Psi + \tfrac l2\log 2\pi`.

    Parameters
    ----------
    d, l, noise, prior_variance, scale, generator : as of `ProbabilisticPCAEnergy`

    Attributes
    ----------
    W : Parameter, ``(d, l)``
    b : Parameter, ``(d,)``
    log_noise : Parameter, ``(d,)``; :math:`\log\psi`

    Examples
    --------
    >>> e = FactorAnalysisEnergy(3, 1, noise=0.5)
    >>> e.covariance().diagonal().allclose(e.W[:, 0] ** 2 + 0.5)
    True
    """

    def _initial(self, log_noise: float) -> Tensor:
        return torch.full((len(self.b),), log_noise)

    def _log_volume(self) -> Tensor:
        return self.log_noise.sum()


class DecodedMarginal(Marginal):
    r"""``ProbabilisticPCAEnergy`` with the code summed out: the distribution of x is Gaussian."""

    energy: ProbabilisticPCAEnergy
    mixes = False

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if kind == "conditional" and variables == {"x"}:
            return self._distribution
        return super()._derived(kind, variables)

    def _distribution(
        self, *, T: float = 1.0, x: Tensor | None = None, mask: Tensor | None = None
    ) -> Distribution:
        if self.T != T:
            raise Unsupported(
                f"a marginal at T={self.T} is a distribution at T={self.T}, not at T={T}"
            )
        energy = self.energy
        if x is not None and mask is not None:
            return PartlyKnownNormal(energy.b, energy.precision() / T, x, mask)
        return MultivariateNormal(energy.b[None], T * energy.covariance(), validate_args=False)
