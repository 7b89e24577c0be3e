r"""The algebra of Gaussian distributions: everything stays Gaussian and is solved by Cholesky factors."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.distributions.gaussian.algebra import Moments as Moments
    from groundstate.math.distributions.gaussian.algebra import add as add
    from groundstate.math.distributions.gaussian.algebra import affine as affine
    from groundstate.math.distributions.gaussian.algebra import condition as condition
    from groundstate.math.distributions.gaussian.algebra import (
        expected_quadratic as expected_quadratic,
    )
    from groundstate.math.distributions.gaussian.algebra import marginal as marginal
    from groundstate.math.distributions.gaussian.algebra import product as product
    from groundstate.math.distributions.gaussian.linear import LinearJoint as LinearJoint
    from groundstate.math.distributions.gaussian.linear import linear_joint as linear_joint
    from groundstate.math.distributions.gaussian.partly_known import (
        PartlyKnownNormal as PartlyKnownNormal,
    )

lazy(__name__)
