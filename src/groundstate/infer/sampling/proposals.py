r"""Proposals: distributions with ``sample`` and ``log_prob`` for the free variables of a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import ShapeError, Unsupported
from groundstate.infer.base import Query
from groundstate.math.distributions.operations import draw

Distributions: TypeAlias = "Distribution | Mapping[str, Distribution]"
ProposalLike: TypeAlias = "Distributions | Callable[[Mapping[str, Tensor]], Distributions]"


class Proposal:
    """One distribution per free variable, fitted to the rows of a question.

    A distribution may have one value per row, ``(B, *event)``, or a single value ``(*event)`` that
    all rows share. A callable is given the known values and returns the distributions.
    """

    def __init__(self, proposal: ProposalLike, query: Query) -> None:
        self.query = query
        distributions = proposal
        if not isinstance(distributions, (Distribution, Mapping)):
            distributions = distributions(query.fixed)
        if isinstance(distributions, Distribution):
            if len(query.free) != 1:
                raise Unsupported(
                    f"a single distribution cannot propose {', '.join(query.free)}; pass a mapping from "
                    "each name to its distribution"
                )
            distributions = {query.free[0]: distributions}
        missing = [name for name in query.free if name not in distributions]
        if missing:
            raise Unsupported(
                f"the proposal has no distribution for {', '.join(map(repr, missing))}"
            )
        self.distributions = {name: distributions[name] for name in query.free}
        self.shared = {
            name: self._is_shared(name, distribution)
            for name, distribution in self.distributions.items()
        }

    def _is_shared(self, name: str, distribution: Distribution) -> bool:
        event = tuple(self.query.space(name).shape)
        full = (*distribution.batch_shape, *distribution.event_shape)
        if full in ((self.query.rows, *event), (1, *event)):
            return False
        if full == event:
            return True
        raise ShapeError(
            f"the distribution of {name!r} has shape {full}; expected {event} for all rows together or "
            f"{(self.query.rows, *event)} with one distribution per row"
        )

    def draw(self, n: int, generator: torch.Generator | None) -> dict[str, Tensor]:
        """Independent draws ``(n, B, *event)``, detached."""
        b, values = self.query.rows, {}
        for name, distribution in self.distributions.items():
            event = self.query.space(name).shape
            v = draw(distribution, n * b if self.shared[name] else n, generator)
            values[name] = v.reshape(n, -1, *event).expand(n, b, *event)
            if not self.shared[name] and b > 1 and v.shape[1] == 1:
                values[name] = draw(distribution, n * b, generator).reshape(n, b, *event)
        kinds = {name: self.query.space(name).dtype(self.query.dtype) for name in values}
        return {name: v.to(kinds[name]) for name, v in values.items()}

    def log_prob(self, values: Mapping[str, Tensor]) -> Tensor:
        """``log q`` of draws ``(n, B, *event)``, ``(n, B)``."""
        total: Tensor | None = None
        for name, distribution in self.distributions.items():
            v = values[name]
            n, b = v.shape[:2]
            lp = distribution.log_prob(v)
            lp = lp.reshape(n, b, -1).sum(-1)
            total = lp if total is None else total + lp
        assert total is not None
        return total
