r"""Eliminate: sum out several variables one after the other.

.. math:: \sum_{x,z} e^{-e(x,z)/T} = \sum_x e^{-F(x)/T}, \qquad F(x) = -T\log\sum_z e^{-e(x,z)/T}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.base import FreeEnergy, Method, Query
from groundstate.infer.exact.chain import Chain
from groundstate.infer.exact.closed import ClosedForm
from groundstate.infer.exact.enumerate import Enumerate
from groundstate.registry import methods


@methods.register(
    formula=r"\sum_{x,z} e^{-e/T} = \sum_x e^{-F(x)/T}", make=lambda energy: Eliminate()
)
@dataclass(frozen=True)
class Eliminate(Method):
    r"""Remove the free variables one by one, each by closed form, chain or enumeration.

    A factorised conditional makes a sum of :math:`2^n` terms a product of :math:`n` factors, so
    the order matters; the default is the one that enumerates fewest values.

    Parameters
    ----------
    order : the variables in the order of removal; None takes the cheapest order
    limit : most values that are enumerated, over all removals together
    """

    order: tuple[str, ...] | None = None
    limit: int = 2**20

    operations: ClassVar[frozenset[str]] = frozenset({"marginalise"})
    exact: ClassVar[bool] = True

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if len(free) < 2:
            return f"{free[0]!r} is the only free variable, there is no order to choose"
        if masks:
            return f"{', '.join(map(repr, masks))} is known in part"
        if self.order is not None and set(self.order) != set(free):
            return f"order={self.order} does not name the free variables {free}"
        if self.plan(energy, free) is None:
            return (
                f"no order of {', '.join(map(repr, free))} removes each variable by closed form "
                f"or by enumerating at most {self.limit} values"
            )
        return None

    def plan(
        self, energy: Energy, free: tuple[str, ...], T: float = 1.0
    ) -> tuple[float, tuple[str, ...]] | None:
        """Values enumerated and order of removal of the cheapest plan, or None."""
        best: tuple[float, tuple[str, ...]] | None = None
        for name in free if self.order is None else self.order[-len(free) :][:1]:
            cost = self._cost(energy, name)
            if cost is None:
                continue
            rest = tuple(n for n in free if n != name)
            if rest:
                later = self.plan(energy.marginal(name, T=T), rest, T)
                if later is None:
                    continue
                cost, order = cost * later[0], (name, *later[1])
            else:
                order = (name,)
            if cost <= self.limit and (best is None or cost < best[0]):
                best = cost, order
        return best

    def _cost(self, energy: Energy, name: str) -> float | None:
        for method in (ClosedForm(), Chain()):
            if method.reason_against(energy, "marginalise", name) is None:
                return 1.0
        if Enumerate(self.limit).reason_against(energy, "marginalise", name) is None:
            return energy.spaces[name].size
        return None

    def marginalise(self, query: Query) -> FreeEnergy:
        plan = self.plan(query.energy, query.free, query.T)
        assert plan is not None
        *first, last = plan[1]
        energy = query.energy
        for name in first:
            energy = energy.marginal(name, T=query.T)
        rest = replace(query, energy=energy, free=(last,))
        for method in (ClosedForm(), Chain(), Enumerate(self.limit)):
            if method.reason_against(energy, "marginalise", last) is None:
                return method.marginalise(rest)
        raise AssertionError(f"the plan {plan[1]} cannot be carried out")
