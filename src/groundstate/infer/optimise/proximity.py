r"""Move the input instead of θ: synthesis, adversarial and counterfactual inputs.

.. math:: x^* = \arg\min_x\; e(x, y) + c\,\|x - x_0\|^2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Space
from groundstate.errors import Unsupported
from groundstate.infer.base import Method, Minimum
from groundstate.infer.dispatch import minimise
from groundstate.infer.optimise.gradient import Gradient


class Proximity(Energy):
    r"""A spring to a start point, :math:`c\,\|x - x_0\|^2`, to be added to another energy.

    The start point is a given argument named ``<variable>0``, one per row.

    Parameters
    ----------
    space : where the variable lives
    c : strength of the spring
    variable : name of the variable

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import Real
    >>> spring = Proximity(Real(2), c=3.0)
    >>> spring(x=torch.ones(1, 2), x0=torch.zeros(1, 2))
    tensor([6.])
    """

    def __init__(self, space: Space, c: float = 1.0, variable: str = "x") -> None:
        if not space.is_real:
            raise Unsupported(f"a spring needs a real variable, {variable!r} lives in {space!r}")
        if not c >= 0:
            raise ValueError(f"the strength of a spring must be at least 0, got c={c}")
        super().__init__(**{variable: space})
        self.c, self.variable = float(c), variable
        self.context = (f"{variable}0",)

    def config(self) -> dict[str, Any]:
        return {"space": self.spaces[self.variable], "c": self.c, "variable": self.variable}

    def forward(self, **values: Tensor) -> Tensor:
        v, v0 = values[self.variable], values[self.context[0]]
        return self.c * (v - v0).square().flatten(1).sum(1)


def adapt(
    energy: Energy,
    start: Tensor,
    given: Mapping[str, Tensor] | None = None,
    *,
    c: float = 0.0,
    variable: str = "x",
    method: Method | None = None,
) -> Minimum:
    """Move a variable downhill from ``start``, held back by a spring of strength ``c``.

    Parameters
    ----------
    energy : Energy
    start : where each row begins, ``(B, *event)``
    given : values of the other variables
    c : strength of the spring to the start point
    variable : what moves
    method : None is ``Gradient()``

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import SquaredEnergy
    >>> e = SquaredEnergy(1, 1)
    >>> moved = adapt(e, torch.ones(1, 1), {"y": torch.zeros(1, 1)}, c=1.0)
    >>> moved["x"].shape
    torch.Size([1, 1])
    """
    known = dict(given or {})
    if c:
        energy = energy + Proximity(energy.spaces[variable], c, variable)
        known[f"{variable}0"] = start
    return minimise(
        energy, variable, known, method=method or Gradient(), init={variable: start.detach()}
    )
