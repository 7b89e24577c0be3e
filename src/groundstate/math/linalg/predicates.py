r"""Questions about matrices, answered up to rounding and one by one for a batch; plane rotations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import eye_like, looks_hermitian, matrix, square


def _tolerance(A: Tensor, tol: float | None) -> Tensor | float:
    r"""``tol``, or :math:`n\varepsilon\|A\|` in the Frobenius norm, ``(...,)``."""
    if tol is not None:
        return tol
    return max(A.shape[-2:]) * torch.finfo(A.dtype).eps * torch.linalg.matrix_norm(A)


@takes_arrays("A")
def is_orthogonal(A: Any, tol: float | None = None) -> Any:
    r"""Whether :math:`A^*A = I`: columns of length one at right angles.

    Such a matrix keeps lengths and angles, its inverse is its adjoint and its determinant ±1; a
    determinant of ±1 does not make a matrix orthogonal, as a shear shows.

    Parameters
    ----------
    A : ``(..., m, n)``
    tol : largest :math:`\|A^*A - I\|`; :math:`n\varepsilon\|A\|` unless given

    Examples
    --------
    >>> is_orthogonal([[0.6, -0.8], [0.8, 0.6]]), is_orthogonal([[1.0, 1.0], [0.0, 1.0]])
    (True, False)
    """
    gap = torch.linalg.matrix_norm(matrix(A).mH @ A - eye_like(A))
    return gap <= _tolerance(A, tol)


@takes_arrays("A")
def is_symmetric(A: Any, tol: float | None = None) -> Any:
    r"""Whether :math:`A = A^*` (Hermitian, for complex A).

    Parameters
    ----------
    A : ``(..., m, n)``; one that is not square is not symmetric
    tol : largest :math:`\|A - A^*\|`; :math:`n\varepsilon\|A\|` unless given

    Examples
    --------
    >>> is_symmetric([[3.0, 1.0], [1.0, 2.0]])
    True
    """
    if matrix(A).shape[-1] != A.shape[-2]:
        return torch.zeros(A.shape[:-2], dtype=torch.bool, device=A.device)
    return torch.linalg.matrix_norm(A - A.mH) <= _tolerance(A, tol)


@takes_arrays("A")
def is_positive_definite(A: Any, tol: float | None = None) -> Any:
    r"""Whether A is symmetric with :math:`x^*Ax > 0` for all :math:`x \ne 0`.

    It is where A is symmetric up to ``tol`` and has a Cholesky factor.

    Parameters
    ----------
    A : ``(..., n, n)``
    tol : as in ``is_symmetric``

    Examples
    --------
    >>> is_positive_definite([[3.0, 1.0], [1.0, 2.0]]), is_positive_definite([[1.0, 2.0], [2.0, 1.0]])
    (True, False)
    """
    if matrix(A).shape[-1] != A.shape[-2]:
        return torch.zeros(A.shape[:-2], dtype=torch.bool, device=A.device)
    _, failed = torch.linalg.cholesky_ex(A)
    return is_symmetric(A, tol) & (failed == 0)


@takes_arrays("A")
def is_diagonally_dominant(A: Any) -> Any:
    r"""Whether :math:`|a_{ii}| \ge \sum_{j\ne i}|a_{ij}|` in every row.

    Examples
    --------
    >>> is_diagonally_dominant([[3.0, 1.0], [1.0, 2.0]]), is_diagonally_dominant([[1.0, 2.0], [3.0, 4.0]])
    (True, False)
    """
    sizes = square(A).abs()
    diagonal = sizes.diagonal(dim1=-2, dim2=-1)
    off = sizes.masked_fill(torch.eye(A.shape[-1], dtype=torch.bool, device=A.device), 0.0).sum(-1)
    return (diagonal >= off).all(-1)


@takes_arrays("A")
def is_singular(A: Any, tol: float | None = None) -> Any:
    r"""Whether A has a numerical rank below n.

    Equivalent in exact arithmetic: the determinant is zero, zero is an eigenvalue, the columns are
    dependent, some :math:`x \ne 0` has :math:`Ax = 0`.

    Parameters
    ----------
    A : ``(..., n, n)``
    tol : singular values up to it count as zero; :math:`n\varepsilon s_1` unless given

    Examples
    --------
    >>> is_singular([[1.0, 2.0], [2.0, 4.0]]), is_singular([[1.0, 2.0], [3.0, 4.0]])
    (True, False)
    """
    s = torch.linalg.svdvals(square(A))
    floor = s[..., 0] * A.shape[-1] * torch.finfo(A.dtype).eps if tol is None else tol
    return s[..., -1] <= floor


@takes_arrays("A")
def is_diagonalizable(A: Any, tol: float | None = None) -> Any:
    r"""Whether A has n independent eigenvectors: their matrix has a condition below
    :math:`\varepsilon^{-1/2}`.

    Parameters
    ----------
    A : ``(..., n, n)``
    tol : :math:`1/\kappa` down to which eigenvectors count as independent;
        :math:`\varepsilon^{1/2}` unless given

    Examples
    --------
    >>> is_diagonalizable([[1.0, 1.0], [0.0, 1.0]]), is_diagonalizable([[1.0, 1.0], [0.0, 2.0]])
    (False, True)
    """
    if looks_hermitian(square(A)):
        return torch.ones(A.shape[:-2], dtype=torch.bool, device=A.device)
    least = torch.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    return eigenvector_condition(torch.linalg.eig(A.detach())[1]) < 1 / least


def eigenvector_condition(Q: Tensor) -> Tensor:
    r""":math:`s_1/s_n` of eigenvectors, ``(...,)``; infinite where they are dependent."""
    s = torch.linalg.svdvals(Q.detach())
    return s[..., 0] / s[..., -1]


@takes_arrays("theta")
def rotation(theta: Any) -> Any:
    r"""The rotation of the plane, :math:`\begin{pmatrix}\cos\theta & -\sin\theta\\
    \sin\theta & \cos\theta\end{pmatrix}`; :math:`R(a)R(b) = R(a + b)`.

    Random rotations of any dimension: ``scipy.stats.ortho_group``.

    Parameters
    ----------
    theta : angles in radians, ``(...)``

    Returns
    -------
    ``(..., 2, 2)``

    Examples
    --------
    >>> rotation(torch.pi / 2).round(12).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    c, s = theta.cos(), theta.sin()
    return torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
