r"""Coordinate descent on quadratic codes without negative entries: compiled on the CPU, torch elsewhere."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.tiles import SLICE, over_slices

EMPTY = np.zeros(0)


def sweep(W: Tensor, G: Tensor, P: Tensor, order: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""One step of every coordinate of every row of W, in place.

    .. math::
        w_t \leftarrow \max\Bigl(0,\; w_t - \frac{(Gw - p)_t}{G_{tt}}\Bigr)
        \qquad\text{lowers}\qquad \tfrac12w^\top Gw - p^\top w .

    Parameters
    ----------
    W : ``(n, k)``, contiguous
    G : ``(k, k)``, symmetric
    P : ``(n, k)``
    order : ``(k,)``, of the coordinates
    weight : ``(n,)``, of the rows in the answer

    Returns
    -------
    The sum over rows of :math:`\|\cdot\|_1` of the projected gradients before each step, a scalar.

    Examples
    --------
    >>> W = torch.zeros(1, 2, dtype=torch.float64)
    >>> G, P = torch.eye(2).double(), torch.tensor([[1.0, -1.0]]).double()
    >>> float(sweep(W, G, P, torch.arange(2))), W.tolist()
    (1.0, [[1.0, 0.0]])
    """
    if W.device.type != "cpu":
        total = W.new_zeros(())
        for t in order.tolist():
            slope = W @ G[t] - P[:, t]
            away = torch.where(W[:, t] > 0, slope, slope.clamp_max(0)).abs()
            total += away.sum() if weight is None else weight @ away
            W[:, t] = _stepped(W[:, t], slope, G[t, t])
        return total
    from groundstate.math.linalg.nonnegative.descent_numba import sweep as compiled

    w = EMPTY if weight is None else weight.double().numpy()
    given = (W.numpy(), G.numpy(), P.numpy(), order.numpy(), w)
    if len(W) <= SLICE:
        return torch.tensor(compiled(*given, 0, len(W)), dtype=torch.float64)
    parts = over_slices(lambda lo, hi: compiled(*given, lo, hi), len(W))
    return torch.tensor(math.fsum(parts), dtype=torch.float64)


def _stepped(w: Tensor, slope: Tensor, curve: Tensor) -> Tensor:
    """The minimum over one coordinate; of a line it is at zero, or anywhere."""
    line = torch.where(slope > 0, 0.0, w)
    return torch.where(curve > 0, (w - slope / curve).clamp_min(0), line)


def least_squares_codes(G: Tensor, P: Tensor, tol: float = 1e-12, max_iter: int = 10_000) -> Tensor:
    r"""The rows :math:`\arg\min_{z\ge0}\tfrac12z^\top Gz - p^\top z`, each by itself, ``(n, k)``.

    Sweeps go on until the projected gradient of a row is below ``tol`` times :math:`\|p\|_1`, so that a
    row's code does not depend on the rows beside it.

    Examples
    --------
    >>> G = torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double()
    >>> z = least_squares_codes(G, torch.tensor([[3.0, 0.0], [3.0, 3.0]]).double())
    >>> z.round(decimals=9).tolist()
    [[1.5, 0.0], [1.0, 1.0]]
    """
    n, k = P.shape
    G, P = G.double().contiguous(), P.double().contiguous()
    W = torch.zeros_like(P)
    order = torch.arange(k)
    if P.device.type == "cpu":
        from groundstate.math.linalg.nonnegative.descent_numba import codes

        given = (W.numpy(), G.numpy(), P.numpy(), order.numpy(), tol, max_iter)
        for _ in over_slices(lambda lo, hi: codes(*given, lo, hi), n):
            pass
        return W
    least = tol * P.abs().sum(1)
    live = torch.ones(n, dtype=torch.bool, device=P.device)
    for step in range(max_iter):
        moved = torch.zeros_like(least)
        for t in range(k):
            slope = W @ G[t] - P[:, t]
            moved += torch.where(W[:, t] > 0, slope, slope.clamp_max(0)).abs()
            W[:, t] = torch.where(live, _stepped(W[:, t], slope, G[t, t]), W[:, t])
        live &= moved > least
        if step % 10 == 9 and not bool(live.any()):  # asking waits for the device
            break
    return W
