r"""Highest-density sets: the smallest sets that hold a given probability,
:math:`\{y : p(y) \ge t\}` with :math:`P(p(Y) \ge t) = \text{level}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from groundstate.math.distributions.gaussian_mixtures import GaussianMixtureDistribution
from groundstate.math.distributions.operations import fresh

GRID = 97  # points per component on which the density is compared with the threshold
CELLS = 2**22


@dataclass(frozen=True)
class DensitySet:
    r"""The set :math:`\{y : p(y\mid x) \ge t(x)\}` of every row.

    Attributes
    ----------
    level : probability inside
    threshold : t, ``(B,)``
    volume : length (or area, volume) of the set, ``(B,)``
    intervals : in one dimension, B arrays ``(n_intervals, 2)``, ascending; else None
    distribution : the mixtures
    """

    level: float
    threshold: Any
    volume: Any
    intervals: list[Any] | None
    distribution: GaussianMixtureDistribution = field(repr=False)

    def contains(self, y: Any) -> Any:
        """Whether the value of each row lies in its set, bool ``(B,)``."""
        values = torch.as_tensor(y).to(self.distribution.mu).reshape(len(self.threshold), -1)
        inside = (
            self.distribution.log_prob(values) >= torch.as_tensor(self.threshold).to(values).log()
        )
        return inside if isinstance(self.threshold, Tensor) else inside.cpu().numpy()

    def given(self, give: Callable[[Tensor], Any]) -> DensitySet:
        """The same set in another kind of arrays."""
        cut = None if self.intervals is None else [give(i) for i in self.intervals]
        return replace(
            self, threshold=give(self.threshold), volume=give(self.volume), intervals=cut
        )


@torch.no_grad()
def density_set(
    distribution: GaussianMixtureDistribution,
    level: float = 0.9,
    *,
    n_draws: int = 2000,
    generator: torch.Generator | None = None,
) -> DensitySet:
    r"""Draw, score each draw by its density, and keep what lies above the (1 − level) quantile.

    In one dimension the draws are evenly spaced quantiles of the components, so the answer is free
    of noise, and the set is returned as disjoint intervals.

    Parameters
    ----------
    distribution : the mixtures
    level : probability inside, in (0, 1)
    n_draws : per row
    generator : for two and more dimensions

    Examples
    --------
    >>> log_weights = torch.full((1, 2), 0.5).double().log()
    >>> mu = torch.tensor([[[-3.0], [3.0]]]).double()
    >>> distribution = GaussianMixtureDistribution(log_weights, mu, torch.ones(1, 2, 1).double())
    >>> density_set(distribution, 0.9).intervals[0].round(decimals=3).tolist()
    [[-4.645, -1.355], [1.355, 4.645]]
    """
    if not 0 < level < 1:
        raise ValueError(f"level is a probability between 0 and 1, got {level}")
    if n_draws < 100:
        raise ValueError(f"n_draws must be at least 100, got {n_draws}")
    k, d = distribution.mu.shape[-2:]
    generator = None if d == 1 else fresh(generator)
    rows = max(1, CELLS // (n_draws * k * d))
    thresholds, volumes, intervals = list[Tensor](), list[Tensor](), list[Tensor]()
    for at in range(0, len(distribution.mu), rows):
        part = distribution.rows(slice(at, at + rows))
        if d == 1:
            score, weight = _even(part, n_draws)
        else:
            assert generator is not None
            score = part.log_prob(part.draw(n_draws, generator)).T  # (B, n)
            weight = torch.full_like(score, 1 / n_draws)
        t = _quantile(score, weight, 1 - level)
        thresholds.append(t.exp())
        if d == 1:
            cut = _intervals(part, t)
            intervals += cut
            volumes.append(torch.stack([(c[:, 1] - c[:, 0]).sum() for c in cut]))
        else:  # E[1/p; p ≥ t] under p is the volume of {p ≥ t}
            inside = torch.where(score >= t[:, None], (-score).exp(), 0.0)
            volumes.append((weight * inside).sum(1))
    return DensitySet(
        level,
        torch.cat(thresholds),
        torch.cat(volumes),
        intervals if d == 1 else None,
        distribution,
    )


def _even(distribution: GaussianMixtureDistribution, n: int) -> tuple[Tensor, Tensor]:
    """Log densities at quantiles of every component, and their probabilities, ``(B, K*m)``."""
    B, k = distribution.log_weights.shape
    m = max(100, n // k)
    u = (torch.arange(m, dtype=distribution.mu.dtype, device=distribution.mu.device) + 0.5) / m
    y = distribution.mu + distribution.sigma * torch.special.ndtri(u)  # (B, K, m)
    score = _along(distribution, y.flatten(1))
    weight = (distribution.log_weights.exp() / m).unsqueeze(-1).expand(B, k, m).flatten(1)
    return score, weight


def _along(distribution: GaussianMixtureDistribution, y: Tensor) -> Tensor:
    """Log densities of one-dimensional distributions at points ``(B, n)``."""
    return distribution.log_prob(y.T.unsqueeze(-1)).T


def _quantile(score: Tensor, weight: Tensor, q: float) -> Tensor:
    """Weighted quantiles of the rows, ``(B,)``, linear between points."""
    order = score.argsort(1)
    s, w = score.take_along_dim(order, 1), weight.take_along_dim(order, 1)
    middle = w.cumsum(1) - 0.5 * w  # where each point stands on the line of probability
    at = torch.searchsorted(middle, middle.new_full((len(middle), 1), q))
    high = at.clamp(1, s.shape[1] - 1)
    low = high - 1
    a, b = (middle.take_along_dim(i, 1) for i in (low, high))
    share = ((q - a) / (b - a).clamp_min(1e-300)).clamp(0, 1)
    below, above = (s.take_along_dim(i, 1) for i in (low, high))
    return (below + share * (above - below)).squeeze(1)


def _intervals(distribution: GaussianMixtureDistribution, t: Tensor) -> list[Tensor]:
    """Where the log density exceeds t, B tensors ``(n_intervals, 2)``."""
    offsets = torch.linspace(-8, 8, GRID, dtype=t.dtype, device=t.device)
    y = (distribution.mu + distribution.sigma * offsets).flatten(1).sort(1).values  # (B, K*GRID)
    above = _along(distribution, y) >= t[:, None]
    above[:, 0] = above[:, -1] = False  # eight scales out there is nothing
    row, column = (above[:, 1:] != above[:, :-1]).nonzero(as_tuple=True)
    low, high = y[row, column], y[row, column + 1]
    rising = above[row, column + 1]
    each, limit = distribution.rows(row), t[row]
    for _ in range(60):
        middle = 0.5 * (low + high)
        up = (each.log_prob(middle[:, None]) >= limit) == rising
        low, high = torch.where(up, low, middle), torch.where(up, middle, high)
    sizes = torch.bincount(row, minlength=len(t)).tolist()
    return [ends.reshape(-1, 2) for ends in (0.5 * (low + high)).split(sizes)]
