r"""Eigenvalues and singular values with a report on how far to trust them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch

from groundstate.errors import ShapeError, Unreliable
from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import square
from groundstate.math.linalg.predicates import eigenvector_condition, is_symmetric


@dataclass(frozen=True)
class EigReport:
    r"""Eigenpairs :math:`Aq = \lambda q` and how well they are known.

    Attributes
    ----------
    values : ``(..., n)``; real and ascending for symmetric A, else complex
    vectors : ``(..., n, n)``, columns of length one
    residual : :math:`\|AQ - Q\Lambda\|/\|A\|`, ``(...,)``
    condition : condition number of Q, ``(...,)``; an eigenvalue may move by so much times a change of A
    defective : whether there are fewer independent eigenvectors than columns, ``(...,)``
    """

    values: Any
    vectors: Any
    residual: Any
    condition: Any
    defective: Any

    def __repr__(self) -> str:
        return f"EigReport(values={self.values}, condition={self.condition}, defective={self.defective})"


@takes_arrays("A")
def eig_report(A: Any) -> Any:
    r"""Eigenvalues and eigenvectors of A, the residual, the condition of the eigenvectors, and whether
    A is defective (which also warns).

    Symmetric matrices go to ``torch.linalg.eigh``, others to ``torch.linalg.eig``. A is taken as
    defective when the condition exceeds :math:`\varepsilon^{-1/2}`: the eigenvectors of a Jordan block
    disturbed by e have condition of about :math:`e^{-1/2}`.

    Parameters
    ----------
    A : ``(..., n, n)``

    Returns
    -------
    EigReport

    Examples
    --------
    >>> report = eig_report([[3.0, 1.0], [1.0, 2.0]])
    >>> report.values.round(10).tolist(), report.defective
    ([1.3819660113, 3.6180339887], False)
    """
    symmetric = bool(is_symmetric(square(A)).all())
    values, vectors = torch.linalg.eigh(A) if symmetric else torch.linalg.eig(A)
    size = torch.linalg.matrix_norm(A)
    gap = A.to(vectors.dtype) @ vectors - vectors * values[..., None, :]
    residual = torch.linalg.matrix_norm(gap) / torch.where(size == 0, 1.0, size)
    condition = eigenvector_condition(vectors)
    defective = condition >= torch.finfo(A.dtype).eps ** -0.5
    if bool(defective.any()):
        warnings.warn(
            f"a matrix of order {A.shape[-1]} is defective up to rounding: its eigenvectors have "
            f"condition {float(condition.max()):.2g}; use torch.linalg.svd or a Schur form",
            Unreliable,
            stacklevel=4,
        )
    return EigReport(values, vectors, residual, condition, defective)


@takes_arrays("U", "Vh")
def svd_flip(U: Any, Vh: Any) -> Any:
    r"""The same singular vectors with fixed signs: the largest entry of each left one is positive.

    :math:`U\operatorname{diag}(s)V^*` stays as it is. Complex vectors are turned so that this entry
    is real and positive.

    Parameters
    ----------
    U : ``(..., m, k)``, left singular vectors in columns
    Vh : ``(..., k, n)``, right ones in rows, as from ``torch.linalg.svd``

    Examples
    --------
    >>> U, Vh = svd_flip([[0.6, 0.8], [-0.8, 0.6]], [[1.0, 0.0], [0.0, 1.0]])
    >>> U.tolist(), (Vh + 0).tolist()
    ([[-0.6, 0.8], [0.8, 0.6]], [[-1.0, 0.0], [0.0, 1.0]])
    """
    if U.ndim < 2 or Vh.ndim < 2 or U.shape[-1] != Vh.shape[-2]:
        raise ShapeError(
            f"U (..., m, k) and Vh (..., k, n) are needed, got {tuple(U.shape)} and {tuple(Vh.shape)}"
        )
    lead = U.gather(-2, U.abs().argmax(-2, keepdim=True))  # (..., 1, k)
    turn = torch.where(lead == 0, 1.0, lead.conj() / torch.where(lead == 0, 1.0, lead.abs()))
    return U * turn, Vh * turn.mT.conj()
