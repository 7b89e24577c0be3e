r"""Triangular factors: Cholesky with as much jitter as it takes, and LU without pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import eye_like, looks_hermitian, square


@takes_arrays("A")
def cholesky_jitter(A: Any, jitter: float = 0.0, max_tries: int = 4) -> Any:
    r"""The lower L with :math:`LL^\top = A + \delta I`, and the jitter δ that was needed.

    δ is ``jitter`` where that is enough. A matrix that is singular in floating point is tried again
    with :math:`10^{-10}` of the mean of its diagonal (:math:`10^{-6}` in single precision) added,
    then ten times that, and so on. Each matrix of a batch has its own δ.

    Parameters
    ----------
    A : ``(..., n, n)``, symmetric
    jitter : added to the diagonal from the start
    max_tries : how often more is added

    Returns
    -------
    L : ``(..., n, n)``
    jitter : δ, ``(...,)``

    Raises
    ------
    numpy.linalg.LinAlgError : if the last try fails

    Examples
    --------
    >>> L, jitter = cholesky_jitter([[3.0, 1.0], [1.0, 2.0]])
    >>> L.round(7).tolist(), jitter
    ([[1.7320508, 0.0], [0.5773503, 1.2909944]], 0.0)
    >>> cholesky_jitter([[1.0, 1.0], [1.0, 1.0]])[1]
    1e-10
    """
    if not looks_hermitian(square(A)):
        raise ValueError("A must be symmetric; pass (A + A.T) / 2 if the difference is rounding")
    if not jitter >= 0:
        raise ValueError(f"jitter must not be negative, got {jitter}")
    return factor(A, jitter, max_tries)


def factor(A: Tensor, jitter: float = 0.0, max_tries: int = 4) -> tuple[Tensor, Tensor]:
    """``cholesky_jitter`` of tensors known to be symmetric."""
    diagonal = A.detach().diagonal(dim1=-2, dim2=-1)
    diagonal = diagonal.real if A.is_complex() else diagonal
    delta = torch.full(A.shape[:-2], jitter, dtype=diagonal.dtype, device=A.device)
    L, failed = torch.linalg.cholesky_ex(A if jitter == 0 else A + jitter * eye_like(A))
    if not bool(failed.any()):
        return L, delta
    size = diagonal.abs().mean(-1)
    share = 1e-10 if diagonal.dtype == torch.float64 else 1e-6
    for _ in range(max_tries):
        delta = torch.where(failed > 0, jitter + share * size, delta)
        L, failed = torch.linalg.cholesky_ex(A + delta[..., None, None] * eye_like(A))
        if not bool(failed.any()):
            return L, delta
        share *= 10
    raise np.linalg.LinAlgError(
        f"a matrix of order {A.shape[-1]} is not positive definite, even with "
        f"{float(delta.max()):.3g} added to its diagonal; check its eigenvalues, or give more jitter"
    )


@takes_arrays("A")
def lu_nopivot(A: Any) -> Any:
    r"""L with a unit diagonal and U with :math:`A = LU`, by elimination in the given order (Doolittle).

    Diagonal dominance is enough for it to exist, and not needed. Where a pivot is small the factors
    are large and digits are lost: ``torch.linalg.lu`` exchanges rows to avoid that.

    Parameters
    ----------
    A : ``(..., n, n)``

    Raises
    ------
    numpy.linalg.LinAlgError : if a pivot before the last is zero

    Examples
    --------
    >>> L, U = lu_nopivot([[3.0, 1.0], [1.0, 2.0]])
    >>> L.round(4).tolist(), U.round(4).tolist()
    ([[1.0, 0.0], [0.3333, 1.0]], [[3.0, 1.0], [0.0, 1.6667]])
    """
    n = square(A).shape[-1]
    left, columns, rows = A, [], []
    for k in range(n):
        pivot = left[..., :1, :1]
        if k < n - 1 and bool((pivot == 0).any()):
            raise np.linalg.LinAlgError(
                f"pivot {k} is zero, so that A has no LU factors in this order of rows; "
                "use torch.linalg.lu, which exchanges rows"
            )
        down = left[..., 1:, :1] / pivot
        one = torch.ones_like(pivot)
        pad = torch.zeros((*A.shape[:-2], k, 1), dtype=A.dtype, device=A.device)
        columns.append(torch.cat([pad, one, down], -2))
        rows.append(torch.cat([pad.mT, left[..., :1, :]], -1))
        left = left[..., 1:, 1:] - down * left[..., :1, 1:]
    return torch.cat(columns, -1), torch.cat(rows, -2)
