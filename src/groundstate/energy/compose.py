r"""Energies from one energy: scaled, with values fixed, with variables summed or minimised out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.base import Energy
from groundstate.energy.exact import FALLBACK, exact_free_energy, exact_minimum, minimum_way
from groundstate.energy.mixture import Mixture, mixture
from groundstate.energy.parts import Key, Sum
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.laws import MixtureLaw


class Scaled(Energy):
    r"""A multiple of an energy, :math:`c\,e`: the law at temperature T is that of e at T/c.

    Parameters
    ----------
    energy : the energy e
    c : a finite number other than 0; a negative one turns preferences round and keeps only tables

    Examples
    --------
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


class Marginal(Energy):
    r"""Variables summed out, :math:`F(x) = -T\log\int e^{-e(x,z)/T}\,dz`, as an energy of the rest.

    Exact where the abilities allow it: by a declared normaliser or conditional, along a chain, by
    listing a finite variable, or by removing one variable after the other. Otherwise ``method``
    names the estimator of the room ``groundstate.infer``.

    Parameters
    ----------
    energy : the energy e
    variables : what to sum out
    T : temperature
    method : None for exact, or an inference method

    Examples
    --------
    >>> from groundstate.energy import CentroidEnergy
    >>> e = CentroidEnergy(3, 2).marginal("z")
    >>> list(e.spaces), e.ability("conditional", "x")().batch_shape
    (['x'], torch.Size([1]))
    """

    mixes = True

    def __init__(
        self, energy: Energy, variables: Iterable[str], T: float = 1.0, method: Any = None
    ) -> None:
        self_names = _checked(energy, variables, "marginal")
        super().__init__(**{n: s for n, s in energy.spaces.items() if n not in self_names})
        self.energy, self.hidden, self.T, self.method = energy, self_names, float(T), method
        self.context, self.rows = energy.context, energy.rows
        if T == 1 and set(self_names) <= energy.normalised:
            self.normalised = energy.normalised - set(self_names)

    def config(self) -> dict[str, Any]:
        return {"energy": self.energy, "variables": list(self.hidden), "T": self.T}

    def forward(self, **values: Tensor) -> Tensor:
        if self.method is None:
            exact = exact_free_energy(self.energy, self.hidden, values, self.T)
            if exact is not None:
                return exact
            raise Unsupported(
                f"the free energy of {type(self.energy).__name__} over {', '.join(self.hidden)} "
                "has no exact form; pass method= an estimator of groundstate.infer (Quadrature, "
                "Importance, Annealed, Variational)"
            )
        answer = _fallback("marginalise")(
            self.energy, self.hidden, values, T=self.T, method=self.method
        )
        value: Tensor = answer.value
        return value

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if not variables or not variables <= set(self.spaces) or self.method is not None:
            return None
        if kind == "log_partition":
            inner = self.energy.ability(kind, *variables, *self.hidden)
            return None if inner is None else self._union(inner)
        if kind == "conditional" and len(variables) == 1 and len(self.hidden) == 1:
            space = self.energy.spaces[self.hidden[0]]
            inner = self.energy.ability(kind, *variables)
            if inner is not None and space.size <= 4096:
                return self._mixture(next(iter(variables)), inner)
        return None

    def _derived_keys(self) -> Iterable[Key]:
        for kind in ("conditional", "log_partition"):
            for r in range(1, len(self.spaces) + 1):
                yield from ((kind, frozenset(c)) for c in combinations(self.spaces, r))

    def _same(self, T: float) -> None:
        if self.T != T:
            raise Unsupported(
                f"a marginal at T={self.T} is a law at T={self.T}, not at T={T}; build "
                f"marginal(..., T={T})"
            )

    def _union(self, ability: Callable[..., Any]) -> Callable[..., Tensor]:
        def log_partition(*, T: float = 1.0, **given: Tensor) -> Tensor:
            self._same(T)
            result: Tensor = ability(**given, T=T)
            return result

        return log_partition

    def _mixture(self, name: str, ability: Callable[..., Any]) -> Callable[..., Distribution]:
        def conditional(*, T: float = 1.0, **given: Tensor) -> Distribution:
            self._same(T)
            (z,) = self.hidden
            device, dtype = self.energy.placement(given)
            values = self.energy.spaces[z].enumerate(device, dtype)  # (K, *event)
            k = len(values)
            rows = next((len(v) for v in given.values()), self.rows or 1)
            repeated = {n: v.repeat_interleave(k, 0) for n, v in given.items()}
            repeated[z] = values.repeat(rows, *(1,) * (values.ndim - 1))  # (B*K, *event)
            F = exact_free_energy(self.energy, (name,), repeated, T)
            assert F is not None
            laws = ability(**repeated, T=T)
            logits = -F.view(rows, k) / T
            if isinstance(laws, Categorical):
                mixed = torch.logsumexp(
                    torch.log_softmax(logits, -1)[..., None] + laws.logits.view(rows, k, -1), 1
                )
                return Categorical(logits=mixed)
            return MixtureLaw(logits, laws)

        return conditional


class Minimal(Energy):
    r"""Variables minimised out, :math:`m(x) = \min_z e(x, z)`, as an energy of the rest.

    The minimiser is held fixed in gradients, :math:`\nabla m = \nabla e(x, z^*)` (envelope).

    Parameters
    ----------
    energy : the energy e
    variables : what to minimise out
    method : None for exact (or whatever ``groundstate.infer.minimise`` picks), or a method

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> LinearEnergy(2, 3).minimal("y")(x=torch.zeros(1, 2)).tolist()
    [0.0]
    """

    def __init__(self, energy: Energy, variables: Iterable[str], method: Any = None) -> None:
        names = _checked(energy, variables, "minimal")
        super().__init__(**{n: s for n, s in energy.spaces.items() if n not in names})
        self.energy, self.hidden, self.method = energy, names, method
        self.context, self.rows = energy.context, energy.rows

    def config(self) -> dict[str, Any]:
        return {"energy": self.energy, "variables": list(self.hidden)}

    def minimiser(self, **values: Tensor) -> dict[str, Tensor]:
        """The hidden values at the minimum, detached."""
        if self.method is None and minimum_way(self.energy, self.hidden) is not None:
            with torch.no_grad():
                best = exact_minimum(self.energy, self.hidden, values)
            assert best is not None
            return best
        answer = _fallback("minimise")(self.energy, self.hidden, values, method=self.method)
        found: dict[str, Tensor] = answer.values
        return found

    def forward(self, **values: Tensor) -> Tensor:
        return self.energy(**values, **self.minimiser(**values))


def _checked(energy: Energy, variables: Iterable[str], what: str) -> tuple[str, ...]:
    names = tuple(variables)
    unknown = [n for n in names if n not in energy.spaces]
    if unknown or not names:
        raise ValueError(
            f"{what} needs variables of {type(energy).__name__} ({', '.join(energy.spaces)}), "
            f"got {names}"
        )
    return energy.ordered(names)


def _fallback(operation: str) -> Callable[..., Any]:
    if operation not in FALLBACK:
        raise Unsupported(
            f"this needs an approximate method to {operation}; import groundstate.infer first"
        )
    return FALLBACK[operation]


__all__ = ["Given", "Marginal", "Minimal", "Mixture", "Scaled", "Sum", "mixture"]
