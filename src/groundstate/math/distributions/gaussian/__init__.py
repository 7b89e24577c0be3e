r"""The algebra of Gaussian distributions: everything stays Gaussian and is solved by Cholesky factors."""

from groundstate.math.distributions.gaussian.algebra import (
    Moments,
    add,
    affine,
    condition,
    expected_quadratic,
    marginal,
    product,
)
from groundstate.math.distributions.gaussian.linear import LinearJoint, linear_joint
from groundstate.math.distributions.gaussian.pinned import PinnedNormal

__all__ = [
    "LinearJoint",
    "Moments",
    "PinnedNormal",
    "add",
    "affine",
    "condition",
    "expected_quadratic",
    "linear_joint",
    "marginal",
    "product",
]
