r"""The empirical distribution of a sample, :math:`\frac1n\sum_i\delta_{x_i}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.math.arrays import as_tensor


class Empirical(Distribution):
    r"""Weights on points: :math:`\sum_i w_i\delta_{x_i}`, :math:`\sum w = 1`.

    Expectations are weighted means, the distribution function is a staircase, a draw is a bootstrap draw.

    Parameters
    ----------
    x : points ``(n,)`` or ``(n, d)``
    weights : ``(n,)``, not negative; None gives each 1/n

    Examples
    --------
    >>> p = Empirical([3.0, 1.0, 1.0, 2.0])
    >>> p.cdf(torch.tensor([0.0, 1.0, 2.5])).tolist(), float(p.quantile(0.5))
    ([0.0, 0.5, 0.75], 1.0)
    >>> float(p.expectation(lambda v: v**2))
    3.75
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_enumerate_support = True

    def __init__(self, x: Any, weights: Any = None) -> None:
        self.x = as_tensor(x, "x")
        if self.x.ndim not in (1, 2) or len(self.x) == 0:
            raise ValueError(f"x must be points (n,) or (n, d), n ≥ 1, got {tuple(self.x.shape)}")
        n = len(self.x)
        if weights is None:
            w = torch.full((n,), 1 / n, dtype=self.x.dtype, device=self.x.device)
        else:
            w = as_tensor(weights, "weights", self.x).to(self.x.dtype)
            if w.shape != (n,) or bool((w < 0).any()) or not float(w.detach().sum()) > 0:
                raise ValueError("weights must be one number per point, at least 0, not all 0")
            w = w / w.sum()
        self.weights = w
        super().__init__(torch.Size(), self.x.shape[1:], validate_args=False)
        if self.x.ndim == 1:
            self._sorted, order = self.x.detach().sort(stable=True)
            self._steps = w.detach()[order].cumsum(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(x: {tuple(self.x.shape)})"

    @property
    def support(self) -> Any:
        return constraints.real if self.x.ndim == 1 else constraints.real_vector

    def expectation(self, f: Callable[[Tensor], Tensor]) -> Tensor:
        r""":math:`\sum_i w_i f(x_i)`."""
        values = f(self.x)
        return torch.tensordot(self.weights.to(values.dtype), values, 1)

    @property
    def mean(self) -> Tensor:
        return self.expectation(lambda v: v)

    @property
    def variance(self) -> Tensor:
        return self.expectation(lambda v: (v - self.mean).square())

    def cdf(self, value: Any) -> Tensor:
        """P(X ≤ value), a staircase; one column only."""
        self._flat("cdf")
        at = torch.as_tensor(value, device=self.x.device).to(self.x.dtype)
        below = torch.searchsorted(self._sorted, at, right=True)
        steps = torch.cat([self._steps.new_zeros(1), self._steps[:-1], self._steps.new_ones(1)])
        return steps[below]

    def icdf(self, value: Any) -> Tensor:
        """The smallest point with P(X ≤ point) ≥ value."""
        self._flat("icdf")
        q = torch.as_tensor(value, device=self.x.device).to(self._steps.dtype)
        if not bool(((q >= 0) & (q <= 1)).all()):
            raise ValueError("quantiles are asked for at q between 0 and 1")
        # the sum of weights may miss a step by rounding
        place = torch.searchsorted(self._steps, q - 4 * torch.finfo(q.dtype).eps, right=False)
        return self._sorted[place.clamp(max=len(self._sorted) - 1)]

    def quantile(self, q: float) -> Tensor:
        """``icdf`` at one probability."""
        return self.icdf(q)

    def log_prob(self, value: Tensor) -> Tensor:
        """log of the weight that lies exactly on a value; −inf between points."""
        value = torch.as_tensor(value, device=self.x.device).to(self.x.dtype)
        same = value.unsqueeze(-1 - (self.x.ndim - 1)) == self.x
        hit = same.all(-1) if self.x.ndim == 2 else same
        return torch.where(hit, self.weights, 0.0).sum(-1).log()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self.x

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n rows with replacement: a bootstrap draw."""
        return self._at(torch.rand(n, generator=generator, dtype=torch.float64,
                                   device=generator.device))  # fmt: skip

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        u = torch.rand(shape.numel(), dtype=torch.float64)
        return self._at(u).reshape(*shape, *self.event_shape)

    def _at(self, u: Tensor) -> Tensor:
        total = self.weights.detach().double().cumsum(0)
        place = torch.searchsorted(total, u.to(total.device) * total[-1], right=True)
        return self.x.detach()[place.clamp(max=len(total) - 1)]

    def smooth(self, bandwidth: float | str = "silverman", kernel: str = "gaussian") -> Any:
        """The kernel density of the points: a fitted ``sklearn.neighbors.KernelDensity``."""
        from sklearn.neighbors import KernelDensity

        points = self.x.detach().cpu().double().numpy().reshape(len(self.x), -1)
        weight = self.weights.detach().cpu().double().numpy() * len(points)
        return KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(points, sample_weight=weight)

    def _flat(self, what: str) -> None:
        if self.x.ndim != 1:
            raise ValueError(f"{what} is for points of one column, these have {self.x.shape[1]}")
