"""Energies from energies: sums, multiples, values fixed, variables removed, mixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.compose.hidden import Marginal, Minimal
from groundstate.energy.compose.mixtures import Mixture, mixture
from groundstate.energy.compose.sums import Key, Sum
from groundstate.errors import ShapeError


class Scaled(Energy):
    r"""A multiple of an energy, :math:`c\,e`: the distribution at temperature T is that of e at T/c.

    Parameters
    ----------
    energy : the energy e
    c : a finite number other than 0; a negative one turns preferences round and keeps only tables

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import TableEnergy
    >>> (2 * TableEnergy(torch.tensor([1.0, 3.0]))).table("x").tolist()
    [[2.0, 6.0]]
    """

    def __init__(self, energy: Energy, c: float) -> None:
        if not isfinite(c) or c == 0:
            raise ValueError(
                f"an energy is scaled by a finite number other than 0, got {c}; for T=inf pass T "
                "to the inference call"
            )
        super().__init__(**energy.spaces)
        self.energy, self.c = energy, float(c)
        self.context, self.rows = energy.context, energy.rows
        self.normalised = energy.normalised if c == 1 else frozenset()
        self.gaussian = energy.gaussian if c > 0 else frozenset()

    def config(self) -> dict[str, Any]:
        return {"energy": self.energy, "c": self.c}

    def forward(self, **values: Tensor) -> Tensor:
        return self.c * self.energy(**values)

    @property
    def ancestral(self) -> Callable[..., dict[str, Tensor]] | None:
        """The draws of e at T/c; None if it has none."""
        inner = getattr(self.energy, "ancestral", None)
        if inner is None or self.c < 0:
            return None
        return lambda n, *, T=1.0, generator=None: inner(n, T=T / self.c, generator=generator)

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        inner, c = self.energy.ability(kind, *variables), self.c
        if inner is None:
            return None
        ability: Callable[..., Any] = inner
        if kind in ("table", "chain"):
            return lambda **given: c * ability(**given)
        if kind == "step":

            def step(state: Any, **given: Tensor) -> Any:
                increments, after = ability(state, **given)
                return c * increments, after

            return step
        if c < 0:
            return None
        if kind in ("conditional", "log_partition"):
            return lambda *, T=1.0, **given: ability(**given, T=T / c)
        return ability if kind == "argmin" else None

    def _derived_keys(self) -> Iterable[Key]:
        return ((row.kind, frozenset(row.variables)) for row in self.energy.capabilities())


class Given(Energy):
    r"""An energy with some values fixed from outside, :math:`e(\cdot, x_0)`.

    Parameters
    ----------
    energy : the energy e
    values : by name; one row fits any batch, B rows fit batches of B

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> e = LinearEnergy(2, 3).given(x=torch.ones(1, 2))
    >>> list(e.spaces), e(y=torch.tensor([0, 1, 2])).shape
    (['y'], torch.Size([3]))
    """

    def __init__(self, energy: Energy, values: Mapping[str, Tensor]) -> None:
        known = [*energy.spaces, *energy.context]
        for name in values:
            if name not in known:
                raise ValueError(
                    f"{type(energy).__name__} has no variable {name!r}; it has {', '.join(known)}"
                )
        super().__init__(**{n: s for n, s in energy.spaces.items() if n not in values})
        self.energy, self.names = energy, tuple(values)
        for name, value in values.items():
            self.register_buffer(f"given_{name}", value)
        sizes = {v.shape[0] for v in values.values()} - {1}
        if len(sizes) > 1:
            raise ShapeError(f"given values need the same number of rows, got {sorted(sizes)}")
        self.rows = sizes.pop() if sizes else energy.rows
        self.context = tuple(c for c in energy.context if c not in values)
        self.normalised = energy.normalised if not energy.normalised & set(values) else frozenset()
        self.gaussian = energy.gaussian - set(values)

    def config(self) -> dict[str, Any]:
        return {"energy": self.energy, "values": self.fixed}

    @property
    def fixed(self) -> dict[str, Tensor]:
        return {name: getattr(self, f"given_{name}") for name in self.names}

    def _all(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        rows = next((v.shape[0] for v in values.values()), self.rows or 1)
        fixed = {
            n: v.expand(rows, *v.shape[1:]) if len(v) == 1 else v for n, v in self.fixed.items()
        }
        for name, v in fixed.items():
            if v.shape[0] != rows:
                raise ShapeError(
                    f"{name!r} was given with {v.shape[0]} rows, so a batch needs {v.shape[0]} "
                    f"rows, got {rows}"
                )
        return {**fixed, **values}

    def forward(self, **values: Tensor) -> Tensor:
        return self.energy(**self._all(values))

    def table(self, variable: str, **given: Tensor) -> Tensor:
        return self.energy.table(variable, **self._all(given))

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        inner = self.energy.ability(kind, *variables)
        if inner is None or kind in ("stats", "from_stats") or not variables <= set(self.spaces):
            return None
        ability: Callable[..., Any] = inner
        if kind == "step":
            return lambda state, **given: ability(state, **self._picked(state, given))
        if kind in ("conditional", "log_partition"):
            return lambda *, T=1.0, **given: ability(**self._all(given), T=T)
        return lambda **given: ability(**self._all(given))

    def _picked(self, state: Any, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        rows = self.rows or 1
        if state is not None and not given and rows == 1:
            rows = state.rows
            fixed = {n: v.expand(rows, *v.shape[1:]) for n, v in self.fixed.items()}
            return fixed
        return self._all(given)

    def _derived_keys(self) -> Iterable[Key]:
        for row in self.energy.capabilities():
            yield row.kind, frozenset(row.variables)


__all__ = ["Given", "Marginal", "Minimal", "Mixture", "Scaled", "Sum", "mixture"]
