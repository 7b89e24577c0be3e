r"""Margins: the target must win by a distance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Terms
from groundstate.learn.losses.energies import check_margin, margin_rows
from groundstate.learn.rules.common import ContrastRule, Plan, listable, table_of, terms_of
from groundstate.learn.rules.inner import replace, suggested
from groundstate.learn.rules.margins.structured import chain_margin, hamming, nbest_margin
from groundstate.registry import rules

Cost = Tensor | Literal["hamming"] | Callable[[Tensor, Tensor], Tensor] | None


@rules.register(
    formula=r"L = \max_{y'}\,[m\,\Delta(y,y') + e_y - e_{y'}]",
    make=lambda energy: Margin(approximate=suggested(energy)),
)
class Margin(ContrastRule):
    r""":math:`L = \max(0, m + e_y - e_{\hat y})`. Lowers e on the target, raises e on the best
    wrong value.

    :math:`\hat y` is the wrong value of lowest energy; nothing happens once the target wins by the
    margin. With a cost, :math:`L = \max_{y'}\,[m\,\Delta(y,y') + e_y - e_{y'}]`: worse mistakes
    must lose by more. On a chain the Hamming cost is added to the unary energies and the worst offender
    found by dynamic programming; where values come step by step, among the best of a beam.

    Parameters
    ----------
    m : float > 0, default=1.0
        The margin.
    cost : tensor ``(K, K)``, "hamming" or a function, optional
        :math:`\Delta \ge 0`; a function gets the targets ``(B, *event)`` and all values
        ``(K, *event)`` and returns ``(B, K)``. None is :math:`1(y \ne y')`.
    T : float, default=0
        Above 0 the maximum becomes :math:`T\log\sum\exp(\cdot/T)`, which is smooth.
    n_best : int, default=8
        Width of the beam, where one is needed.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite, Real
    >>> class Line(Energy):
    ...     def forward(self, x, y):
    ...         return x[:, 0] * y
    >>> energy = Line(x=Real(1), y=Finite(3))
    >>> Margin(1.5)(energy, {"x": torch.ones(2, 1), "y": torch.tensor([0, 1])}).loss
    tensor([0.5000, 2.5000])
    """

    def __init__(
        self,
        m: float = 1.0,
        cost: Cost = None,
        T: float = 0.0,
        *,
        n_best: int = 8,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        self.m, self.T, self.n_best = check_margin(m), T, n_best
        if T < 0:
            raise ValueError(f"temperature must be at least 0, got T={T}")
        if isinstance(cost, Tensor) and not bool((cost >= 0).all()):
            raise ValueError("costs must be non-negative: they say how bad a mistake is")
        if isinstance(cost, str) and cost != "hamming":
            raise ValueError(f"cost must be a tensor, a function, 'hamming' or None, got {cost!r}")
        if isinstance(cost, Tensor):
            self.register_buffer("cost_matrix", cost)
        self.cost: Any = None if isinstance(cost, Tensor) else cost
        self.smooth = T > 0

    def extra_repr(self) -> str:
        return f"m={self.m}, T={self.T}"

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        if plan.route == "table":
            e, y = plan.energies(batch)
            loss = margin_rows(e, y, self.m, self._cost(plan, batch), self.T)
            return terms_of(e, y, loss, plan.exact)
        if plan.route == "chain":
            positive, loss = chain_margin(plan, batch, self.m, self.cost, self.T)
        else:
            positive, loss = nbest_margin(plan, batch, self.m, self.cost, self.T, self.n_best)
        return Terms(loss, lambda: (positive, positive - loss), exact=plan.exact)

    def _cost(self, plan: Plan, batch: Batch) -> Tensor | None:
        matrix = self._buffers.get("cost_matrix")
        if matrix is not None or self.cost is None:
            return matrix
        target = batch[plan.over[0]]
        space = plan.view.spaces[plan.over[0]]
        values = space.enumerate(target.device, target.dtype)
        if self.cost == "hamming":
            return hamming(target, values, plan.view.placement(batch)[1])
        cost: Tensor = self.cost(target, values)
        return cost

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = super().reason_against(energy, batch)
        if reason is not None:
            return reason
        over = self.contrasted(energy)
        for name in over:
            if not energy.spaces[name].is_finite:
                return (
                    f"{name!r} lives in {energy.spaces[name]!r}, where next to every value lies "
                    "another of almost the same energy, so there is no best wrong one; use SoftMin"
                )
        view = self._view(energy, batch)
        if listable(view, over):
            matrix = self._buffers.get("cost_matrix")
            size = int(view.spaces[over[0]].size)
            if matrix is not None and tuple(matrix.shape) != (size, size):
                return f"the cost is {tuple(matrix.shape)} but {over[0]!r} has {size} values"
            if self.cost == "hamming" and isinstance(view.spaces[over[0]], Finite):
                return (
                    f"{over[0]!r} is one symbol, so its Hamming cost is the default; leave it out"
                )
            return None
        if len(over) == 1 and (
            view.ability("chain", over[0]) is not None or view.ability("step", over[0]) is not None
        ):
            if "cost_matrix" in self._buffers or callable(self.cost):
                return f"{over[0]!r} is a sequence: its cost is 'hamming' or None"
            return None
        return (
            f"{', '.join(over)} has too many values to list and offers neither chain nor step, so "
            "the best wrong value cannot be found; use SoftMin, ContrastiveDivergence or Sampled"
        )

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        if listable(plan.view, plan.over):
            return replace(plan, route="table", table=table_of(plan.view, plan.over[0]))
        if plan.view.ability("chain", *plan.over) is not None:
            return replace(plan, route="chain")
        return replace(plan, route="n-best", exact=False)
