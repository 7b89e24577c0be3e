r"""Coordinate: minimise over one block at a time, the others held fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.infer.base import Method, Minimum, Query
from groundstate.infer.exact.chain import Chain
from groundstate.infer.exact.closed import ClosedForm
from groundstate.infer.exact.enumerate import Enumerate
from groundstate.infer.exact.grid import alphabet
from groundstate.registry import methods

Block = tuple[str, ...]
EXACT: tuple[Method, ...] = (ClosedForm(), Chain(), Enumerate())


@methods.register(
    formula=r"v_k \leftarrow \arg\min_{v_k} e(v_k, v_{-k})", make=lambda energy: Coordinate()
)
@dataclass(frozen=True)
class Coordinate(Method):
    r"""Cycle over blocks, each set to its exact minimiser given the others.

    The energy never rises; the answer is minimal in every block, which is a local minimum. On
    discrete variables this is iterated conditional modes, on bilinear real ones alternating
    least squares. A finite variable with too many values to enumerate is cut into its single
    coordinates.

    Parameters
    ----------
    blocks : names, or tuples of names that are minimised together; None takes every free
        variable as a block
    max_iter : most cycles
    tol : a row has converged when a cycle lowers its energy by no more than ``tol`` (relative to
        one or the energy, whichever is larger) or changes nothing
    inner : method for blocks that have no exact minimiser, e.g. ``Gradient()``; without it such
        blocks are refused

    Examples
    --------
    >>> from groundstate.energy import Binary, Energy
    >>> class Pairs(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Binary(30))
    ...     def forward(self, x):
    ...         return (x[:, 1:] - x[:, :-1]).abs().sum(-1) - x[:, 0]
    >>> from groundstate.infer import minimise
    >>> found = minimise(Pairs(), "x")
    >>> found.exact, bool((found.trace.diff(dim=0) <= 0).all())
    (False, True)
    """

    blocks: tuple[str | Block, ...] | None = None
    max_iter: int = 100
    tol: float = 1e-9
    inner: Method | None = None

    operations: ClassVar[frozenset[str]] = frozenset({"minimise"})

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        blocks = self._named(free)
        if sorted(name for block in blocks for name in block) != sorted(free):
            return f"blocks={self.blocks} do not split the free variables {free}"
        for block in blocks:
            if self._solver(energy, block, masks) is None and not self._cuttable(energy, block):
                return (
                    f"block {', '.join(block)} has no exact minimiser; pass inner=Gradient() or "
                    "another method for such blocks"
                )
        return None

    def _named(self, free: tuple[str, ...]) -> tuple[Block, ...]:
        blocks = self.blocks if self.blocks is not None else free
        return tuple((b,) if isinstance(b, str) else tuple(b) for b in blocks)

    def _solver(self, energy: Energy, block: Block, masks: Mapping[str, Tensor]) -> Method | None:
        """The method that minimises a block; only its variables count as partly known."""
        free = {name: masks.get(name) for name in block} if set(block) & set(masks) else block
        options = EXACT if self.inner is None else (*EXACT, self.inner)
        for method in options:
            if method.reason_against(energy, "minimise", free) is None:  # type: ignore[arg-type]
                return method
        return None

    def _cuttable(self, energy: Energy, block: Block) -> bool:
        """Whether a block may be cut into coordinates; a sequence with steps is left to Beam."""
        if len(block) != 1 or alphabet(energy.spaces[block[0]]) is None:
            return False
        return self.blocks is not None or energy.ability("step", *block) is None

    def minimise(self, query: Query) -> Minimum:
        values = {name: start(query, name) for name in query.free}
        with torch.no_grad():
            e = query.evaluate(values)
        trace = [e]
        settled = torch.zeros_like(e, dtype=torch.bool)
        cycles = 0
        while cycles < self.max_iter and not bool(settled.all()):
            before = e
            for method, part in self._parts(query, values):
                found = method.minimise(part)
                better = (found.energy < e) & ~settled  # (B,)
                for name in part.free:
                    rows = better.reshape(-1, *(1,) * (values[name].ndim - 1))
                    values[name] = torch.where(rows, found.values[name].detach(), values[name])
                e = torch.where(better, found.energy.detach(), e)
                trace.append(e)
            drop = torch.where(torch.isposinf(before), before, before - e)
            unmoved = before == e
            settled = settled | unmoved | (drop <= self.tol * e.abs().clamp_min(1.0))
            cycles += 1
        return Minimum(values, e, False, settled, cycles, torch.stack(trace))

    def _parts(self, query: Query, values: dict[str, Tensor]) -> Iterator[tuple[Method, Query]]:
        """One question per block; ``values`` are read when the block's turn comes."""
        for block in self._named(query.free):
            method = self._solver(query.energy, block, query.masks)
            masks = {name: query.masks[name] for name in block if name in query.masks}
            if method is not None:
                yield method, self._part(query, values, block, masks)
                continue
            (name,) = block
            whole = masks.get(name, torch.ones_like(values[name], dtype=torch.bool))
            for i in range(values[name][0].numel()):
                mask = torch.zeros_like(whole)
                mask.reshape(len(mask), -1)[:, i] = whole.reshape(len(whole), -1)[:, i]
                yield Enumerate(), self._part(query, values, block, {name: mask})

    @staticmethod
    def _part(
        query: Query, values: Mapping[str, Tensor], block: Block, masks: Mapping[str, Tensor]
    ) -> Query:
        others = {n: v for n, v in values.items() if n not in block or n in masks}
        init = {n: values[n] for n in block}
        free = query.energy.ordered(block)
        return replace(query, free=free, given={**query.fixed, **others}, masks=masks, init=init)


def start(query: Query, name: str) -> Tensor:
    """A start value ``(B, *event)``: ``init`` or one draw shared by all rows; knowns in place."""
    space = query.space(name)
    if query.init is not None and name in query.init:
        value = query.init[name].clone()
    else:
        generator = query.generator or Key.of(0).torch(query.device)
        one = space.draw(1, generator=generator, device=generator.device, dtype=query.dtype)
        value = one.to(query.device).repeat(query.rows, *(1,) * len(space.shape))
    if name in query.masks:
        value = torch.where(query.masks[name], value, query.given[name].to(value.dtype))
    return value
