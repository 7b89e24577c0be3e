r"""Columns of numbers for a network: robust scales with a smooth clip, and periodic features."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import DataError, ShapeError
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(
    make=lambda: RobustScale(3), batch=rows_of(3), formula=r"u/\sqrt{1+(u/c)^2},\ u=(x-m)/s"
)
class RobustScale(nn.Module):
    r""":math:`c(u) = u/\sqrt{1 + (u/3)^2}` of :math:`u = (x - m)/s`, with what ``fit`` learned.

    m is the median and s the distance between the quartiles; where these are equal s is half the
    range, and a constant column becomes 0. A column of two values, such as a category's own, becomes
    0 for the frequent value and 1 for the rare one before the clip. Outliers stay in order and
    end at ±3, however far they are.

    Parameters
    ----------
    features : D
    limit : where the clip ends; inf clips nothing

    Attributes
    ----------
    centre, factor : buffers ``(D,)``, m and 1/s
    numbers : buffer ``(D,)`` of bool, columns with more than two values

    Examples
    --------
    >>> layer = RobustScale(2).fit(torch.tensor([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 7.0]]))
    >>> layer.numbers.tolist(), layer(torch.tensor([[1.5, 5.0]])).tolist()
    ([True, False], [[0.0, 0.0]])
    """

    centre: Tensor
    factor: Tensor
    numbers: Tensor

    def __init__(self, features: int, limit: float = 3.0) -> None:
        super().__init__()
        self.features, self.limit = features, float(limit)
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("factor", torch.ones(features))
        self.register_buffer("numbers", torch.ones(features, dtype=torch.bool))

    def config(self) -> dict[str, Any]:
        return {"features": self.features, "limit": self.limit}

    @torch.no_grad()
    def fit(self, x: Tensor, sample_weight: Tensor | None = None) -> RobustScale:
        """Learn from rows ``(N, D)``; a weight of 2 is the row twice."""
        self._check(x)
        weight = x.new_ones(len(x)) if sample_weight is None else sample_weight.to(x.device)
        if weight.shape != (len(x),) or not bool((weight > 0).any()):
            raise DataError(
                f"sample_weight needs {len(x)} numbers >= 0 with a positive sum, got "
                f"{tuple(weight.shape)}"
            )
        seen = weight > 0
        rows, order = x[seen].double().sort(0)  # (N, D)
        below = weight[seen].double()[order].cumsum(0)
        low, middle, high = (_quantile(rows, below, q) for q in (0.25, 0.5, 0.75))
        least, most = rows[0], rows[-1]
        spread = torch.where(high > low, high - low, (most - least) / 2)
        inside = (rows > least) & (rows < most)
        two = (most > least) & ~inside.any(0)
        share = torch.where(rows == least, below, 0.0).amax(0) / below[-1]
        often = torch.where(share >= 0.5, least, most)
        rare = torch.where(share >= 0.5, most, least)
        centre = torch.where(two, often, middle)
        spread = torch.where(two, rare - often, spread)
        self.centre = centre.to(self.centre)
        self.factor = torch.where(spread == 0, 0.0, 1 / spread).to(self.factor)
        self.numbers = (most > least) & ~two
        return self

    def _check(self, x: Tensor) -> None:
        if x.shape[-1:] != (self.features,):
            raise ShapeError(f"RobustScale has {self.features} features, got {tuple(x.shape)}")

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        u = (x - self.centre) * self.factor
        return u / torch.hypot(torch.ones_like(u), u / self.limit)  # a square would overflow


def _quantile(rows: Tensor, below: Tensor, q: float) -> Tensor:
    """Quantiles of sorted columns ``(N, D)`` by their cumulative weights; shared ones are averaged."""
    mark, slack = q * below[-1], 1e-12 * below[-1]
    at = (below < mark - slack).sum(0).clamp_max(len(rows) - 1)
    shared = (below.gather(0, at[None])[0] - mark).abs() <= slack
    after = torch.where(shared, at + 1, at).clamp_max(len(rows) - 1)
    return rows.gather(0, at[None])[0] / 2 + rows.gather(0, after[None])[0] / 2


@blocks.register(
    make=lambda: PeriodicEmbedding(3, 4, 3),
    batch=rows_of(3),
    formula=r"(x_d,\ V_d\cos(2\pi\omega_d x_d+\phi_d)+b_d)",
)
class PeriodicEmbedding(nn.Module):
    r"""Every number beside a linear map of its waves,
    :math:`(x_d,\ V_d\cos(2\pi\omega_d x_d + \phi_d) + b_d)`, ``(B, D)`` to ``(B, D · size)``.

    A dense layer sees smooth bumps and steps of each column instead of the column alone. The
    frequencies start at :math:`\omega \sim N(0, \sigma^2)`, small enough to be a smooth function of a
    scaled column, and are learned with the rest at a tenth of the rate.

    Parameters
    ----------
    features : D
    frequencies : waves of each column
    size : numbers that stand for each column, itself included
    sigma : spread of the first frequencies
    generator : of the first values

    Examples
    --------
    >>> PeriodicEmbedding(2, frequencies=8, size=4)(torch.zeros(5, 2)).shape
    torch.Size([5, 8])
    """

    def __init__(
        self,
        features: int,
        frequencies: int = 16,
        size: int = 4,
        sigma: float = 0.1,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if frequencies < 1 or size < 2:
            raise ValueError(
                f"needs at least one frequency and size >= 2, got {frequencies} and {size}"
            )
        self.features, self.frequencies, self.size = features, frequencies, size
        self.sigma = float(sigma)
        own = size - 1
        bound = 1 / math.sqrt(frequencies)

        def drawn(*shape: int) -> Tensor:  # uniform on ±1
            return 2 * torch.rand(shape, generator=generator) - 1

        normal = torch.randn(features, frequencies, generator=generator)
        self.omega = nn.Parameter(self.sigma * normal)
        self.phase = nn.Parameter(math.pi * drawn(features, frequencies))
        self.weight = nn.Parameter(bound * drawn(features, frequencies, own))
        self.bias = nn.Parameter(bound * drawn(features, own))

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "frequencies": self.frequencies, "size": self.size,
            "sigma": self.sigma,
        }  # fmt: skip

    def learning_rate_scales(self) -> list[tuple[nn.Parameter, float]]:
        """Slower than the layers behind: a tenth."""
        return [(p, 0.1) for p in self.parameters()]

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self.features:
            raise ShapeError(
                f"PeriodicEmbedding has {self.features} features, got {tuple(x.shape)}"
            )
        waves = torch.cos(2 * math.pi * x[..., None] * self.omega + self.phase)  # (B, D, F)
        maps = torch.einsum("bdf,dfe->bde", waves, self.weight) + self.bias
        return torch.cat([x[..., None], maps], -1).flatten(1)
