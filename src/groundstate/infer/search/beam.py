r"""Beam: search over sequences that are built symbol by symbol.

.. math:: e(x_{1:L}) = \sum_t e(x_t \mid x_{<t})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.rows import count, take
from groundstate.energy.base import Energy
from groundstate.energy.sequences.step import StepState
from groundstate.infer.base import Method, Minimum, Query, check_energies
from groundstate.registry import methods

Step = Callable[..., tuple[Tensor, StepState]]


@methods.register(formula=r"e(x_{1:L}) = \sum_t e(x_t \mid x_{<t})", make=lambda energy: Beam())
@dataclass(frozen=True)
class Beam(Method):
    r"""Keep the ``width`` best beginnings and extend them by every symbol.

    ``width=1`` is greedy. A wider beam often finds a lower energy but need not; only
    :math:`K^{L-1}` beginnings make the search exhaustive. Known items of a sequence are held.

    Parameters
    ----------
    width : number of beginnings that are kept
    rerank : True keeps the best ``width`` of all extensions at every step; False takes the
        ``width`` best first symbols and continues each one greedily
    length_penalty : beginnings are compared by energy / length**length_penalty, which matters
        when ``end`` makes lengths differ
    end : the symbol after which a sequence is over; what follows it is ``end`` and costs nothing
    """

    width: int = 4
    rerank: bool = True
    length_penalty: float = 0.0
    end: int | None = None

    operations: ClassVar[frozenset[str]] = frozenset({"minimise"})

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Beam needs width >= 1, got {self.width}")

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if energy.ability("step", *free) is None:
            return f"no step is declared for {', '.join(map(repr, free))}"
        return None

    @torch.no_grad()
    def minimise(self, query: Query) -> Minimum:
        (name,) = query.free
        step = query.energy.ability("step", name)
        assert step is not None

        def held(state: StepState, e: Tensor) -> Tensor:
            """Forbid every symbol but the known one where the sequence is known."""
            check_energies(e, query.energy, "step")
            if name not in query.masks:
                return e
            at = state.order[state.position]
            known = torch.nn.functional.one_hot(query.given[name][:, at].long(), e.shape[-1])
            forbidden = ~query.masks[name][:, at, None] & ~known.bool()  # (B, K)
            beams = len(e) // query.rows
            return e.masked_fill(forbidden.repeat_interleave(beams, 0), math.inf)

        given = query.fixed
        increments, state = step(None, **given)
        if state.rows != query.rows:
            increments, state = spread(increments, state, query.rows)
        found = beam_search(step, given, increments, state, self, held)
        exhaustive = self.rerank and self.length_penalty == 0 and (
            self.width >= increments.shape[1] ** (found.steps - 1)
        )  # fmt: skip
        e = found.energy[:, 0]
        done = torch.ones_like(e, dtype=torch.bool)
        return Minimum({name: found.value[:, 0]}, e, exhaustive, done, found.steps)


@dataclass(frozen=True)
class Found:
    """Sequences that a search ended with, best first.

    Attributes
    ----------
    value : ``(B, w, L)``
    energy : of what was chosen, ``(B, w)``
    length : symbols that were chosen, the end included, ``(B, w)``
    token_energy : of each chosen symbol, ``(B, w, steps)``
    steps : symbols chosen at most
    """

    value: Tensor
    energy: Tensor
    length: Tensor
    token_energy: Tensor
    steps: int


def beam_search(
    step: Step,
    given: Mapping[str, Any],
    increments: Tensor,
    state: StepState,
    beam: Beam,
    held: Callable[[StepState, Tensor], Tensor] | None = None,
) -> Found:
    """Extend B beginnings to their end, ``beam.width`` at a time.

    Parameters
    ----------
    step : the ability of the energy
    given : what is known, B rows
    increments, state : of the first symbol to choose, B rows
    beam : width and ways of comparing
    held : what changes increments ``(B*w, K)`` before they count, such as known symbols
    """
    b, beams, k = len(increments), 1, increments.shape[1]
    total = increments.new_zeros(b, 1)
    length, over = torch.zeros_like(total), torch.zeros_like(total, dtype=torch.bool)
    each = increments.new_zeros(b, 1, 0)
    steps = 0
    while True:
        e = (increments if held is None else held(state, increments)).reshape(b, beams, k)
        if beam.end is not None:  # a sequence that is over goes on with `end` for nothing
            symbols = torch.arange(k, device=e.device)
            stay = torch.where(symbols == beam.end, 0.0, math.inf).to(e.dtype)
            e = torch.where(over[..., None], stay, e)
        grown = total[..., None] + e  # (B, w, K)
        longer = (length + (~over).to(e.dtype))[..., None].expand(grown.shape)
        score = grown / longer**beam.length_penalty if beam.length_penalty else grown
        if beam.width == 1:
            keep, order = 1, score.reshape(b, -1).argmin(1, keepdim=True)
        elif steps == 0 or beam.rerank:
            keep = min(beam.width, beams * k)
            order = _lowest(score.reshape(b, -1), keep)
        else:  # every beam goes on with its own best symbol
            keep = beams
            own = score.argmin(2)  # (B, w)
            order = torch.arange(beams, device=own.device) * k + own
        parent, symbol = order // k, order % k  # (B, keep)
        total = grown.reshape(b, -1).gather(1, order)
        length = longer.reshape(b, -1).gather(1, order)
        chosen = e.reshape(b, -1).gather(1, order)
        each = torch.cat((each.take_along_dim(parent[..., None], 1), chosen[..., None]), 2)
        over = over.gather(1, parent)
        if beam.end is not None:
            over = over | (symbol == beam.end)
        if beam.width > 1:  # picking copies what is remembered
            rows = torch.arange(b, device=parent.device)[:, None] * beams + parent
            state = state.pick(rows.reshape(-1))
        state = state.append(symbol.reshape(-1))
        beams, steps = keep, steps + 1
        if state.done:
            break
        if beam.end is not None and bool(over.all()):
            state = state.filled(beam.end)
            break
        increments, state = step(state, **_repeated(given, beams))
    score = total / length**beam.length_penalty
    best = torch.sort(score, dim=1, stable=True).indices
    value = state.value.reshape(b, beams, -1)
    return Found(
        value.take_along_dim(best[..., None], 1), total.gather(1, best), length.gather(1, best),
        each.take_along_dim(best[..., None], 1), steps,
    )  # fmt: skip


def spread(increments: Tensor, state: StepState, rows: int) -> tuple[Tensor, StepState]:
    """The one beginning of a start without given values, for so many rows."""
    nothing = torch.zeros(rows, dtype=torch.int64, device=increments.device)
    return increments.expand(rows, -1), state.pick(nothing)


def _lowest(score: Tensor, n: int) -> Tensor:
    """Places of the n lowest scores of each row, lowest first, ties by their place."""
    found = torch.topk(score, n, dim=1, largest=False, sorted=False)
    if bool(((score <= found.values.amax(1, keepdim=True)).sum(1) > n).any()):
        return torch.sort(score, dim=1, stable=True).indices[:, :n]
    place = found.indices.sort(1).values
    return place.gather(1, torch.sort(score.gather(1, place), dim=1, stable=True).indices)


def _repeated(given: Mapping[str, Any], beams: int) -> dict[str, Any]:
    if beams == 1:
        return dict(given)
    return repeated(given, beams)


def repeated(given: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Every row of what is given n times, one after the other."""
    return {
        name: v.repeat_interleave(n, 0)
        if isinstance(v, Tensor)
        else take(v, torch.arange(count(v), device=v.device).repeat_interleave(n))
        for name, v in given.items()
    }
