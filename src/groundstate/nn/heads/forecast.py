r"""Heads of forecasts: several quantiles at once, a mixture for each number, values of any scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional as F

from groundstate.math.distributions.operations import draw
from groundstate.nn.heads.base import Head

QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
_HALVINGS = 60  # of an interval of quantiles: to the last digit of float64


class QuantilesHead(Head):
    r"""Several quantiles of every coordinate,
    :math:`\ell = \frac1Q\sum_q\sum_j\max(q\,r_{qj}, (q-1)\,r_{qj})`, :math:`r_{qj} = y_j - f_{qj}`.

    Each output is least for its quantile. Outputs are sorted when they are read, so that they do not
    cross; between them quantiles are linear, beyond them constant.

    Parameters
    ----------
    m : coordinates of y
    quantiles : increasing, in (0, 1), with 0.5 among them

    Examples
    --------
    >>> head = QuantilesHead(1, (0.1, 0.5, 0.9))
    >>> head(torch.zeros(1, 3), torch.ones(1, 1)).item(), head.mean(torch.tensor([[-1.0, 0.0, 2.0]])).item()
    (0.5, 0.0)
    """

    kind = "real"
    name = "quantiles"
    is_likelihood = False

    def __init__(self, m: int = 1, quantiles: Sequence[float] = QUANTILES) -> None:
        super().__init__()
        self.quantiles = tuple(float(q) for q in quantiles)
        rising = all(a < b for a, b in zip(self.quantiles, self.quantiles[1:]))
        if (
            not rising
            or 0.5 not in self.quantiles
            or not 0 < self.quantiles[0] < self.quantiles[-1] < 1
        ):
            raise ValueError(
                f"quantiles must increase within (0, 1) and hold 0.5, got {self.quantiles}"
            )
        self.m, self.n_outputs = m, m * len(self.quantiles)

    def config(self) -> dict[str, Any]:
        return {"m": self.m, "quantiles": list(self.quantiles)}

    def _levels(self, raw: Tensor) -> Tensor:
        return torch.tensor(self.quantiles, dtype=raw.dtype, device=raw.device)

    def _each(self, raw: Tensor) -> Tensor:
        return self.raw(raw).view(len(raw), self.m, -1)  # (B, m, Q)

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        r = self.target(y, raw)[..., None] - self._each(raw)
        q = self._levels(raw)
        return torch.maximum(q * r, (q - 1) * r).mean(-1).sum(-1)

    def at(self, raw: Tensor, q: Tensor) -> Tensor:
        """The q-quantile of every coordinate, ``(B, m)``, for q of that shape."""
        values, levels = self._each(raw).sort(-1).values, self._levels(raw)
        right = torch.searchsorted(levels, q.contiguous()).clamp(1, len(levels) - 1)
        a, b = levels[right - 1], levels[right]
        share = ((q - a) / (b - a)).clamp(0, 1)
        low, high = (values.take_along_dim(i[..., None], -1)[..., 0] for i in (right - 1, right))
        return low + share * (high - low)

    def mean(self, raw: Tensor) -> Tensor:
        """The median."""
        return self.at(raw, raw.new_full((len(raw), self.m), 0.5))

    mode = mean
    predict = mean

    def interval(self, raw: Tensor, level: float = 0.95) -> Tensor:
        least = 1 - 2 * self.quantiles[0]
        if level > least + 1e-9 or level > 2 * self.quantiles[-1] - 1 + 1e-9:
            raise ValueError(
                f"a band of {level:g} lies outside the learned quantiles {self.quantiles}; at most "
                f"{least:g}, or add quantiles"
            )
        ends = ((1 - level) / 2, (1 + level) / 2)
        return torch.stack([self.at(raw, raw.new_full((len(raw), self.m), q)) for q in ends])

    def sample(self, raw: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of every coordinate, ``(B, m)``."""
        u = torch.rand(len(raw), self.m, generator=generator, device=raw.device, dtype=raw.dtype)
        return self.at(raw, u)


