r"""Proposals: laws with ``sample`` and ``log_prob`` for the free variables of a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import ShapeError, Unsupported
from groundstate.infer.base import Query
from groundstate.math.distributions.operations import draw

Laws: TypeAlias = "Distribution | Mapping[str, Distribution]"
ProposalLike: TypeAlias = "Laws | Callable[[Mapping[str, Tensor]], Laws]"


class Proposal:
    """One law per free variable, fitted to the rows of a question.

    A law may have one value per row, ``(B, *event)``, or a single value ``(*event)`` that all
    rows share. A callable is given the known values and returns the laws.
    """

    def __init__(self, proposal: ProposalLike, query: Query) -> None:
        self.query = query
        laws = proposal
        if not isinstance(laws, (Distribution, Mapping)):
            laws = laws(query.fixed)
        if isinstance(laws, Distribution):
            if len(query.free) != 1:
                raise Unsupported(
                    f"a single law cannot propose {', '.join(query.free)}; pass a mapping from "
                    "each name to its law"
                )
            laws = {query.free[0]: laws}
        missing = [name for name in query.free if name not in laws]
        if missing:
            raise Unsupported(f"the proposal has no law for {', '.join(map(repr, missing))}")
        self.laws = {name: laws[name] for name in query.free}
        self.shared = {name: self._is_shared(name, law) for name, law in self.laws.items()}

    def _is_shared(self, name: str, law: Distribution) -> bool:
        event = tuple(self.query.space(name).shape)
        full = (*law.batch_shape, *law.event_shape)
        if full in ((self.query.rows, *event), (1, *event)):
            return False
        if full == event:
            return True
        raise ShapeError(
            f"the law of {name!r} has shape {full}; expected {event} for all rows together or "
            f"{(self.query.rows, *event)} with one law per row"
        )

    def draw(self, n: int, generator: torch.Generator | None) -> dict[str, Tensor]:
        """Independent draws ``(n, B, *event)``, detached."""
        b, values = self.query.rows, {}
        for name, law in self.laws.items():
            event = self.query.space(name).shape
            v = draw(law, n * b if self.shared[name] else n, generator)
            values[name] = v.reshape(n, -1, *event).expand(n, b, *event)
            if not self.shared[name] and b > 1 and v.shape[1] == 1:
                values[name] = draw(law, n * b, generator).reshape(n, b, *event)
        return values

    def log_prob(self, values: Mapping[str, Tensor]) -> Tensor:
        """``log q`` of draws ``(n, B, *event)``, ``(n, B)``."""
        total: Tensor | None = None
        for name, law in self.laws.items():
            v = values[name]
            n, b = v.shape[:2]
            lp = law.log_prob(v)
            lp = lp.reshape(n, b, -1).sum(-1)
            total = lp if total is None else total + lp
        assert total is not None
        return total
