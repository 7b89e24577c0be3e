"""Functions that obey equations: derivatives, problems, and estimators that solve and discover them."""

from groundstate.models.physics.conditions import Dirichlet, Initial, Neumann, Periodic, Robin
from groundstate.models.physics.curves import IntegralCurves
from groundstate.models.physics.domain import Box, Mask
from groundstate.models.physics.equation_finder import EquationFinder
from groundstate.models.physics.function_regressor import FunctionRegressor
from groundstate.models.physics.library import PROBLEMS as library
from groundstate.models.physics.neural_ode import NeuralODE
from groundstate.models.physics.pinn import PINN
from groundstate.models.physics.problem import Problem
from groundstate.nn.coordinate.fields import D, Field, div, fields, grad, laplacian

__all__ = [
    "Box", "D", "Dirichlet", "EquationFinder", "Field", "FunctionRegressor", "Initial",
    "IntegralCurves", "Mask", "Neumann", "NeuralODE", "PINN", "Periodic", "Problem", "Robin", "div",
    "fields", "grad", "laplacian", "library",
]  # fmt: skip
