"""Linear algebra: matrices as operators, matrix functions, factors, systems and covariances.

What torch does well (``torch.linalg``: eigh, svd, qr, matrix_exp, cond, vector_norm) is torch's; here
is what it lacks, differentiable and batched by leading dimensions.
"""

from __future__ import annotations

from groundstate.math.linalg.adjoint_pairs import (
    Divergence,
    Fourier,
    Gradient,
    Interpolate,
    Laplacian,
    Splat,
)
from groundstate.math.linalg.adjugate import adjugate
from groundstate.math.linalg.block import (
    Blocks,
    block_inverse,
    logdet_lemma,
    schur,
    woodbury_solve,
)
from groundstate.math.linalg.cholesky import cholesky_jitter, lu_nopivot
from groundstate.math.linalg.dot_test import dot_test
from groundstate.math.linalg.eigen import EigReport, eig_report, svd_flip
from groundstate.math.linalg.identities import Identity, identities
from groundstate.math.linalg.low_rank import (
    CompressedImage,
    LowRank,
    RankK,
    compress_image,
    low_rank,
)
from groundstate.math.linalg.matrix_functions import inv_sqrtm, logm, powm, spd_function, sqrtm
from groundstate.math.linalg.operator import GridOperator, LinearOperator
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
from groundstate.math.linalg.solve import SolveInfo, solve
from groundstate.math.linalg.whitening import Whitening, whitening

__all__ = [
    "Blocks",
    "CompressedImage",
    "Divergence",
    "EigReport",
    "Fourier",
    "Gradient",
    "GridOperator",
    "Identity",
    "Interpolate",
    "Laplacian",
    "LinearOperator",
    "LowRank",
    "RankK",
    "SolveInfo",
    "Splat",
    "Whitening",
    "adjugate",
    "block_inverse",
    "cholesky_jitter",
    "compress_image",
    "dot_test",
    "eig_report",
    "exp_series",
    "identities",
    "inv_sqrtm",
    "is_diagonalizable",
    "is_diagonally_dominant",
    "is_orthogonal",
    "is_positive_definite",
    "is_singular",
    "is_symmetric",
    "log_series",
    "logdet_lemma",
    "logm",
    "low_rank",
    "lu_nopivot",
    "powm",
    "rotation",
    "schur",
    "solve",
    "spd_function",
    "sqrtm",
    "svd_flip",
    "whitening",
    "woodbury_solve",
]
