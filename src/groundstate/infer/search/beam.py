r"""Beam: search over sequences that are built symbol by symbol.

.. math:: e(x_{1:L}) = \sum_t e(x_t \mid x_{<t})
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.base import Method, Minimum, Query, check_energies
from groundstate.registry import methods


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
        b, beams, n = query.rows, 1, 0
        state: Any = None
        total = length = over = torch.empty(0)
        first = True
        while True:
            given = _repeated(query.fixed, beams)
            increments, state = step(state, **given)  # (B*w, K)
            if first:
                if state.rows != b:
                    state = state.pick(torch.zeros(b, dtype=torch.int64, device=query.device))
                    increments = increments.expand(b, -1)
                total = torch.zeros(b, 1, device=query.device, dtype=increments.dtype)
                length = torch.zeros_like(total)
                over = torch.zeros_like(total, dtype=torch.bool)
                first = False
            k = increments.shape[1]
            e = check_energies(increments, query.energy, "step").reshape(b, beams, k)
            e = self._held(query, name, state, e)
            if self.end is not None:  # a sequence that is over goes on with `end` for nothing
                symbols = torch.arange(k, device=e.device)
                stay = torch.where(symbols == self.end, 0.0, math.inf).to(e.dtype)
                e = torch.where(over[..., None], stay, e)
            grown = total[..., None] + e  # (B, w, K)
            longer = (length + (~over).to(e.dtype))[..., None].expand(grown.shape)
            score = grown / longer**self.length_penalty if self.length_penalty else grown
            if n == 0 or self.rerank:
                keep = min(self.width, beams * k)
                order = torch.sort(score.reshape(b, -1), dim=1, stable=True).indices[:, :keep]
            else:  # every beam goes on with its own best symbol
                keep = beams
                own = score.argmin(2)  # (B, w)
                order = torch.arange(beams, device=own.device) * k + own
            parent, symbol = order // k, order % k  # (B, keep)
            total = grown.reshape(b, -1).gather(1, order)
            length = longer.reshape(b, -1).gather(1, order)
            rows = torch.arange(b, device=parent.device)[:, None] * beams + parent
            over = over.gather(1, parent)
            if self.end is not None:
                over = over | (symbol == self.end)
            state = state.pick(rows.reshape(-1)).append(symbol.reshape(-1))
            beams, n = keep, n + 1
            if state.done:
                break
        score = total / length**self.length_penalty
        best = score.argmin(1, keepdim=True)  # (B, 1)
        value = state.value.reshape(b, beams, -1)
        value = value.take_along_dim(best[..., None], 1)[:, 0]
        exhaustive = self.rerank and self.length_penalty == 0 and self.width >= k ** (n - 1)
        e = total.gather(1, best)[:, 0]
        return Minimum({name: value}, e, exhaustive, torch.ones_like(e, dtype=torch.bool), n)

    @staticmethod
    def _held(query: Query, name: str, state: Any, e: Tensor) -> Tensor:
        """Forbid every symbol but the known one where the sequence is known."""
        if name not in query.masks:
            return e
        at = state.order[state.position]
        known = torch.nn.functional.one_hot(query.given[name][:, at].long(), e.shape[-1]).bool()
        forbidden = ~query.masks[name][:, at, None] & ~known  # (B, K)
        return e.masked_fill(forbidden[:, None], math.inf)


def _repeated(given: Mapping[str, Tensor], beams: int) -> dict[str, Tensor]:
    return {name: v.repeat_interleave(beams, 0) for name, v in given.items()}
