r"""Modes of a mixture of Gaussians: where :math:`\nabla\log p = 0` and the Hessian is negative.

The fixed point :math:`y \leftarrow \sum_z a_z\mu_z/\sum_z a_z`, :math:`a_z = r_z/\sigma_z^2` (mean shift)
climbs :math:`\log p` from any start; Newton steps finish what it begins. In two and more dimensions a
mixture may have more modes than components, so points between the means are starts too.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from groundstate.math.distributions.gaussian_mixtures import (
    GaussianMixtureDistribution,
    joint_log_density,
)

CELLS = 2**21  # numbers of one block (B, starts, K, d)
ITERATIONS = 100
MOST_STARTS = 64


def _starts(distribution: GaussianMixtureDistribution) -> Tensor:
    """Means, their centre, and middles of pairs (and triples, in the plane and beyond)."""
    k, d = distribution.mu.shape[-2:]
    groups: list[tuple[int, ...]] = []
    for size in range(2, 3 if d == 1 else 4):
        more = list(combinations(range(k), size))
        if k + 1 + len(groups) + len(more) <= MOST_STARTS:
            groups += more
    middles = [distribution.mu[:, list(group)].mean(1, keepdim=True) for group in groups]
    return torch.cat([distribution.mu, distribution.mean.unsqueeze(1), *middles], 1)  # (B, S, d)


class _Points:
    """Points ``(N, d)``, each with a mixture of its own: log density, gradient and Hessian."""

    def __init__(self, log_weights: Tensor, mu: Tensor, sigma: Tensor) -> None:
        self.parts = log_weights, mu, sigma
        self.mu, self.precision = mu, sigma.square().reciprocal()  # (N, K, d), (N, K, 1 or d)

    def keep(self, index: Tensor) -> _Points:
        return _Points(*(part[index] for part in self.parts))

    def look(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """log p ``(N,)``, gradient ``(N, d)``, pull ``(N, d)`` and Hessian ``(N, d, d)``."""
        joint = joint_log_density(*self.parts, y)
        r = torch.softmax(joint, -1).unsqueeze(-1)  # (N, K, 1)
        push = (self.mu - y.unsqueeze(-2)) * self.precision  # (N, K, d)
        g = (r * push).sum(-2)
        total = (r * self.precision).sum(-2).expand_as(g)
        H = (r * push).mT @ push - g.unsqueeze(-1) * g.unsqueeze(-2) - torch.diag_embed(total)
        return torch.logsumexp(joint, -1), g, total, H


def _newton(H: Tensor, g: Tensor) -> Tensor:
    """The step to where the gradient vanishes; not finite where there is none."""
    if g.shape[-1] == 1:
        return -g / H[..., 0]
    return torch.linalg.solve_ex(H, -g.unsqueeze(-1))[0].squeeze(-1)


def _climb(distribution: GaussianMixtureDistribution, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """End points of the starts ``(B, S, d)``, log densities there, and Hessians."""
    B, S, d = y.shape
    every = [
        v.repeat_interleave(S, 0)
        for v in (distribution.log_weights, distribution.mu, distribution.sigma)
    ]
    points, y = _Points(*every), y.reshape(-1, d)
    reach = 0.5 * every[2].flatten(1).min(1).values[:, None]
    tiny = max(1e-10, 10 * torch.finfo(y.dtype).eps)
    small = tiny * distribution.variance.sum(-1).sqrt().repeat_interleave(S, 0)
    state = points.look(y)
    ends, active = [y, state[0], state[3]], torch.arange(B * S, device=y.device)
    for _ in range(ITERATIONS):
        height, g, total, H = state
        shift = g / total  # mean shift, written as a step: it never goes down
        step = _newton(H, g)
        ahead = ((step * g).sum(-1, keepdim=True) > 0) & (step.norm(dim=-1, keepdim=True) <= reach)
        move = torch.where(ahead, step, shift)
        state = points.look(y + move)
        lower = (state[0] < height).nonzero().squeeze(1)
        if len(lower):
            move[lower] = shift[lower]
            again = points.keep(lower).look(y[lower] + shift[lower])
            state = tuple(v.index_copy(0, lower, w) for v, w in zip(state, again))  # type: ignore[assignment]
        y = y + move
        for end, value in zip(ends, (y, state[0], state[3])):
            end[active] = value
        moving = (move.norm(dim=-1) > small).nonzero().squeeze(1)
        if not len(moving):
            break
        if len(moving) < 0.7 * len(y):  # go on with what still moves
            points, y, active = points.keep(moving), y[moving], active[moving]
            reach, small = reach[moving], small[moving]
            state = tuple(v[moving] for v in state)  # type: ignore[assignment]
    return ends[0].view(B, S, d), ends[1].view(B, S), ends[2].view(B, S, d, d)


def _maxima(distribution: GaussianMixtureDistribution) -> tuple[Tensor, Tensor]:
    """End points ``(B, S, d)`` by falling density, and which of them are maxima ``(B, S)``."""
    y, height, H = _climb(distribution, _starts(distribution))
    scale = H.abs().flatten(2).max(-1).values
    flat = H[..., 0, 0] if y.shape[-1] == 1 else torch.linalg.eigvalsh(H)[..., -1]
    top = flat < -1e-7 * scale
    order = torch.where(top, height, -torch.inf).argsort(dim=1, descending=True, stable=True)
    return y.take_along_dim(order.unsqueeze(-1), 1), top.take_along_dim(order, 1)


def _blocks(distribution: GaussianMixtureDistribution) -> list[GaussianMixtureDistribution]:
    k, d = distribution.mu.shape[-2:]
    rows = max(1, CELLS // (_starts(distribution.rows(slice(0, 1))).shape[1] * k * d * max(1, d)))
    return [distribution.rows(slice(at, at + rows)) for at in range(0, len(distribution.mu), rows)]


@torch.no_grad()
def highest_mode(distribution: GaussianMixtureDistribution) -> Tensor:
    """The mode of highest density of every row, ``(B, d)``.

    Examples
    --------
    >>> log_weights = torch.tensor([[0.3, 0.7]]).double().log()
    >>> mu, sigma = torch.tensor([[[-4.0], [4.0]]]).double(), torch.ones(1, 2, 1).double()
    >>> highest_mode(GaussianMixtureDistribution(log_weights, mu, sigma)).round(decimals=6).tolist()
    [[4.0]]
    """
    if distribution.mu.shape[-2] == 1:
        return distribution.mu[:, 0]
    found = [_maxima(part)[0][:, 0] for part in _blocks(distribution)]
    return torch.cat(found) if found else distribution.mean


@torch.no_grad()
def modes(distribution: GaussianMixtureDistribution, *, tol: float = 1e-4) -> list[Tensor]:
    r"""All modes of every row, by falling density: B tensors ``(n_modes, d)``.

    Parameters
    ----------
    distribution : the mixtures
    tol : points nearer than this, in units of the standard deviation of the distribution, are one mode

    Examples
    --------
    Three components on a triangle have a fourth mode between them:

    >>> side = 2.4
    >>> corners = [[0.0, 0.0], [side, 0.0], [side / 2, side * 0.75**0.5]]
    >>> distribution = GaussianMixtureDistribution(
    ...     torch.full((1, 3), 1 / 3).double().log(), torch.tensor([corners]).double(),
    ...     torch.ones(1, 3, 1).double(),
    ... )
    >>> len(modes(distribution)[0])
    4
    """
    found: list[Tensor] = []
    for part in _blocks(distribution):
        y, top = _maxima(part)
        apart = torch.cdist(y, y)  # (B, S, S)
        near = apart <= tol * part.variance.sum(-1).sqrt()[:, None, None]
        earlier = torch.ones_like(near[0]).tril(-1)
        first = top & ~(near & earlier & top.unsqueeze(1)).any(-1)
        first[:, 0] = True  # a plateau has no strict maximum; its best point stands for it
        found += [points[mask] for points, mask in zip(y, first)]
    return found
