r"""The perceptron: the current winner pays."""

from __future__ import annotations

import torch

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Terms
from groundstate.learn.losses.energies import perceptron_rows
from groundstate.learn.rules.common import ContrastRule, Plan, listable, table_of, terms_of
from groundstate.learn.rules.inner import choose, minimum, replace, suggested
from groundstate.registry import rules


@rules.register(
    formula=r"L = e_y - \min_{y'} e_{y'}",
    make=lambda energy: Perceptron(approximate=suggested(energy)),
)
class Perceptron(ContrastRule):
    r""":math:`L = e_y - \min_{y'} e_{y'} \ge 0`. Lowers e on the target, raises e on the winner.

    The minimum runs over all values, so a row whose target already wins has loss 0 and gives no
    gradient; otherwise the gradient is :math:`\nabla e_y - \nabla e_{\hat y}`. It is the limit
    T → 0 of ``SoftMin``. Over variables that cannot be listed, the winner is found by ``minimise``.

    Parameters
    ----------
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite, Real
    >>> class Line(Energy):
    ...     def forward(self, x, y):
    ...         return x[:, 0] * y
    >>> energy = Line(x=Real(1), y=Finite(2))
    >>> Perceptron()(energy, {"x": torch.ones(2, 1), "y": torch.tensor([0, 1])}).loss
    tensor([0., 1.])
    """

    smooth = False

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        if plan.route == "table":
            e, y = plan.energies(batch)
            loss = perceptron_rows(e, y)
            return terms_of(e, y, loss, plan.exact)
        positive = plan.positive(batch, generator)
        contrast = minimum(plan, batch, generator)
        # A search may miss the minimum; the data row itself is a candidate, which keeps L >= 0.
        contrast = torch.where(contrast <= positive, contrast, positive)
        return Terms(positive - contrast, lambda: (positive, contrast), exact=plan.exact)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = super().reason_against(energy, batch)
        if reason is not None:
            return reason
        view = self._view(energy, batch)
        over = self.contrasted(energy)
        return None if listable(view, over) else choose(view, "minimise", over)[1]

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        if self.variational is None and listable(plan.view, plan.over):
            return replace(plan, route="table", table=table_of(plan.view, plan.over[0]))
        method = choose(plan.view, "minimise", plan.over)[0]
        exact = plan.exact and method is not None and method.exact
        return replace(plan, route="minimise", method=method, exact=exact)
