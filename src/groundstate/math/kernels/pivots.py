r"""Which few rows explain a covariance: the pivoted Cholesky factor."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.linalg.gaussian_process import cholesky


def pivoted_cholesky(
    kernel: Kernel,
    x: Tensor,
    rank: int,
    theta: Tensor | None = None,
    tol: float = 1e-10,
) -> tuple[Tensor, Tensor]:
    r"""The rows that explain most of the others, one after the other, and the factor they give.

    Each step takes the row of largest variance given the rows before it; :math:`LL^\top` is then the
    part of K that the chosen rows explain. Only the chosen columns of K are computed.

    Parameters
    ----------
    kernel : covariance; noise is left out
    x : ``(n, d)``
    rank : rows to take at most
    theta : free parameters of the kernel
    tol : stop when no variance above this share of the largest is left

    Returns
    -------
    L : ``(n, k)`` with k up to ``rank``
    chosen : ``(k,)`` row numbers; of equal rows the first

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> x = torch.tensor([[0.0], [0.1], [5.0], [0.0]]).double()
    >>> pivoted_cholesky(RBF(1.0), x, 2)[1].tolist()
    [0, 2]
    """
    with torch.no_grad():
        left = kernel.diagonal(x, theta, noise=False).clone()
        most = left.max().clamp(min=torch.finfo(x.dtype).tiny)
        rank = min(rank, len(x))
        L = x.new_zeros(rank, len(x))
        chosen: list[int] = []
        for i in range(rank):
            p = int(left.argmax())
            if float(left[p]) <= tol * float(most):
                break
            row = kernel.of(Geometry(x[p : p + 1], x), theta)[0]
            row = row - L[:i, p] @ L[:i]
            L[i] = row / left[p].sqrt()
            left = (left - L[i].square()).clamp_(min=0)
            left[p] = 0.0
            chosen.append(p)
        at = torch.tensor(chosen, dtype=torch.int64, device=x.device)
    return L[: len(chosen)].T.contiguous(), at


@torch.no_grad()
def explained_by(kernel: Kernel, x: Tensor, u: Tensor, theta: Tensor | None = None) -> Tensor:
    r"""L with :math:`LL^\top = K_{xu}K_{uu}^{-1}K_{ux}`, the part of K that rows u explain, ``(n, k)``.

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> x = torch.tensor([[0.0], [1.0]]).double()
    >>> L = explained_by(RBF(1.0), x, x)
    >>> bool((L @ L.T - RBF(1.0)(x)).abs().max() < 1e-6)
    True
    """
    K = kernel.of(Geometry(u, u), theta)
    K.diagonal().add_(1e-8 * K.diagonal().mean())
    across = kernel.of(Geometry(u, x), theta)  # (k, n)
    return torch.linalg.solve_triangular(cholesky(K), across, upper=False).T.contiguous()
