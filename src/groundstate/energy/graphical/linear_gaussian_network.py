r"""A directed graph of real variables, each linear in its parents plus noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.distributions.operations import fresh
from groundstate.math.graphs.dags import topological_order


def _example() -> LinearGaussianNetworkEnergy:
    energy = LinearGaussianNetworkEnergy([[], [0]])
    generator = torch.Generator().manual_seed(0)
    energy.b.data.normal_(generator=generator)
    energy.weights.data.normal_(generator=generator)
    return energy


@registered(
    r"e(x) = \sum_i \tfrac{(x_i - b_i - \sum_{j \in pa(i)} W_{ij}x_j)^2}{2v_i} + \tfrac12\log 2\pi v_i",
    _example,
)
class LinearGaussianNetworkEnergy(Energy):
    r"""Real variables, each a linear function of its parents plus noise,
    :math:`e(x) = \sum_i (x_i - b_i - \sum_{j\in pa(i)}W_{ij}x_j)^2/2v_i + \tfrac12\log 2\pi v_i`.

    Jointly Gaussian with mean :math:`(I - W)^{-1}b` and precision
    :math:`(I - W)^\top V^{-1}(I - W)`; any part of x given the rest is Gaussian too.

    Parameters
    ----------
    parents : of each variable, by number
    floor : smallest noise variance that ``from_stats`` gives, relative to the variable's variance

    Attributes
    ----------
    b : Parameter, ``(d,)``
    weights : Parameter, one number for each arrow
    log_noise : Parameter, ``(d,)``, logarithms of the noise variances v

    Examples
    --------
    >>> e = LinearGaussianNetworkEnergy([[], [0]])
    >>> e.set([0.0, 1.0], {(0, 1): 2.0}, [1.0, 0.5])
    >>> e.covariance().tolist()
    [[1.0, 2.0], [2.0, 4.5]]
    """

    normalised = frozenset({"x"})
    missing = frozenset({"x"})
    gaussian = frozenset({"x"})
    b: Tensor
    weights: Tensor
    log_noise: Tensor
    child: Tensor
    parent: Tensor

    def __init__(self, parents: Sequence[Sequence[int]], floor: float = 1e-12) -> None:
        self.order_of = topological_order(parents)
        super().__init__(x=Real(len(parents)))
        self.parents = [[int(p) for p in above] for above in parents]
        self.floor = float(floor)
        d = len(self.parents)
        pairs = [(i, p) for i, above in enumerate(self.parents) for p in above]
        self.b = nn.Parameter(torch.zeros(d))
        self.weights = nn.Parameter(torch.zeros(len(pairs)))
        self.log_noise = nn.Parameter(torch.zeros(d))
        ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
        self.register_buffer("child", ends[:, 0].clone(), persistent=False)
        self.register_buffer("parent", ends[:, 1].clone(), persistent=False)

    def config(self) -> dict[str, Any]:
        return {"parents": self.parents, "floor": self.floor}

    @torch.no_grad()
    def set(self, b: Any, weights: dict[tuple[int, int], float], noise: Any) -> None:
        """Intercepts, weights by (parent, child) and noise variances."""
        self.b.copy_(torch.as_tensor(b))
        pairs = zip(self.parent.tolist(), self.child.tolist(), strict=True)
        self.weights.copy_(torch.tensor([weights[p] for p in pairs]))
        self.log_noise.copy_(torch.as_tensor(noise).log())

    def matrix(self) -> Tensor:
        """W, ``(d, d)``: row i holds the weights of the parents of i."""
        d = len(self.b)
        W = self.b.new_zeros(d, d)
        return W.index_put((self.child, self.parent), self.weights)

    def forward(self, x: Tensor) -> Tensor:
        off = x - self.b - x @ self.matrix().T
        return 0.5 * (off.square() * (-self.log_noise).exp()).sum(1) + self._constant()

    def _constant(self) -> Tensor:
        return 0.5 * (self.log_noise.sum() + len(self.b) * math.log(2 * math.pi))

    # --- the joint Gaussian --------------------------------------------------------------

    def mean(self) -> Tensor:
        """``(d,)``."""
        out: Tensor = torch.linalg.solve(self._rest(), self.b)
        return out

    def precision(self) -> Tensor:
        """``(d, d)``."""
        R = self._rest()
        return R.T @ ((-self.log_noise).exp()[:, None] * R)

    def covariance(self) -> Tensor:
        """``(d, d)``."""
        spread = torch.linalg.solve(self._rest(), torch.diag((0.5 * self.log_noise).exp()))
        return spread @ spread.T

    def _rest(self) -> Tensor:
        return torch.eye(len(self.b)).to(self.b) - self.matrix()

    @offers.conditional("x", partial=True)
    def conditional(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> PartlyKnownNormal:
        """The Gaussian of the free variables given the others."""
        value = self.b.new_zeros(1, len(self.b)) if x is None else x
        mask = torch.ones_like(value, dtype=torch.bool) if mask is None else mask
        return PartlyKnownNormal(self.mean(), self.precision() / T, value, mask)

    @offers.log_partition("x")
    def total(self, T: float = 1.0) -> Tensor:
        """0 at T = 1; at others the variances are T times as large."""
        volume = self._constant() + 0.5 * len(self.b) * math.log(T)
        return (volume - self._constant() / T).reshape(1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Independent draws at temperature T: noise, then the linear map."""
        generator = fresh(generator)
        with torch.no_grad():
            size = (n, len(self.b))
            noise = torch.randn(size, generator=generator, device=generator.device).to(self.b)
            noise = noise * (0.5 * self.log_noise).exp() * math.sqrt(T)
            return {"x": self.mean() + torch.linalg.solve(self._rest(), noise.T).T}

    # --- learning ------------------------------------------------------------------------

    @offers.stats
    def stats(self, weights: Tensor | None, x: Tensor) -> dict[str, Tensor]:
        """Total weight and first and second moments, in double precision."""
        X = x.double()
        w = X.new_ones(len(X)) if weights is None else weights.double()
        return {"n": w.sum(), "sum": w @ X, "square": (X * w[:, None]).T @ X}

    @torch.no_grad()
    def expected(self, weights: Tensor | None, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Expected ``stats`` of rows whose NaN are unknown, and log p of what is known, ``(B,)``."""
        free = torch.isnan(x)
        if not bool(free.any()):
            return self.stats(weights, x), -self(x=x)
        # double precision throughout: EM subtracts nearly equal moments
        twin = LinearGaussianNetworkEnergy(self.parents).to(x.device, torch.float64)
        twin.load_state_dict(self.state_dict())
        known = torch.where(free, 0.0, x).double()
        posterior = PartlyKnownNormal(twin.mean(), twin.precision(), known, free)
        filled = posterior.mean
        sums = self.stats(weights, filled)
        w = filled.new_ones(len(x)) if weights is None else weights.double()
        precision = twin.precision()
        patterns, group = torch.unique(free, dim=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            at = pattern.nonzero()[:, 0]
            if len(at):
                block = torch.linalg.inv(precision[at[:, None], at]) * w[group == k].sum()
                sums["square"][at[:, None], at] += block
        log_p = -twin(x=filled) - posterior.log_prob(filled)
        return sums, log_p.to(x.dtype)

    @offers.from_stats
    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Least squares of every variable on its parents, and what is left as noise."""
        n, mean = stats["n"], stats["sum"] / stats["n"]
        cov = stats["square"] / n - torch.outer(mean, mean)
        at = 0
        for i, above in enumerate(self.parents):
            variance, left = cov[i, i], cov[i, i]
            intercept = mean[i]
            if above:
                p = torch.tensor(above, device=cov.device)
                inner = cov[p[:, None], p]
                w = torch.linalg.pinv(inner, hermitian=True) @ cov[p, i]  # parents may be collinear
                left = variance - w @ cov[p, i]
                intercept = intercept - w @ mean[p]
                self.weights[at : at + len(above)] = w.to(self.weights)
                at += len(above)
            tiny = self.floor * variance.clamp_min(mean[i].square()).clamp_min(1e-30)
            self.log_noise[i] = left.clamp_min(tiny).log().to(self.log_noise)
            self.b[i] = intercept.to(self.b)
