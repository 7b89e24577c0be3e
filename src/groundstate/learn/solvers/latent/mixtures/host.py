"""What passes over rows need on the host: sums by NumPy, places in symmetric matrices, arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.learn.solvers.latent.mixtures.pass_numba import DIAGONAL, FULL, NOTHING

F64 = NDArray[np.float64]


def moments(x: Any, w: Any, origin: F64, lo: int, hi: int) -> tuple[float, F64]:
    """Weight and weighted sum ``(d,)`` of rows lo..hi about ``origin``."""
    diff = x[lo:hi] - origin
    return (float(w[lo:hi].sum()), w[lo:hi] @ diff) if len(w) else (float(hi - lo), diff.sum(0))


def features(x: Any, origin: F64, turn: F64, kind: int, size: int) -> tuple[F64, F64]:
    """Rows in float64 and their features φ ``(size, n)``, which no iteration changes."""
    rows, d = x.astype(np.float64), x.shape[1]
    diff = rows - origin
    y = (diff * np.diagonal(turn)).T if kind == DIAGONAL else turn @ diff.T
    phi, at = np.ones((size, len(x))), 0
    if kind == FULL:
        for a in range(d):
            np.multiply(y[a], y[a:], out=phi[at : at + d - a])
            at += d - a
    elif kind == DIAGONAL:
        np.multiply(y, y, out=phi[:d])
        at = d
    phi[at : at + d] = y
    return rows, phi


def em_pass(
    rows: F64,
    phi: F64,
    w: Any,
    theta: F64,
    narrow: Any,
    mu: F64,
    U: F64,
    constant: F64,
    groups: int,
) -> Any:
    """The sums of ``pass_numba`` for a small table, for which no first fit waits for a compiler."""
    d = rows.shape[1]
    r = theta @ phi  # (R k, n)
    gaps = rows - mu[:, None]  # (s, n, d)
    for a, z in enumerate(narrow):
        white = gaps[a] @ U[a] if len(U[a]) == d else gaps[a] * U[a]
        r[z] = constant[a] - 0.5 * np.square(white).sum(1)
    each = r.reshape(groups, -1, len(rows))
    top = each.max(1)  # (R, n)
    each -= top[:, None]
    np.exp(each, out=each)
    total = each.sum(1)
    top += np.log(total)
    value = top @ w if len(w) else top.sum(1)
    each *= ((w if len(w) else 1.0) / total)[:, None]
    first, second = np.zeros(mu.shape), np.zeros(U.shape)
    for a, z in enumerate(narrow):
        share = np.where(r[z] > NOTHING, r[z], 0.0)
        first[a] = share @ gaps[a]
        scaled = gaps[a] * share[:, None]
        second[a] = scaled.T @ gaps[a] if len(U[a]) == d else (scaled * gaps[a]).sum(0)
    return phi @ r.T, first, second, value, float(w.sum() if len(w) else len(rows))


def scatter(x: Any, w: Any, origin: F64, lo: int, hi: int) -> F64:
    """Weighted second moments ``(d, d)`` of rows lo..hi about ``origin``."""
    diff = x[lo:hi] - origin
    out: F64 = (diff if not len(w) else diff * w[lo:hi, None]).T @ diff
    return out


def reach(x: Any, origin: F64, turn: F64, lo: int, hi: int) -> float:
    """The largest ‖turn (x − origin)‖² of rows lo..hi."""
    return float(np.square((x[lo:hi] - origin) @ turn.T).sum(1).max())


@cache
def pairs_of(d: int) -> tuple[Any, Any, F64]:
    """Places of the entries i ≤ j and of their mirror images, and −½ or −1 for each."""
    i, j = np.triu_indices(d)
    return i * d + j, j * d + i, np.where(i == j, -0.5, -1.0)


@cache
def upper(d: int) -> F64:
    """Ones on and above the diagonal, ``(d, d)``."""
    return np.triu(np.ones((d, d)))


def wide(values: Tensor) -> F64:
    return values.detach().cpu().numpy().astype(np.float64, copy=False)


def array(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()
