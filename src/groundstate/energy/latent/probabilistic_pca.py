r"""A linear decoder with Gaussian noise, :math:`e = -\log N(x; Wz + b, \nu I) - \log N(z; 0, I)`."""

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
from groundstate.math.distributions.gaussian.pinned import PinnedNormal
from groundstate.math.distributions.operations import draw, gaussian_moments
from groundstate.math.linalg.weighted_least_squares import regression_sums, solve_regression

TINY = 1e-12  # of the mean variance: the least noise that statistics may leave


@registered(
    r"e(x, z) = \|x - Wz - b\|^2/(2\nu) + \tfrac12\|z\|^2 + \tfrac d2\log 2\pi\nu + \tfrac l2\log 2\pi",
    lambda: ProbabilisticPCAEnergy(2, 1, noise=0.5),
)
class ProbabilisticPCAEnergy(Energy):
    r"""A Gaussian code, decoded linearly, with noise of variance ν,
    :math:`e(x, z) = \frac{\|x - Wz - b\|^2}{2\nu} + \tfrac12\|z\|^2 + \tfrac d2\log 2\pi\nu
    + \tfrac l2\log 2\pi`.

    It is normalised over x and z for every θ. With :math:`A = W^\top W/\nu + I` the code's
    distribution is
    :math:`z\mid x \sim N(A^{-1}W^\top(x-b)/\nu,\ A^{-1})`, and summed over z it is the Gaussian
    :math:`x \sim N(b,\ WW^\top + \nu I)`, so missing coordinates have a closed form too.

    Parameters
    ----------
    d : number of features
    l : length of the code
    noise : the initial ν
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
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), z=Real(l))
        if not noise > 0:
            raise ValueError(f"noise is a variance and must be positive, got {noise}")
        self.W = nn.Parameter(normal(d, l, scale=scale, generator=seeded(generator)))
        self.b = nn.Parameter(torch.zeros(d))
        self.log_noise = nn.Parameter(torch.tensor(math.log(noise)))

    def config(self) -> dict[str, Any]:
        return {"d": self.W.shape[0], "l": self.W.shape[1]}

    @property
    def noise(self) -> Tensor:
        """ν, a scalar."""
        return self.log_noise.exp()

    def decode(self, z: Tensor) -> Tensor:
        """Wz + b, ``(B, d)``."""
        return torch.addmm(self.b, z, self.W.T)

    def covariance(self) -> Tensor:
        """Of x with the code summed out, :math:`WW^\\top + \\nu I`, ``(d, d)``."""
        eye = torch.eye(len(self.b), dtype=self.W.dtype, device=self.W.device)
        return self.W @ self.W.T + self.noise * eye

    def precision(self) -> Tensor:
        r""":math:`(WW^\top + \nu I)^{-1} = (I - WA^{-1}W^\top/\nu)/\nu`, ``(d, d)``."""
        eye = torch.eye(len(self.b), dtype=self.W.dtype, device=self.W.device)
        inner = torch.cholesky_solve(self.W.T, self._factor()) / self.noise  # (l, d)
        return (eye - self.W @ inner) / self.noise

    def _constant(self) -> Tensor:
        d, l = self.W.shape
        return 0.5 * (d * self.log_noise + (d + l) * math.log(2 * math.pi))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        misfit = (x - self.decode(z)).square().sum(-1) / self.noise
        return 0.5 * (misfit + z.square().sum(-1)) + self._constant()

    def _A(self) -> Tensor:
        eye = torch.eye(self.W.shape[1], dtype=self.W.dtype, device=self.W.device)
        return self.W.T @ self.W / self.noise + eye  # (l, l)

    def _factor(self) -> Tensor:
        return torch.linalg.cholesky(self._A())

    def _mean(self, x: Tensor, factor: Tensor) -> Tensor:
        return torch.cholesky_solve(((x - self.b) @ self.W).T / self.noise, factor).T  # (B, l)

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
            eye = torch.eye(len(self.b), dtype=x.dtype, device=x.device)
            return PinnedNormal(mean, eye / variance, x, mask)
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
        volume = 0.5 * len(self.b) * (math.log(2 * math.pi * T) + self.log_noise)
        return volume - (0.5 * z.square().sum(-1) + self._constant()) / T

    @offers.log_partition("x", "z")
    def total(self, T: float = 1.0) -> Tensor:
        if T == 1:
            return self.W.new_zeros(1)
        d, l = self.W.shape
        volume = 0.5 * (d * self.log_noise + (d + l) * math.log(2 * math.pi * T))
        return (volume - self._constant() / T).reshape(1)

    def marginal(self, *variables: str, T: float = 1.0, method: Any = None) -> Marginal:
        """Without its code, x has the distribution N(b, T(WWᵀ + νI)), also in part."""
        if variables == ("z",) and method is None:
            return DecodedMarginal(self, ("z",), T)
        return super().marginal(*variables, T=T, method=method)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: a code from the prior, then x around its image."""
        generator = seeded(generator)
        zero = self.W.new_zeros(self.W.shape[1])
        z = draw(Normal(zero, zero + T**0.5), n, generator)
        return {"x": draw(self.around(z, T), 1, generator)[0], "z": z}

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, z: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Sums for the regression of x on z; ``z`` as a Gaussian distribution gives expected sums."""
        mean, cov = gaussian_moments(z) if isinstance(z, Distribution) else (z, None)
        square = x.double().square().sum(-1)
        square = square.sum() if weights is None else square @ weights.double()
        return {**regression_sums(weights, mean, x, cov), "square": square}

    @offers.from_stats
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """W and b by regression; ν is the mean squared residual of a coordinate."""
        W, b = solve_regression(stats)
        n, d = stats["n"], len(b)
        fit = (W * stats["xy"].T).sum() + b @ stats["y"]  # normal equations: Σ⟨x, Wz + b⟩
        noise = (stats["square"] - fit) / (n * d)
        least = TINY * stats["square"] / (n * d) + torch.finfo(torch.float64).tiny
        with torch.no_grad():
            self.W.copy_(W)
            self.b.copy_(b)
            self.log_noise.copy_(torch.maximum(noise, least).log())


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
            return PinnedNormal(energy.b, energy.precision() / T, x, mask)
        return MultivariateNormal(energy.b[None], T * energy.covariance(), validate_args=False)


__all__ = ["DecodedMarginal", "ProbabilisticPCAEnergy"]
