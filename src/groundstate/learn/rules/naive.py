r"""No contrast: lower the energy of the data and nothing else."""

from __future__ import annotations

import warnings

import torch

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Terms
from groundstate.learn.rules.common import ContrastRule, Plan
from groundstate.learn.rules.inner import suggested, theta_free
from groundstate.registry import rules


@rules.register(formula=r"L = e", make=lambda energy: Naive(approximate=suggested(energy)))
class Naive(ContrastRule):
    r""":math:`L = e`, so :math:`R = 0`. Lowers e on the data, raises e nowhere.

    Safe only if the normaliser :math:`Z(\theta)` over the contrasted variables does not depend on
    θ, as for squared error, or the energy is bounded from below, as a distance to a plane; otherwise
    every energy can fall without end, and the rule warns.

    Parameters
    ----------
    over, latent, approximate
        See ``ContrastRule``; ``over`` is only what the warning is about.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import Energy, Real
    >>> class Square(Energy):
    ...     normalised = frozenset({"x"})
    ...     def forward(self, x):
    ...         return 0.5 * (x - 1).square().sum(-1) + 0.918938533
    >>> Naive()(Square(x=Real(1)), {"x": torch.zeros(1, 1)}).loss
    tensor([1.4189])
    """

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        loss = plan.positive(batch, generator)
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=plan.exact)

    def contrast_is_constant(self, energy: Energy) -> bool:
        return True

    def _first_use(self, energy: Energy, plan: Plan) -> None:
        free = (*plan.over, *plan.latents)
        if energy.bounded_below or set(plan.over) <= energy.normalised or theta_free(energy, free):
            return
        warnings.warn(
            f"Naive lowers the energy of the data and raises nothing, and {type(energy).__name__} "
            f"is not normalised over {', '.join(plan.over)}: energies can fall without end; use "
            "SoftMin, Margin or Perceptron",
            UserWarning,
            stacklevel=4,
        )
