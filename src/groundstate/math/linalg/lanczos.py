r"""A few of the largest eigenvalues of a symmetric map that is known by its products."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LOOK = 1.08  # growth of the basis between two looks at what has converged
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
    Q = start.new_zeros(most, n)
    H = torch.zeros(most, most, dtype=torch.float64)
    Q[0] = start / start.norm()
    generator = torch.Generator().manual_seed(0)
    limit = max(tol, EXACT[start.dtype])
    budget = max(1000, 100 * k) if max_iter is None else max_iter
    j, look, straight = 0, k + 8, True
    while True:
        w = product(Q[j])
        basis = Q[: j + 1]
        near = basis[-2:] if straight else basis  # exactly, A maps q to its neighbours alone
        first = near @ w
        w = w - first @ near
        h = basis @ w  # what rounding left of the others
        w = w - h @ basis
        h[-len(first) :] += first
        H[: j + 1, j] = H[j, : j + 1] = h.double().cpu()
        beta = float(w.norm())
        budget -= 1
        j += 1
        scale = float(H[:j, :j].diagonal().abs().max())
        ended = beta <= 1e-14 * scale or beta == 0.0
        full = j == most
        if full or ended or budget <= 0 or j >= look:
            look = max(j + 1, int(LOOK * j))
            kept = k + (most - k) // 2 if full else k
            theta, s = _largest(H[:j, :j], min(kept, j), straight)
            left = beta * s[-1, -k:].abs()
            fine = bool((left <= limit * theta.abs().max()).all()) and j >= k
            if fine or budget <= 0 or (full and (ended or most == n)):
                vectors = Q[:j].T @ s[:, -k:].flip(1).to(Q)
                return theta[-k:].flip(0).to(Q), vectors, fine or most == n
            if full:
                straight = False
                Q[:kept] = s.T.to(Q) @ Q[:j]
                H.zero_()
                H[range(kept), range(kept)] = theta
                j, look = kept, int(LOOK * kept)
        if ended:  # an invariant subspace that is too small: go on outside of it
            w = torch.randn(n, generator=generator, dtype=torch.float64).to(Q)
        for _ in range(2 if ended else 0):
            w = w - (Q[:j] @ w) @ Q[:j]
        Q[j] = w / w.norm()


def _largest(H: Tensor, k: int, straight: bool) -> tuple[Tensor, Tensor]:
    """The k largest eigenpairs in ascending order; ``straight``: H has three diagonals."""
    if not straight or k > len(H) // 2:
        theta, s = torch.linalg.eigh(H)
        return theta[-k:], s[:, -k:]
    from scipy.linalg import eigh_tridiagonal

    n = len(H)
    found = eigh_tridiagonal(
        H.diagonal().numpy(), H.diagonal(1).numpy(), select="i", select_range=(n - k, n - 1)
    )
    return torch.from_numpy(found[0]), torch.from_numpy(found[1])
