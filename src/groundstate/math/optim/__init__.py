"""Optimisers that show their work: roots, line searches, Newton, quasi-Newton, conjugate gradients.

They take a function written in torch (differentiated automatically) or in NumPy (with its
gradient), and return an ``OptimResult`` with the whole path and the reason for stopping.
"""

from groundstate.math.optim.conditioning import (
    ZCAWhitener,
    centre,
    hessian_condition,
    least_squares_hessian,
)
from groundstate.math.optim.conjugate import cg, nonlinear_cg, steepest_descent
from groundstate.math.optim.critical import (
    CriticalPoint,
    Slices,
    classify_critical_point,
    slices,
)
from groundstate.math.optim.curvature import (
    Critical,
    Spectrum,
    condition_number,
    critical_point,
    hessian_spectrum,
    lanczos,
)
from groundstate.math.optim.descent import gradient_descent, newton_cg
from groundstate.math.optim.implicit import flow, modified_loss
from groundstate.math.optim.landscape import Landscape, landscape
from groundstate.math.optim.line_search import Step, line_search
from groundstate.math.optim.minimize import METHODS, genetic, minimize
from groundstate.math.optim.newton import TaylorModel, newton, newton_root, taylor
from groundstate.math.optim.quasi_newton import bfgs, bfgs_update, lbfgs, two_loop
from groundstate.math.optim.result import IndefiniteError, OptimResult, SingularError
from groundstate.math.optim.smoothness import (
    descent_bound,
    is_descent,
    largest_step,
    lipschitz,
    softmax_lipschitz,
)

__all__ = [
    "METHODS",
    "Critical",
    "Landscape",
    "Spectrum",
    "condition_number",
    "critical_point",
    "descent_bound",
    "flow",
    "genetic",
    "hessian_spectrum",
    "is_descent",
    "lanczos",
    "landscape",
    "largest_step",
    "lipschitz",
    "minimize",
    "modified_loss",
    "softmax_lipschitz",
    "CriticalPoint",
    "IndefiniteError",
    "OptimResult",
    "SingularError",
    "Slices",
    "Step",
    "TaylorModel",
    "ZCAWhitener",
    "bfgs",
    "bfgs_update",
    "centre",
    "cg",
    "classify_critical_point",
    "gradient_descent",
    "hessian_condition",
    "least_squares_hessian",
    "lbfgs",
    "line_search",
    "newton",
    "newton_cg",
    "newton_root",
    "nonlinear_cg",
    "slices",
    "steepest_descent",
    "taylor",
    "two_loop",
]
