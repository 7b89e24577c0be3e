r"""Matrices in blocks: the Schur complement, the inverse by blocks, diagonal plus low rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import eye_like, matrix, square
from groundstate.math.linalg.low_rank import LowRank


class Blocks(NamedTuple):
    r"""The four blocks of :math:`\begin{pmatrix}A & B\\ C & D\end{pmatrix}`."""

    A: Any
    B: Any
    C: Any
    D: Any

    def to_dense(self) -> Any:
        """The whole matrix."""
        if isinstance(self.A, Tensor):
            upper = torch.cat([self.A, self.B], -1)
            return torch.cat([upper, torch.cat([self.C, self.D], -1)], -2)
        return np.block([[self.A, self.B], [self.C, self.D]])


@takes_arrays("A", "B", "C", "D")
def schur(A: Any, B: Any, C: Any, D: Any) -> Any:
    r"""The Schur complement :math:`S = D - CA^{-1}B` of A in
    :math:`\begin{pmatrix}A & B\\ C & D\end{pmatrix}`: what is left of D when A's unknowns are eliminated.

    For a covariance it is the covariance of the second part given the first, and
    :math:`\det = \det A\,\det S`.

    Parameters
    ----------
    A, B, C, D : ``(..., n, n)``, ``(..., n, m)``, ``(..., m, n)``, ``(..., m, m)``

    Examples
    --------
    >>> schur([[2.0]], [[1.0]], [[4.0]], [[3.0]]).tolist()
    [[1.0]]
    """
    _fit(A, B, C, D)
    return D - C @ torch.linalg.solve(A, B)


@takes_arrays("A", "B", "C", "D")
def block_inverse(A: Any, B: Any, C: Any, D: Any) -> Any:
    r"""The inverse of :math:`\begin{pmatrix}A & B\\ C & D\end{pmatrix}` by blocks,

    .. math:: \begin{pmatrix} A^{-1} + A^{-1}BS^{-1}CA^{-1} & -A^{-1}BS^{-1}\\
        -S^{-1}CA^{-1} & S^{-1}\end{pmatrix}, \qquad S = D - CA^{-1}B .

    Parameters
    ----------
    A, B, C, D : as in ``schur``; A and S must have an inverse

    Returns
    -------
    Blocks : ``to_dense()`` puts them together

    Examples
    --------
    >>> block_inverse([[2.0]], [[1.0]], [[4.0]], [[3.0]]).to_dense().tolist()
    [[1.5, -0.5], [-2.0, 1.0]]
    """
    _fit(A, B, C, D)
    A_inv = torch.linalg.inv(A)
    AB, CA = A_inv @ B, C @ A_inv
    S_inv = torch.linalg.inv(D - C @ AB)
    right, lower = -AB @ S_inv, -S_inv @ CA
    return Blocks(A_inv - right @ CA, right, lower, S_inv)


@takes_arrays("d", "U", "b", "V", "C")
def woodbury_solve(d: Any, U: Any, b: Any, V: Any = None, C: Any = None) -> Any:
    r""":math:`(\operatorname{diag}(d) + UCV^\top)^{-1}b` in :math:`O(nk^2)`, by

    .. math:: D^{-1}b - D^{-1}U\,(I + CV^\top D^{-1}U)^{-1}\,CV^\top D^{-1}b .

    Parameters
    ----------
    d : diagonal, ``(..., n)``
    U : ``(..., n, k)``
    b : ``(n,)`` or ``(..., n)`` like d, or columns ``(..., n, m)``
    V : ``(..., n, k)``; U unless given
    C : ``(..., k, k)``; the identity unless given

    Examples
    --------
    >>> woodbury_solve([1.0, 1.0, 1.0], [[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0]).round(12).tolist()
    [0.25, 0.25, 0.25]
    """
    _small_side(d, U, V, C)
    vector = b.ndim == 1 or b.shape == d.shape
    columns = b[..., None] if vector else b
    if columns.shape[-2] != d.shape[-1]:
        raise ShapeError(f"b must have {d.shape[-1]} rows like d, got {tuple(b.shape)}")
    if V is None and C is None and bool((d.detach() > 0).all()):
        out = LowRank(U, d).solve(columns)
    else:
        scaled = U / d[..., None]
        side = _times(C, (U if V is None else V).mT)  # C Vᵀ, (..., k, n)
        inner = torch.linalg.solve(eye_like(U) + side @ scaled, side @ (columns / d[..., None]))
        out = columns / d[..., None] - scaled @ inner
    return out[..., 0] if vector else out


@takes_arrays("d", "U", "V", "C")
def logdet_lemma(d: Any, U: Any, V: Any = None, C: Any = None) -> Any:
    r""":math:`\log|\det(\operatorname{diag}(d) + UCV^\top)|
    = \log|\det(I + CV^\top D^{-1}U)| + \sum_i\log|d_i|`, in :math:`O(nk^2)`.

    Parameters
    ----------
    d, U, V, C : as in ``woodbury_solve``

    Examples
    --------
    >>> round(logdet_lemma([1.0, 1.0, 1.0], [[1.0], [1.0], [1.0]]), 6)  # log 4
    1.386294
    """
    _small_side(d, U, V, C)
    if V is None and C is None and bool((d.detach() > 0).all()):
        return LowRank(U, d).log_det
    side = _times(C, (U if V is None else V).mT)
    small = eye_like(U) + side @ (U / d[..., None])
    return torch.linalg.slogdet(small).logabsdet + d.abs().log().sum(-1)


def _times(C: Tensor | None, V: Tensor) -> Tensor:
    return V if C is None else C @ V


def _fit(A: Tensor, B: Tensor, C: Tensor, D: Tensor) -> None:
    n, m = square(A, "A").shape[-1], square(D, "D").shape[-1]
    for name, block, shape in (("B", B, (n, m)), ("C", C, (m, n))):
        if tuple(matrix(block, name).shape[-2:]) != shape:
            raise ShapeError(
                f"{name} must be {shape} to fit A ({n}, {n}) and D ({m}, {m}), "
                f"got {tuple(block.shape)}"
            )


def _small_side(d: Tensor, U: Tensor, V: Tensor | None, C: Tensor | None) -> None:
    n, k = matrix(U, "U").shape[-2:]
    if d.ndim < 1 or d.shape[-1] != n:
        raise ShapeError(f"d must have {n} entries like the rows of U, got {tuple(d.shape)}")
    if bool((d.detach() == 0).any()):
        raise np.linalg.LinAlgError("d has a zero, so that its inverse does not exist")
    if V is not None and tuple(matrix(V, "V").shape[-2:]) != (n, k):
        raise ShapeError(f"V must be ({n}, {k}) like U, got {tuple(V.shape)}")
    if C is not None and tuple(square(C, "C").shape[-2:]) != (k, k):
        raise ShapeError(f"C must be ({k}, {k}), got {tuple(C.shape)}")
