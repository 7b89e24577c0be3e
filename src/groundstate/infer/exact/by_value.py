r"""ByValue: one finite variable value by value, the other in closed form.

.. math:: \min_k \min_x e(x, k), \qquad F = -T\log\sum_k e^{-F_k/T}, \qquad
    p(x, k) = e^{-(F_k - F)/T}\,p(x\mid k).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.infer.base import Draws, FreeEnergy, Method, Minimum, Query
from groundstate.infer.exact.closed import ClosedForm, energies_of
from groundstate.infer.exact.enumerate import rows_of
from groundstate.infer.exact.limits import logits
from groundstate.math.info.free_energy import free_energy
from groundstate.registry import methods

_INNER = ClosedForm()


@methods.register(
    formula=r"\min_k \min_x e(x, k),\; -T\log\sum_k e^{-F_k/T}", make=lambda energy: ByValue()
)
@dataclass(frozen=True)
class ByValue(Method):
    r"""Answer for every value of a finite variable in closed form, and put the answers together.

    Exact for a class and the unknown features of its row, or a component and its observation,
    where neither alone is the whole question.

    Parameters
    ----------
    limit : most values of the finite variable
    chunk : most elements of the systems solved at once; memory, not results, depends on it

    Examples
    --------
    >>> from groundstate.energy import GaussianMixtureEnergy
    >>> from groundstate.infer import minimise
    >>> e = GaussianMixtureEnergy(2, 1)
    >>> with torch.no_grad():
    ...     _ = e.mu.copy_(torch.tensor([[-3.0], [3.0]]))
    ...     _ = e.logits.copy_(torch.tensor([0.0, 1.0]))
    >>> found = minimise(e, ("x", "z"))
    >>> found["z"].item(), found["x"].item()
    (1, 3.0)
    """

    limit: int = 2**10
    chunk: int = 2**24

    operations: ClassVar[frozenset[str]] = frozenset({"minimise", "marginalise", "sample"})
    exact: ClassVar[bool] = True

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        found = self._roles(energy, operation, free, masks)
        return found if isinstance(found, str) else None

    def _roles(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> tuple[str, str] | str:
        """The variable that is listed and the one that is solved for, or why there are none."""
        if len(free) != 2:
            return "it lists one variable and solves for one other"
        reason = f"neither {free[0]!r} nor {free[1]!r} is finite with at most {self.limit} values"
        for listed, other in (free, free[::-1]):
            space = energy.spaces[listed]
            if space.is_finite and space.size <= self.limit and listed not in masks:
                against = _INNER._against(energy, operation, (other,), masks)
                if against is None:
                    return listed, other
                reason = against
        return reason

    def _parts(
        self, query: Query, operation: str
    ) -> Iterator[tuple[Query, list[Query], tuple[str, str], Tensor]]:
        """Blocks of rows: the question, the same for each value of the listed variable, the roles, the
        values."""
        roles = self._roles(query.energy, operation, query.free, query.masks)
        assert not isinstance(roles, str)
        listed, other = roles
        space = query.space(listed)
        values = space.enumerate(query.device, query.dtype)  # (K, *event)
        wide = max(1, math.prod(query.space(other).shape)) ** 2
        step = query.rows if query.energy.rows is not None else max(1, self.chunk // wide)
        for start in range(0, query.rows, step):
            part = query if step >= query.rows else rows_of(query, slice(start, start + step))
            each = [
                replace(part, free=(other,),
                        given={**part.given, listed: v.expand(part.rows, *v.shape)})
                for v in values
            ]  # fmt: skip
            yield part, each, roles, values

    @torch.no_grad()
    def minimise(self, query: Query) -> Minimum:
        found, energies = list[dict[str, Tensor]](), list[Tensor]()
        for part, each, (listed, other), values in self._parts(query, "minimise"):
            answers = [_INNER.minimise(one) for one in each]
            lowest = torch.stack([a.energy for a in answers]).min(0)  # (K, B) to (B,)
            solved = torch.stack([a[other] for a in answers])  # (K, B, *event)
            at = torch.arange(part.rows, device=solved.device)
            found.append({other: solved[lowest.indices, at], listed: values[lowest.indices]})
            energies.append(lowest.values)
        e = torch.cat(energies)
        together = {name: torch.cat([f[name] for f in found]) for name in query.free}
        return Minimum(together, e, True, torch.ones_like(e, dtype=torch.bool), 1)

    def marginalise(self, query: Query) -> FreeEnergy:
        parts = [
            free_energy(torch.stack([_INNER.marginalise(one).value for one in each], 1), query.T, 1)
            for _, each, _, _ in self._parts(query, "marginalise")
        ]
        return FreeEnergy(torch.cat(parts), "exact")

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        generator = query.generator or Key.of(None).torch(query.device)
        query = replace(query, generator=generator)
        found, energies = list[dict[str, Tensor]](), list[Tensor]()
        for part, each, (listed, other), values in self._parts(query, "sample"):
            table = torch.stack([_INNER.marginalise(one).value for one in each], 1)  # (B, K)
            p = torch.softmax(logits(table, query.T), 1).to(generator.device)
            k = torch.multinomial(p, n, replacement=True, generator=generator).T.to(table.device)
            drawn = torch.stack([_INNER.sample(one, n)[other] for one in each])  # (K, n, B, *event)
            i, b = torch.meshgrid(*map(torch.arange, k.shape), indexing="ij")
            values_of = {other: drawn[k, i.to(k.device), b.to(k.device)], listed: values[k]}
            found.append(values_of)
            energies.append(energies_of(part, values_of))
        together = {name: torch.cat([f[name] for f in found], 1) for name in query.free}
        return Draws(together, torch.cat(energies, 1), "exact")
