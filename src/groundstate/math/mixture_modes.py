r"""Modes of a mixture of Gaussians: where :math:`\nabla\log p = 0` and the Hessian is negative.

The fixed point :math:`y \leftarrow \sum_z a_z\mu_z/\sum_z a_z`, :math:`a_z = r_z/\sigma_z^2` (mean shift)
climbs :math:`\log p` from any start; Newton steps finish what it begins. In two and more dimensions a
mixture may have more modes than components, so points between the means are starts too.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from groundstate.math.gaussian_mixtures import GaussianMixtureLaw

CELLS = 2**21  # numbers of one block (B, starts, K, d)
ITERATIONS = 100
MOST_STARTS = 64


def _starts(law: GaussianMixtureLaw) -> Tensor:
    """Means, their centre, and middles of pairs (and triples, in the plane and beyond)."""
    k, d = law.mu.shape[-2:]
    groups: list[tuple[int, ...]] = []
    for size in range(2, 3 if d == 1 else 4):
        more = list(combinations(range(k), size))
        if k + 1 + len(groups) + len(more) <= MOST_STARTS:
            groups += more
    middles = [law.mu[:, list(group)].mean(1, keepdim=True) for group in groups]
    return torch.cat([law.mu, law.mean.unsqueeze(1), *middles], 1)  # (B, S, d)


def _climb(law: GaussianMixtureLaw, y: Tensor) -> tuple[Tensor, Tensor]:
    """End points of the starts ``(B, S, d)``, and the Hessian of log p there ``(B, S, d, d)``."""
    spread = GaussianMixtureLaw(
        law.log_weights.unsqueeze(1), law.mu.unsqueeze(1), law.sigma.unsqueeze(1)
    )  # one law for all starts of a row
    precision = law.sigma.unsqueeze(1).square().reciprocal()  # (B, 1, K, 1 or d)
    reach = 0.5 * law.sigma.flatten(1).min(1).values[:, None, None]
    eye = torch.eye(y.shape[-1], dtype=y.dtype, device=y.device)
    small = 1e-10 * law.variance.sum(-1).sqrt()[:, None]
    H = y.new_zeros(*y.shape, y.shape[-1])
    for _ in range(ITERATIONS):
        r = spread.responsibilities(y).unsqueeze(-1)  # (B, S, K, 1)
        a = (r * precision).expand(*r.shape[:-1], y.shape[-1])
        pull = (law.mu.unsqueeze(1) - y.unsqueeze(-2)) * precision  # (B, S, K, d)
        g = (r * pull).sum(-2)
        total = a.sum(-2)
        H = (r * pull).mT @ pull - g.unsqueeze(-1) * g.unsqueeze(-2) - total.unsqueeze(-1) * eye
        shift = g / total  # mean shift, written as a step
        step, failed = torch.linalg.solve_ex(H, -g.unsqueeze(-1))
        step = step.squeeze(-1)
        ahead = ((step * g).sum(-1, keepdim=True) > 0) & (failed == 0).unsqueeze(-1)
        near = step.norm(dim=-1, keepdim=True) <= reach
        quick = torch.where(ahead & near, step, shift)
        better = spread.log_prob(y + quick) >= spread.log_prob(y + shift)
        move = torch.where(better.unsqueeze(-1), quick, shift)
        y = y + move
        if bool((move.norm(dim=-1) <= small).all()):
            break
    return y, H


def _maxima(law: GaussianMixtureLaw) -> tuple[Tensor, Tensor]:
    """End points ``(B, S, d)`` by falling density, and which of them are maxima ``(B, S)``."""
    y, H = _climb(law, _starts(law))
    height = torch.stack([law.log_prob(part) for part in y.unbind(1)], 1)  # (B, S)
    scale = H.abs().flatten(2).max(-1).values
    top = torch.linalg.eigvalsh(H)[..., -1] < -1e-7 * scale
    order = torch.where(top, height, -torch.inf).argsort(dim=1, descending=True, stable=True)
    return y.take_along_dim(order.unsqueeze(-1), 1), top.take_along_dim(order, 1)


def _blocks(law: GaussianMixtureLaw) -> list[GaussianMixtureLaw]:
    k, d = law.mu.shape[-2:]
    rows = max(1, CELLS // (_starts(law.rows(slice(0, 1))).shape[1] * k * d * max(1, d)))
    return [law.rows(slice(at, at + rows)) for at in range(0, len(law.mu), rows)]


@torch.no_grad()
def highest_mode(law: GaussianMixtureLaw) -> Tensor:
    """The mode of highest density of every row, ``(B, d)``.

    Examples
    --------
    >>> log_weights = torch.tensor([[0.3, 0.7]]).double().log()
    >>> mu, sigma = torch.tensor([[[-4.0], [4.0]]]).double(), torch.ones(1, 2, 1).double()
    >>> highest_mode(GaussianMixtureLaw(log_weights, mu, sigma)).round(decimals=6).tolist()
    [[4.0]]
    """
    if law.mu.shape[-2] == 1:
        return law.mu[:, 0]
    found = [_maxima(part)[0][:, 0] for part in _blocks(law)]
    return torch.cat(found) if found else law.mean


@torch.no_grad()
def modes(law: GaussianMixtureLaw, *, tol: float = 1e-4) -> list[Tensor]:
    r"""All modes of every row, by falling density: B tensors ``(n_modes, d)``.

    Parameters
    ----------
    law : the mixtures
    tol : points nearer than this, in units of the standard deviation of the law, are one mode

    Examples
    --------
    Three components on a triangle have a fourth mode between them:

    >>> side = 2.4
    >>> corners = [[0.0, 0.0], [side, 0.0], [side / 2, side * 0.75**0.5]]
    >>> law = GaussianMixtureLaw(
    ...     torch.full((1, 3), 1 / 3).double().log(), torch.tensor([corners]).double(),
    ...     torch.ones(1, 3, 1).double(),
    ... )
    >>> len(modes(law)[0])
    4
    """
    found: list[Tensor] = []
    for part in _blocks(law):
        y, top = _maxima(part)
        apart = torch.cdist(y, y)  # (B, S, S)
        near = apart <= tol * part.variance.sum(-1).sqrt()[:, None, None]
        earlier = torch.ones_like(near[0]).tril(-1)
        first = top & ~(near & earlier & top.unsqueeze(1)).any(-1)
        first[:, 0] = True  # a plateau has no strict maximum; its best point stands for it
        found += [points[mask] for points, mask in zip(y, first)]
    return found


__all__ = ["highest_mode", "modes"]
