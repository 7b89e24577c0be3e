r"""Enumerate: every joint value of the finite free variables.

.. math:: \min_k e_k, \qquad F = -T\log\sum_k e^{-e_k/T}, \qquad p_k = e^{-(e_k - F)/T}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.infer.base import (
    Draws,
    FreeEnergy,
    Method,
    Minimum,
    Query,
    check_energies,
    check_possible,
)
from groundstate.infer.exact.grid import Grid, count, unknown_of
from groundstate.math.info.free_energy import free_energy
from groundstate.registry import methods


def rows_of(query: Query, rows: slice | Tensor) -> Query:
    """The same question about some of the rows."""

    def take(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: v[rows] for name, v in values.items()}

    init = take(query.init) if query.init is not None else None
    return replace(query, given=take(query.given), masks=take(query.masks), init=init)


@methods.register(formula=r"\min_k e_k,\; -T\log\sum_k e^{-e_k/T}", make=lambda energy: Enumerate())
@dataclass(frozen=True)
class Enumerate(Method):
    r"""Evaluate :math:`e` on all :math:`K` values of the product of the finite free spaces.

    Exact for all three operations. Ties go to the lowest value in the order of
    ``space.enumerate()``, the first free variable most significant. Partly known variables are
    enumerated over their unknown coordinates only.

    Parameters
    ----------
    limit : largest number of joint values K
    chunk : most elements of one evaluation; memory, not results, depends on it

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite
    >>> class Table(Energy):
    ...     def __init__(self):
    ...         super().__init__(y=Finite(3))
    ...     def forward(self, y):
    ...         return torch.tensor([1.0, 2.0, 3.0])[y]
    >>> from groundstate.infer import marginalise, minimise
    >>> minimise(Table(), "y")["y"].item(), round(marginalise(Table(), "y").value.item(), 6)
    (0, 0.592394)
    """

    limit: int = 2**20
    chunk: int = 2**24

    operations: ClassVar[frozenset[str]] = frozenset({"minimise", "marginalise", "sample"})
    exact: ClassVar[bool] = True

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        spaces = {name: energy.spaces[name] for name in free}
        for name, space in spaces.items():
            if not space.is_finite:
                return f"{name!r} in {space!r} has infinitely many values"
        k = count(spaces, masks)
        if k > self.limit:
            return f"the free variables have K={k:.4g} joint values, more than limit={self.limit}"
        return None

    # --- tables --------------------------------------------------------------------------

    def grid(self, query: Query) -> Grid:
        """The joint values of the free variables of a question."""
        spaces = {name: query.space(name) for name in query.free}
        masks = unknown_of(spaces, query.masks, query.given.get("lengths"))
        known = {
            name: query.given[name]
            if name in query.given
            else torch.zeros(
                query.rows,
                *spaces[name].shape,
                dtype=spaces[name].dtype(query.dtype),
                device=query.device,
            )
            for name in masks
        }
        return Grid(spaces, masks, known, device=query.device, dtype=query.dtype)

    def table(self, query: Query, grid: Grid | None = None) -> Tensor:
        """Energies of all joint values, ``(B, K)``; codes that a row does not have are +inf."""
        grid = grid or self.grid(query)
        energy, fixed = query.energy, query.fixed
        if len(query.free) == 1 and not grid.varies:
            table = energy.table(query.free[0], **fixed)
            return check_energies(table.expand(query.rows, -1), energy)
        inner = None if grid.varies else self._inner(query)
        outer = {n: s for n, s in grid.spaces.items() if n != inner}
        codes = grid if inner is None else Grid(outer, device=query.device, dtype=query.dtype)
        k_inner = 1 if inner is None else grid.size // codes.size
        b = query.rows
        widest = max([1, *(v[0].numel() for v in fixed.values())])
        widest = max([widest, k_inner, *(math.prod(s.shape) for s in outer.values())])
        step = max(1, self.chunk // (b * widest))

        def columns(chunk: Tensor) -> Tensor:
            values, exists = codes.rows(chunk, b)
            repeated = {n: v.repeat_interleave(len(chunk), 0) for n, v in fixed.items()}
            if inner is not None:
                table = energy.table(inner, **repeated, **values)  # (B*c, K_inner)
                return table.reshape(b, len(chunk), k_inner)
            e = energy(**repeated, **values).reshape(b, len(chunk), 1)
            return e if exists is None else e.masked_fill(~exists[:, :, None], math.inf)

        chunks = torch.split(torch.arange(codes.size, device=query.device), step)
        parts = [self._run(columns, chunk, len(chunks) > 1) for chunk in chunks]
        table = parts[0] if len(parts) == 1 else torch.cat(parts, 1)  # (B, K_outer, K_inner)
        if inner is not None:  # put the inner variable back in its place among the others
            sizes = [int(grid.spaces[n].size) for n in outer]
            at = list(grid.spaces).index(inner)
            table = table.reshape(b, *sizes, k_inner).movedim(-1, 1 + at)
        return check_energies(table.reshape(b, grid.size), energy)

    @staticmethod
    def _run(columns: Callable[[Tensor], Tensor], chunk: Tensor, several: bool) -> Tensor:
        if several and torch.is_grad_enabled():  # keep one chunk's graph at a time in memory
            result: Tensor = checkpoint(columns, chunk, use_reentrant=False)
            return result
        return columns(chunk)

    @staticmethod
    def _inner(query: Query) -> str | None:
        """The free variable with the largest declared table: it is listed in one pass."""
        declared = [n for n in query.free if query.energy.ability("table", n) is not None]
        return max(declared, key=lambda n: query.space(n).size, default=None)

    def _blocks(self, query: Query) -> Iterator[tuple[slice, Query, Grid]]:
        """Blocks of rows whose table has at most ``chunk`` elements."""
        whole = self.grid(query)
        step = max(1, self.chunk // whole.size)
        if query.rows <= step:
            yield slice(None), query, whole
            return
        for start in range(0, query.rows, step):
            part = rows_of(query, slice(start, start + step))
            yield slice(start, start + step), part, self.grid(part)

    # --- operations ----------------------------------------------------------------------

    @torch.no_grad()
    def minimise(self, query: Query) -> Minimum:
        energies, values = [], []
        for _, part, grid in self._blocks(query):
            table = check_possible(self.table(part, grid), query.energy)
            lowest = table.min(1)
            energies.append(lowest.values)
            values.append({n: v[0] for n, v in grid.take(lowest.indices[None]).items()})
        found = {n: torch.cat([v[n] for v in values]) for n in query.free}
        e = torch.cat(energies)
        return Minimum(found, e, True, torch.ones_like(e, dtype=torch.bool), 1)

    def marginalise(self, query: Query) -> FreeEnergy:
        parts = [
            free_energy(check_possible(self.table(part, grid), query.energy), query.T, 1)
            for _, part, grid in self._blocks(query)
        ]
        return FreeEnergy(parts[0] if len(parts) == 1 else torch.cat(parts), "exact")

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        generator = query.generator or Key.of(None).torch(query.device)
        # one uniform per draw and row, drawn before the rows are split into blocks
        size, device = (n, query.rows), generator.device
        u = torch.rand(size, generator=generator, device=device, dtype=torch.float64)
        u = u.to(query.device)
        values: list[dict[str, Tensor]] = []
        energies = []
        for rows, part, grid in self._blocks(query):
            table = check_possible(self.table(part, grid), query.energy)  # (b, K)
            p = torch.softmax(-table.double() / query.T, 1)
            cdf = p.cumsum(1)
            cdf /= cdf[:, -1:].clone()
            at = torch.searchsorted(cdf, u[:, rows].T.contiguous(), right=True)  # (b, n)
            codes = at.clamp_(max=grid.size - 1).T  # (n, b)
            values.append(grid.take(codes))
            energies.append(table.gather(1, codes.T).T)
        found = {name: torch.cat([v[name] for v in values], 1) for name in query.free}
        return Draws(found, torch.cat(energies, 1), "exact")

    def expectation(self, query: Query, f: Callable[[dict[str, Tensor]], Any]) -> Any:
        r"""Exact :math:`\mathbb{E}_p[f]`; ``f`` maps values ``(B*K, *event)`` to ``(B*K, ...)``."""
        totals = []
        for _, part, grid in self._blocks(query):
            p = torch.softmax(-self.table(part, grid) / query.T, 1)  # (b, K)
            codes = torch.arange(grid.size, device=query.device)
            values, _ = grid.rows(codes, part.rows)
            found = f(values).reshape(part.rows, grid.size, -1)
            totals.append(torch.einsum("bk,bkd->bd", p, found.to(p.dtype)))
        return torch.cat(totals)
