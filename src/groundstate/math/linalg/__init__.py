"""Linear algebra: matrices as operators, matrix functions, factors, systems and covariances.

What torch does well (``torch.linalg``: eigh, svd, qr, matrix_exp, cond, vector_norm) is torch's; here
is what it lacks, differentiable and batched by leading dimensions.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.linalg.adjoint_pairs import Divergence as Divergence
    from groundstate.math.linalg.adjoint_pairs import Fourier as Fourier
    from groundstate.math.linalg.adjoint_pairs import Gradient as Gradient
    from groundstate.math.linalg.adjoint_pairs import Interpolate as Interpolate
    from groundstate.math.linalg.adjoint_pairs import Laplacian as Laplacian
    from groundstate.math.linalg.adjoint_pairs import Splat as Splat
    from groundstate.math.linalg.adjugate import adjugate as adjugate
    from groundstate.math.linalg.block import Blocks as Blocks
    from groundstate.math.linalg.block import block_inverse as block_inverse
    from groundstate.math.linalg.block import logdet_lemma as logdet_lemma
    from groundstate.math.linalg.block import schur as schur
    from groundstate.math.linalg.block import woodbury_solve as woodbury_solve
    from groundstate.math.linalg.cholesky import cholesky_jitter as cholesky_jitter
    from groundstate.math.linalg.cholesky import lu_nopivot as lu_nopivot
    from groundstate.math.linalg.dot_test import dot_test as dot_test
    from groundstate.math.linalg.eigen import EigReport as EigReport
    from groundstate.math.linalg.eigen import eig_report as eig_report
    from groundstate.math.linalg.eigen import svd_flip as svd_flip
    from groundstate.math.linalg.identities import Identity as Identity
    from groundstate.math.linalg.identities import identities as identities
    from groundstate.math.linalg.low_rank import CompressedImage as CompressedImage
    from groundstate.math.linalg.low_rank import LowRank as LowRank
    from groundstate.math.linalg.low_rank import RankK as RankK
    from groundstate.math.linalg.low_rank import compress_image as compress_image
    from groundstate.math.linalg.low_rank import low_rank as low_rank
    from groundstate.math.linalg.matrix_functions import inv_sqrtm as inv_sqrtm
    from groundstate.math.linalg.matrix_functions import logm as logm
    from groundstate.math.linalg.matrix_functions import powm as powm
    from groundstate.math.linalg.matrix_functions import spd_function as spd_function
    from groundstate.math.linalg.matrix_functions import sqrtm as sqrtm
    from groundstate.math.linalg.operator import GridOperator as GridOperator
    from groundstate.math.linalg.operator import LinearOperator as LinearOperator
    from groundstate.math.linalg.predicates import is_diagonalizable as is_diagonalizable
    from groundstate.math.linalg.predicates import is_diagonally_dominant as is_diagonally_dominant
    from groundstate.math.linalg.predicates import is_orthogonal as is_orthogonal
    from groundstate.math.linalg.predicates import is_positive_definite as is_positive_definite
    from groundstate.math.linalg.predicates import is_singular as is_singular
    from groundstate.math.linalg.predicates import is_symmetric as is_symmetric
    from groundstate.math.linalg.predicates import rotation as rotation
    from groundstate.math.linalg.series import exp_series as exp_series
    from groundstate.math.linalg.series import log_series as log_series
    from groundstate.math.linalg.solve import SolveInfo as SolveInfo
    from groundstate.math.linalg.solve import solve as solve
    from groundstate.math.linalg.whitening import Whitening as Whitening
    from groundstate.math.linalg.whitening import whitening as whitening

lazy(__name__)