class NormalMixtureHead(Head):
    r"""A mixture of K normal distributions for every coordinate,
    :math:`\ell = -\sum_j\log\sum_k\pi_{jk}N(y_j; \mu_{jk}, \sigma_{jk}^2)`.

    Parameters
    ----------
    m : coordinates of y
    k : components

    Examples
    --------
    >>> head = NormalMixtureHead(2, 3)
    >>> head.n_outputs, head(torch.zeros(4, 18), torch.zeros(4, 2)).shape
    (18, torch.Size([4]))
    """

    kind = "real"
    name = "normal_mixture"
    has_dist = True

    def __init__(self, m: int = 1, k: int = 3) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"a mixture has at least 1 component, got {k}")
        self.m, self.k, self.n_outputs = m, k, 3 * m * k

    def config(self) -> dict[str, Any]:
        return {"m": self.m, "k": self.k}

    def _mixture(self, raw: Tensor) -> D.MixtureSameFamily:
        logits, mu, scale = self.raw(raw).view(len(raw), self.m, 3, self.k).unbind(2)
        # means that begin in different places find different modes
        mu = mu + torch.linspace(-1, 1, self.k, dtype=raw.dtype, device=raw.device) * (self.k > 1)
        normal = D.Normal(mu, F.softplus(scale) + 1e-3, validate_args=False)
        weights = D.Categorical(logits=logits, validate_args=False)
        return D.MixtureSameFamily(weights, normal, validate_args=False)

    def dist(self, raw: Tensor) -> Distribution:
        return D.Independent(self._mixture(raw), 1, validate_args=False)

    def interval(self, raw: Tensor, level: float = 0.95) -> Tensor:
        return torch.stack([self._quantile(raw, q) for q in ((1 - level) / 2, (1 + level) / 2)])

    def _quantile(self, raw: Tensor, q: float) -> Tensor:
        mixture = self._mixture(raw)
        parts: Any = mixture.component_distribution
        low = (parts.mean - 10 * parts.stddev).amin(-1)
        high = (parts.mean + 10 * parts.stddev).amax(-1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = mixture.cdf(middle) < q
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2

    def sample(self, raw: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of every coordinate, ``(B, m)``."""
        mixture = self._mixture(raw)
        parts: Any = mixture.component_distribution
        own: Any = mixture.mixture_distribution
        u = torch.rand(len(raw), self.m, 1, generator=generator, device=raw.device, dtype=raw.dtype)
        which = (own.probs.cumsum(-1) < u).sum(-1, keepdim=True).clamp_max(self.k - 1)
        noise = torch.randn(u.shape, generator=generator, device=raw.device, dtype=raw.dtype)
        drawn = (
            parts.mean.take_along_dim(which, -1) + parts.stddev.take_along_dim(which, -1) * noise
        )
        return drawn[..., 0]


class ScaledHead(Head):
    r"""Another head for :math:`(y - \mu)/s`, with the mean and scale of the targets:
    :math:`\ell = \ell'(f, (y-\mu)/s) + \sum_j\log s_j` where :math:`\ell'` is a likelihood, so that it is
    one of y.

    Parameters
    ----------
    head : of values of unit scale

    Attributes
    ----------
    shift, scale : buffers ``(m,)``

    Examples
    --------
    >>> from groundstate.nn.heads.base import DistributionHead
    >>> head = ScaledHead(DistributionHead("normal")).set(torch.tensor([10.0]), torch.tensor([2.0]))
    >>> head.mean(torch.zeros(1, 2)).item()
    10.0
    """

    kind = "real"
    shift: Tensor
    scale: Tensor

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head, self.m, self.n_outputs = head, head.m, head.n_outputs
        self.name, self.is_likelihood = head.name, head.is_likelihood
        self.has_dist = head.has_dist
        self.register_buffer("shift", torch.zeros(head.m))
        self.register_buffer("scale", torch.ones(head.m))

    def config(self) -> dict[str, Any]:
        return {"head": self.head}

    @torch.no_grad()
    def set(self, shift: Tensor, scale: Tensor) -> ScaledHead:
        """Mean and scale of every coordinate, ``(m,)``."""
        self.shift.copy_(shift)
        self.scale.copy_(scale)
        return self

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        own: Tensor = self.head(raw, (self.target(y, raw) - self.shift) / self.scale)
        return own + self.scale.log().sum() if self.is_likelihood else own

    def dist(self, raw: Tensor) -> Distribution:
        moved = D.AffineTransform(self.shift, self.scale, event_dim=1)
        return D.TransformedDistribution(self.head.dist(raw), [moved], validate_args=False)

    def mean(self, raw: Tensor) -> Tensor:
        return self.head.mean(raw) * self.scale + self.shift

    predict = mean

    def mode(self, raw: Tensor) -> Tensor:
        return self.head.mode(raw) * self.scale + self.shift

    def interval(self, raw: Tensor, level: float = 0.95) -> Tensor:
        return self.head.interval(raw, level) * self.scale + self.shift

    def sample(self, raw: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of every coordinate, ``(B, m)``."""
        own: Any = self.head
        drawn = (
            own.sample(raw, generator)
            if hasattr(own, "sample")
            else draw(own.dist(raw), 1, generator)[0]
        )
        return drawn * self.scale + self.shift
