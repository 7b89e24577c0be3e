"""Linear algebra: matrices as operators, matrix functions, factors, systems and covariances.

What torch does well (``torch.linalg``: eigh, svd, qr, matrix_exp, cond, vector_norm) is torch's; here
is what it lacks, differentiable and batched by leading dimensions.
"""

from __future__ import annotations

from groundstate.math.linalg.adjugate import adjugate
from groundstate.math.linalg.cholesky import cholesky_jitter, lu_nopivot
from groundstate.math.linalg.eigen import EigReport, eig_report, svd_flip
from groundstate.math.linalg.matrix_functions import inv_sqrtm, logm, powm, spd_function, sqrtm
from groundstate.math.linalg.predicates import (
    is_diagonalizable,
    is_diagonally_dominant,
    is_orthogonal,
    is_positive_definite,
    is_singular,
    is_symmetric,
    rotation,
)
from groundstate.math.linalg.series import exp_series, log_series

__all__ = [
    "EigReport",
    "adjugate",
    "cholesky_jitter",
    "eig_report",
    "exp_series",
    "inv_sqrtm",
    "is_diagonalizable",
    "is_diagonally_dominant",
    "is_orthogonal",
    "is_positive_definite",
    "is_singular",
    "is_symmetric",
    "log_series",
    "logm",
    "lu_nopivot",
    "powm",
    "rotation",
    "spd_function",
    "sqrtm",
    "svd_flip",
]
