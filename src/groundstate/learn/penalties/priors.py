r"""Penalties named by the prior they are: :math:`\Omega(\theta) = -\log p(\theta)`."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.learn.penalties.norms import L1, L2, Select
from groundstate.registry import penalties


@penalties.register(formula=r"\|\theta\|^2/(2\tau^2)", make=lambda energy: GaussianPrior(4.0))
class GaussianPrior(L2):
    r""":math:`\Omega(\theta) = \|\theta\|^2/(2\tau^2)`: independent :math:`N(0, \tau^2)` priors.

    Parameters
    ----------
    variance : float, default=1.0
        :math:`\tau^2`.
    select, intercept
        Which parameters; see ``SeparablePenalty``.

    Examples
    --------
    >>> GaussianPrior(4.0).strength
    0.25
    """

    def __init__(
        self,
        variance: float | Tensor = 1.0,
        *,
        select: Select = None,
        intercept: bool = False,
    ) -> None:
        if not bool(torch.as_tensor(variance > 0).all()):
            raise ValueError(f"variance must be positive, got {variance}")
        super().__init__(1 / variance, select=select, intercept=intercept)
        self.variance = variance


@penalties.register(formula=r"\|\theta\|_1/b", make=lambda energy: LaplacePrior(2.0))
class LaplacePrior(L1):
    r""":math:`\Omega(\theta) = \|\theta\|_1/b`: independent Laplace priors of scale :math:`b`.

    Parameters
    ----------
    b : float, default=1.0
    select, intercept
        Which parameters; see ``SeparablePenalty``.

    Examples
    --------
    >>> LaplacePrior(2.0).strength
    0.5
    """

    def __init__(
        self, b: float | Tensor = 1.0, *, select: Select = None, intercept: bool = False
    ) -> None:
        if not bool(torch.as_tensor(b > 0).all()):
            raise ValueError(f"b must be positive, got {b}")
        super().__init__(1 / b, select=select, intercept=intercept)
        self.b = b
