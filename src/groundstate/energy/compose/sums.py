r"""Sums of energies: :math:`e = \sum_i e_i`, the product of experts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal

from groundstate.energy.abilities import ABILITIES
from groundstate.energy.base import Energy, batch_size
from groundstate.energy.spaces import Space
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import draw, fresh, gaussian_moments

Key = tuple[str, frozenset[str]]


class Sum(Energy):
    r"""The sum of energies, :math:`e = \sum_i e_i`: every part must agree (product of experts).

    Parts share variables by name. A variable that only one part contains keeps that part's
    abilities; tables and chains add; a variable in which all parts are quadratic has the Gaussian
    conditional with precision :math:`\sum_i P_i` and mean :math:`(\sum P_i)^{-1}\sum P_i m_i`.

    Parameters
    ----------
    parts : energies; the spaces of a shared variable must be equal

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> from groundstate.energy import DensityEnergy
    >>> one = torch.ones(1)
    >>> e = DensityEnergy(Normal(0 * one, one)) + DensityEnergy(Normal(one, one))
    >>> distribution = e.ability("conditional", "x")()
    >>> round(float(distribution.mean), 6), round(float(distribution.variance), 6)
    (0.5, 0.5)
    """

    def __init__(self, *parts: Energy) -> None:
        flat: list[Energy] = []
        for part in parts:
            flat += part.terms if isinstance(part, Sum) else [part]
        spaces: dict[str, Space] = {}
        for part in flat:
            for name, space in part.spaces.items():
                if spaces.setdefault(name, space) != space:
                    raise Unsupported(
                        f"the parts of a sum disagree about {name!r}: {spaces[name]!r} and "
                        f"{space!r}; give one of them another variable name"
                    )
        super().__init__(**spaces)
        self.parts = nn.ModuleList(flat)
        self.context = tuple(dict.fromkeys(c for part in flat for c in part.context))
        self.normalised = frozenset(n for part in _peeled(flat) for n in part.normalised)
        self.rows = next((part.rows for part in flat if part.rows is not None), None)
        self.gaussian = frozenset(n for n in spaces if self._all_gaussian(n))

    @property
    def terms(self) -> list[Energy]:
        return list(self.parts)  # type: ignore[arg-type]

    def config(self) -> dict[str, Any]:
        return {"*": self.terms}

    def forward(self, **values: Tensor) -> Tensor:
        total = [part(**_own(part, values)) for part in self.terms]
        return total[0] if len(total) == 1 else torch.stack(total).sum(0)

    def _holders(self, names: frozenset[str]) -> list[Energy]:
        return [part for part in self.terms if names & set(part.spaces)]

    def _all_gaussian(self, name: str) -> bool:
        return all(
            name in part.gaussian and part.ability("conditional", name) is not None
            for part in self._holders(frozenset({name}))
        )

    def _rest(self, holders: list[Energy], given: dict[str, Tensor]) -> Tensor | float:
        """The energy of the parts that do not contain the variable, ``(B,)``."""
        rest = [p(**_own(p, given)) for p in self.terms if not any(p is h for h in holders)]
        return torch.stack(rest).sum(0) if rest else 0.0

    @property
    def ancestral(self) -> Callable[..., dict[str, Tensor]] | None:
        """Exact draws, causes before what they make; None unless every part is a known distribution."""
        order = _peeled(self.terms)[::-1]
        if not order or self.normalised != set(self.spaces):
            return None
        distributions = [part.ability("conditional", *part.normalised) for part in order]
        if any(
            distribution is None or len(p.normalised) != 1
            for distribution, p in zip(distributions, order)
        ):
            return None

        def draws(
            n: int, *, T: float = 1.0, generator: torch.Generator | None = None
        ) -> dict[str, Tensor]:
            if T != 1:
                raise Unsupported(f"ancestral draws of a sum are exact at T=1 only, got T={T}")
            generator = fresh(generator)
            values: dict[str, Tensor] = {}
            for part, distribution in zip(order, distributions):
                assert distribution is not None
                (name,) = part.normalised
                own = distribution(**_own(part, values))
                drawn = draw(own, n if tuple(own.batch_shape) == (1,) else 1, generator)
                values[name] = drawn.reshape(n, *self.spaces[name].shape)
            return values

        return draws

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if not variables or not variables <= set(self.spaces):
            return None
        holders = self._holders(variables)
        abilities = [part.ability(kind, *variables) for part in holders]
        if kind == "table" and any(a is not None for a in abilities):
            return self._table(next(iter(variables)), holders)
        if kind == "chain" and all(a is not None for a in abilities):
            return self._chain(holders, abilities)
        if kind == "log_partition" and variables == self.normalised:
            return self._unit
        if len(holders) == 1 and abilities[0] is not None:
            return self._alone(kind, holders[0], abilities[0])
        if kind == "conditional" and len(variables) == 1 and variables <= self.gaussian:
            return self._gaussian_distribution(next(iter(variables)), holders)
        return None

    def _derived_keys(self) -> Iterable[Key]:
        for kind in ABILITIES:
            for r in range(1, len(self.spaces) + 1):
                yield from ((kind, frozenset(c)) for c in combinations(self.spaces, r))

    def _table(self, name: str, holders: list[Energy]) -> Callable[..., Tensor]:
        def table(**given: Tensor) -> Tensor:
            e: Any = 0.0
            for part in holders:  # a part that shares no given variable has one row for all
                e = e + part.table(name, **_own(part, given))
            rest = self._rest(holders, given)
            result: Tensor = e + rest[:, None] if isinstance(rest, Tensor) else e
            return result

        return table

    def _chain(self, holders: list[Energy], abilities: list[Any]) -> Callable[..., Any]:
        def chain(**given: Tensor) -> Any:
            total = None
            for part, ability in zip(holders, abilities):
                factors = ability(**_own(part, given))
                total = factors if total is None else total + factors
            assert total is not None
            rest = self._rest(holders, given)
            if isinstance(rest, Tensor):  # a constant of the row: charge it to the first item
                first = torch.zeros_like(total.unary)
                first[:, 0] = 1.0
                total = total.plus(first * rest[:, None, None])
            return total

        return chain

    def _unit(self, T: float = 1.0, **given: Tensor) -> Tensor:
        if T != 1:
            raise Unsupported(f"the normaliser of this sum is known at T=1 only, got T={T}")
        device, dtype = self.placement(given)
        rows = batch_size(given) if given else self.rows or 1
        return torch.zeros(rows, device=device, dtype=dtype)

    def _alone(self, kind: str, part: Energy, ability: Callable[..., Any]) -> Callable[..., Any]:
        if kind == "log_partition":

            def log_partition(*, T: float = 1.0, **given: Tensor) -> Tensor:
                own: Tensor = ability(**_own(part, given), T=T)
                return own - self._rest([part], given) / T

            return log_partition
        if kind == "step":

            def step(state: Any, **given: Tensor) -> Any:
                increments, after = ability(state, **_own(part, given))
                rest = self._rest([part], given) if state is None else 0.0
                return increments + (rest[:, None] if isinstance(rest, Tensor) else rest), after

            return step
        if kind == "conditional":
            return lambda *, T=1.0, **given: ability(**_own(part, given), T=T)
        return lambda **given: ability(**_own(part, given))

    def _gaussian_distribution(
        self, name: str, holders: list[Energy]
    ) -> Callable[..., Distribution]:
        def conditional(*, T: float = 1.0, **given: Tensor) -> Distribution:
            precision: Any = 0.0
            pull: Any = 0.0
            for part in holders:
                ability = part.ability("conditional", name)
                assert ability is not None
                mean, cov = gaussian_moments(ability(**_own(part, given)))
                P = torch.linalg.inv(cov)
                precision = precision + P
                pull = pull + (P @ mean.unsqueeze(-1)).squeeze(-1)
            mean = torch.linalg.solve(precision, pull)
            return MultivariateNormal(mean, precision_matrix=precision / T, validate_args=False)

        return conditional


def _own(part: Energy, values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n: v for n, v in values.items() if n in part.spaces or n in part.context}


def _peeled(parts: list[Energy]) -> list[Energy]:
    """An order in which every part is normalised given those after it; empty if there is none.

    A part can go when the variables it is normalised over occur in no part that is left.
    """
    left, order = list(parts), []
    while left:
        for part in left:
            others = {n for p in left if p is not part for n in p.spaces}
            if part.normalised and not part.normalised & others:
                order.append(part)
                left = [p for p in left if p is not part]
                break
        else:
            return []
    return order
