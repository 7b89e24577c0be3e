r"""One pass of EM over rows on a device: the sums of ``pass_numba`` by matrix products of tiles.

Rows stay on their device and are taken in float64; what comes back is as large as θ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.learn.solvers.latent.mixtures.pass_numba import DIAGONAL, FULL

NUMBERS = 2**29  # of one table of features, where they fit into a fourth of the free memory


def _tiles(x: Tensor, w: Tensor | None, per_row: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    numbers = NUMBERS
    if x.device.type == "cuda":  # large tiles: launching costs more than computing
        numbers = min(numbers, torch.cuda.mem_get_info(x.device)[0] // 32)
    rows = max(1, numbers // max(1, per_row))
    for at in range(0, len(x), rows):
        yield x[at : at + rows], None if w is None else w[at : at + rows].double()


def moments(x: Tensor, w: Tensor | None, origin: Any) -> Any:
    """Weight, weighted sum and weighted sum of squares ``(d,)`` about ``origin``."""
    at = torch.from_numpy(origin).to(x.device)
    total, first, square = 0.0, torch.zeros_like(at), torch.zeros_like(at)
    for part, wi in _tiles(x, w, 3 * x.shape[1]):
        diff = part.double() - at
        scaled = diff if wi is None else diff * wi[:, None]
        total += float(len(part)) if wi is None else float(wi.sum())
        first, square = first + scaled.sum(0), square + (scaled * diff).sum(0)
    return total, first.cpu().numpy(), square.cpu().numpy()


def scatter(x: Tensor, w: Tensor | None, origin: Any) -> Any:
    """Weighted second moments ``(d, d)`` about ``origin``."""
    at, d = torch.from_numpy(origin).to(x.device), x.shape[1]
    out = at.new_zeros(d, d)
    for part, wi in _tiles(x, w, 3 * d):
        diff = part.double() - at
        out += (diff if wi is None else diff * wi[:, None]).T @ diff
    return out.cpu().numpy()


def reach(x: Tensor, origin: Any, turn: Any) -> float:
    """The largest ‖turn (x − origin)‖²."""
    at, matrix = (torch.from_numpy(v).to(x.device) for v in (origin, turn))
    far = [
        ((part.double() - at) @ matrix.T).square().sum(1).max()
        for part, _ in _tiles(x, None, 3 * x.shape[1])
    ]
    return float(torch.stack(far).max())


def _features(y: Tensor, kind: int, size: int) -> Tensor:
    """φ ``(F, n)`` of rows that stand as columns of ``y`` ``(d, n)``."""
    d, n = y.shape
    phi = y.new_empty(size, n)
    at = 0
    if kind == FULL:
        for a in range(d):
            torch.mul(y[a], y[a:], out=phi[at : at + d - a])
            at += d - a
    elif kind == DIAGONAL:
        torch.mul(y, y, out=phi[:d])
        at = d
    phi[at : at + d] = y
    phi[at + d :] = 1.0
    return phi


def em_pass(
    x: Tensor, w: Tensor | None, origin: Any, turn: Any, theta: Any, kind: int, narrow: Any,
    mu: Any, U: Any, constant: Any, groups: int,
) -> Any:  # fmt: skip
    """Statistics ``(F, R k)``, sums of differences of narrow components, Σ w log p ``(R,)`` and Σ w
    of R mixtures, the ``groups``.
    """

    def here(values: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(x.device)

    at, matrix, parameters, means, factors, constants = map(
        here, (origin, turn, theta, mu, U, constant)
    )
    k, f = theta.shape
    sums, value = parameters.new_zeros(f, k), parameters.new_zeros(groups)
    weight = parameters.new_zeros(())
    first, second = torch.zeros_like(means), torch.zeros_like(factors)
    for part, wi in _tiles(x, w, f):
        diff = part.double() - at
        y = (diff * matrix.diagonal()).T.contiguous() if kind == DIAGONAL else matrix @ diff.T
        phi = _features(y, kind, f)
        r = parameters @ phi  # (k, n)
        gaps = [part.double() - mean for mean in means]
        for z, gap, factor, c in zip(narrow.tolist(), gaps, factors, constants, strict=True):
            white = gap @ factor if len(factor) > 1 else gap * factor
            r[z] = c - 0.5 * white.square().sum(1)
        each = r.view(groups, k // groups, -1)
        log_p = torch.logsumexp(each, 1)  # (R, n)
        each.sub_(log_p[:, None]).exp_()
        if wi is None:
            value, weight = value + log_p.sum(1), weight + len(part)
        else:
            r.mul_(wi)
            value, weight = value + log_p @ wi, weight + wi.sum()
        for a, (z, gap) in enumerate(zip(narrow.tolist(), gaps, strict=True)):
            scaled = gap * r[z][:, None]
            first[a] += scaled.sum(0)
            second[a] += scaled.T @ gap if len(factors[a]) > 1 else (scaled * gap).sum(0)
        sums += phi @ r.T
    flat = torch.cat([v.flatten() for v in (sums, first, second, value, weight)]).cpu()
    sizes = [v.numel() for v in (sums, first, second, value, weight)]
    S, one, two, J, total = (v.numpy() for v in flat.split(sizes))
    return (
        S.reshape(f, k), one.reshape(mu.shape), two.reshape(U.shape), J, float(total[0]),
    )  # fmt: skip
