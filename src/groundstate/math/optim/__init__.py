"""Optimisers that show their work: roots, line searches, Newton, quasi-Newton, conjugate gradients.

They take a function written in torch (differentiated automatically) or in NumPy (with its
gradient), and return an ``OptimResult`` with the whole path and the reason for stopping.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.optim.conditioning import ZCAWhitener as ZCAWhitener
    from groundstate.math.optim.conditioning import centre as centre
    from groundstate.math.optim.conditioning import hessian_condition as hessian_condition
    from groundstate.math.optim.conditioning import least_squares_hessian as least_squares_hessian
    from groundstate.math.optim.conjugate import cg as cg
    from groundstate.math.optim.conjugate import nonlinear_cg as nonlinear_cg
    from groundstate.math.optim.conjugate import steepest_descent as steepest_descent
    from groundstate.math.optim.critical import CriticalPoint as CriticalPoint
    from groundstate.math.optim.critical import Slices as Slices
    from groundstate.math.optim.critical import classify_critical_point as classify_critical_point
    from groundstate.math.optim.critical import slices as slices
    from groundstate.math.optim.curvature import Critical as Critical
    from groundstate.math.optim.curvature import Spectrum as Spectrum
    from groundstate.math.optim.curvature import condition_number as condition_number
    from groundstate.math.optim.curvature import critical_point as critical_point
    from groundstate.math.optim.curvature import hessian_spectrum as hessian_spectrum
    from groundstate.math.optim.curvature import lanczos as lanczos
    from groundstate.math.optim.descent import gradient_descent as gradient_descent
    from groundstate.math.optim.descent import newton_cg as newton_cg
    from groundstate.math.optim.implicit import flow as flow
    from groundstate.math.optim.implicit import modified_loss as modified_loss
    from groundstate.math.optim.landscape import Landscape as Landscape
    from groundstate.math.optim.landscape import landscape as landscape
    from groundstate.math.optim.line_search import Step as Step
    from groundstate.math.optim.line_search import line_search as line_search
    from groundstate.math.optim.minimize import METHODS as METHODS
    from groundstate.math.optim.minimize import genetic as genetic
    from groundstate.math.optim.minimize import minimize as minimize
    from groundstate.math.optim.newton import TaylorModel as TaylorModel
    from groundstate.math.optim.newton import newton as newton
    from groundstate.math.optim.newton import newton_root as newton_root
    from groundstate.math.optim.newton import taylor as taylor
    from groundstate.math.optim.quasi_newton import bfgs as bfgs
    from groundstate.math.optim.quasi_newton import bfgs_update as bfgs_update
    from groundstate.math.optim.quasi_newton import lbfgs as lbfgs
    from groundstate.math.optim.quasi_newton import two_loop as two_loop
    from groundstate.math.optim.result import IndefiniteError as IndefiniteError
    from groundstate.math.optim.result import OptimResult as OptimResult
    from groundstate.math.optim.result import SingularError as SingularError
    from groundstate.math.optim.smoothness import descent_bound as descent_bound
    from groundstate.math.optim.smoothness import is_descent as is_descent
    from groundstate.math.optim.smoothness import largest_step as largest_step
    from groundstate.math.optim.smoothness import lipschitz as lipschitz
    from groundstate.math.optim.smoothness import softmax_lipschitz as softmax_lipschitz

lazy(__name__)
