r"""A few of the largest eigenvalues of a symmetric map that is known by its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

F64 = NDArray[np.float64]
LOOK = 1.08  # growth of the basis between two looks at what has converged
APART = 4  # products between two looks at least: a look costs as much as some small products
STORE = 2**27  # numbers of the basis
EXACT = {torch.float64: 1e-9, torch.float32: 1e-5}  # eigenvalues are exact to the square of it


def lanczos(
    product: Callable[[Tensor], Tensor],
    start: Tensor,
    k: int,
    *,
    tol: float = 0.0,
    max_iter: int | None = None,
) -> tuple[Tensor, Tensor, bool]:
    r"""Largest eigenvalues and eigenvectors of a symmetric map by Lanczos' method.

    A basis Q of :math:`\operatorname{span}(v, Av, A^2v, \dots)` is kept orthonormal, and the
    eigenpairs :math:`(\theta, s)` of :math:`H = Q^\top AQ` give :math:`Qs`, whose residual is
    :math:`\beta|s_{\text{last}}|`. A full basis starts again from its best vectors.

    Parameters
    ----------
    product : Av for v ``(n,)``
    start : v, ``(n,)``, random
    k : eigenvalues wanted
    tol : residuals in units of the largest eigenvalue; 0 is as exact as the numbers allow
    max_iter : products at most; None is 100 for each eigenvalue, at least 1,000

    Returns
    -------
    values : ``(k,)``, the largest first
    vectors : ``(n, k)``
    converged : whether all residuals are within the tolerance

    Examples
    --------
    >>> A = torch.diag(torch.tensor([1.0, 5.0, 3.0]).double())
    >>> values, _, _ = lanczos(lambda v: A @ v, torch.ones(3).double(), 2)
    >>> values.round().tolist()
    [5.0, 3.0]
    """
    n = len(start)
    k = min(k, n)
    most = min(n, max(2 * k + 20, min(max(300, 6 * k), STORE // n)))
    Q = start.new_empty(most, n)
    H = np.zeros((most, most))
    Q[0] = start / start.norm()
    generator = torch.Generator().manual_seed(0)
    limit = max(tol, EXACT[start.dtype])
    budget = max(1000, 100 * k) if max_iter is None else max_iter
    j, look, straight, scale = 0, k + 8, True, 0.0
    while True:
        w = product(Q[j])
        basis = Q[: j + 1]
        near = basis[-2:] if straight else basis  # exactly, A maps q to its neighbours alone
        first = near @ w
        w = torch.addmv(w, near.T, first, alpha=-1)
        h = basis @ w  # what rounding left of the others
        w = torch.addmv(w, basis.T, h, alpha=-1)
        h[-len(first) :] += first
        H[: j + 1, j] = H[j, : j + 1] = h.cpu().numpy()
        beta = float(w.norm())
        budget -= 1
        scale = max(scale, abs(float(H[j, j])))
        j += 1
        ended = beta <= 1e-14 * scale or beta == 0.0
        full = j == most
        if full or ended or budget <= 0 or j >= look:
            look = max(j + APART, int(LOOK * j))
            kept = k + (most - k) // 2 if full else k
            theta, s = _largest(H[:j, :j], min(kept, j), straight)
            left = beta * np.abs(s[-1, -k:])
            fine = bool((left <= limit * np.abs(theta).max()).all()) and j >= k
            if fine or budget <= 0 or (full and (ended or most == n)):
                best = torch.from_numpy(s[:, -k:][:, ::-1].copy()).to(Q)
                values = torch.from_numpy(theta[-k:][::-1].copy()).to(Q)
                return values, Q[:j].T @ best, fine or most == n
            if full:
                straight = False
                Q[:kept] = torch.from_numpy(s.T.copy()).to(Q) @ Q[:j]
                H[:] = 0.0
                H[range(kept), range(kept)] = theta
                j, look = kept, int(LOOK * kept)
                scale = float(np.abs(theta).max())
        if ended:  # an invariant subspace that is too small: go on outside of it
            w = torch.randn(n, generator=generator, dtype=torch.float64).to(Q)
            for _ in range(2):
                w = w - (Q[:j] @ w) @ Q[:j]
            beta = float(w.norm())
        Q[j] = w / beta


def _largest(H: F64, k: int, straight: bool) -> tuple[F64, F64]:
    """The k largest eigenpairs in ascending order; ``straight``: H has three diagonals."""
    if not straight or k > len(H) // 2:
        theta, s = np.linalg.eigh(H)
        return theta[-k:], s[:, -k:]
    from scipy.linalg import eigh_tridiagonal

    n = len(H)
    diagonals = H.diagonal(), H.diagonal(1)
    theta, s = eigh_tridiagonal(*diagonals, select="i", select_range=(n - k, n - 1))
    return theta, s
