r"""Hidden variables: summed out, :math:`F = -T\log\int e^{-e/T}dz`, or minimised out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.abilities import Offer
from groundstate.energy.base import Energy
from groundstate.energy.compose.sums import Key
from groundstate.energy.exact import Inference, exact_free_energy, exact_minimum
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import MixtureDistribution, somewhere


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
        self,
        energy: Energy,
        variables: Iterable[str],
        T: float = 1.0,
        method: Inference | None = None,
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
        answer = self.method.answer("marginalise", self.energy, self.hidden, values, T=self.T)
        value: Tensor = answer.value
        return value

    @property
    def ancestral(self) -> Callable[..., dict[str, Tensor]] | None:
        """Exact draws of the rest: draw the joint and drop what is hidden; None if it cannot."""
        joint = getattr(self.energy, "ancestral", None)
        if joint is None:
            return None

        def draws(
            n: int, *, T: float = 1.0, generator: torch.Generator | None = None
        ) -> dict[str, Tensor]:
            self._same(T)
            values: dict[str, Tensor] = joint(n, T=T, generator=generator)
            return {name: v for name, v in values.items() if name not in self.hidden}

        return draws

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

    def offer(self, kind: str, *variables: str) -> Offer | None:
        found, inner = super().offer(kind, *variables), self.energy.offer(kind, *variables)
        partial = kind == "conditional" and inner is not None and inner.partial
        return replace(found, partial=True) if found is not None and partial else found

    def _derived_keys(self) -> Iterable[Key]:
        for kind in ("conditional", "log_partition"):
            for r in range(1, len(self.spaces) + 1):
                yield from ((kind, frozenset(c)) for c in combinations(self.spaces, r))

    def _same(self, T: float) -> None:
        if self.T != T:
            raise Unsupported(
                f"a marginal at T={self.T} is a distribution at T={self.T}, not at T={T}; build "
                f"marginal(..., T={T})"
            )

    def _union(self, ability: Callable[..., Any]) -> Callable[..., Tensor]:
        def log_partition(*, T: float = 1.0, **given: Tensor) -> Tensor:
            self._same(T)
            result: Tensor = ability(**given, T=T)
            return result

        return log_partition

    def _mixture(self, name: str, ability: Callable[..., Any]) -> Callable[..., Distribution]:
        def conditional(
            *, T: float = 1.0, mask: Tensor | None = None, **given: Tensor
        ) -> Distribution:
            self._same(T)
            (z,) = self.hidden
            device, dtype = self.energy.placement(given)
            values = self.energy.spaces[z].enumerate(device, dtype)  # (K, *event)
            k = len(values)
            rows = next((len(v) for v in given.values()), self.rows or 1)
            repeated = {n: v.repeat_interleave(k, 0) for n, v in given.items()}
            repeated[z] = values.repeat(rows, *(1,) * (values.ndim - 1))  # (B*K, *event)
            if mask is None:
                distributions = ability(**repeated, T=T)
                F = exact_free_energy(self.energy, (name,), repeated, T)
                assert F is not None
            else:  # F over the free coordinates alone, by the identity of exact.py
                distributions = ability(**repeated, mask=mask.repeat_interleave(k, 0), T=T)
                value = somewhere(distributions).detach()
                F = self.energy(**{**repeated, name: value}) + T * distributions.log_prob(value)
            logits = -F.view(rows, k) / T
            if isinstance(distributions, Categorical):
                mixed = torch.logsumexp(
                    torch.log_softmax(logits, -1)[..., None]
                    + distributions.logits.view(rows, k, -1),
                    1,
                )
                return Categorical(logits=mixed)
            return MixtureDistribution(logits, distributions)

        return conditional


class Minimal(Energy):
    r"""Variables minimised out, :math:`m(x) = \min_z e(x, z)`, as an energy of the rest.

    The minimiser is held fixed in gradients, :math:`\nabla m = \nabla e(x, z^*)` (envelope).

    Parameters
    ----------
    energy : the energy e
    variables : what to minimise out
    method : None for exact, or an inference method

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> LinearEnergy(2, 3).minimal("y")(x=torch.zeros(1, 2)).abs().tolist()
    [0.0]
    """

    def __init__(
        self, energy: Energy, variables: Iterable[str], method: Inference | None = None
    ) -> None:
        names = _checked(energy, variables, "minimal")
        super().__init__(**{n: s for n, s in energy.spaces.items() if n not in names})
        self.energy, self.hidden, self.method = energy, names, method
        self.context, self.rows = energy.context, energy.rows

    def config(self) -> dict[str, Any]:
        return {"energy": self.energy, "variables": list(self.hidden)}

    def minimiser(self, **values: Tensor) -> dict[str, Tensor]:
        """The hidden values at the minimum, detached."""
        if self.method is not None:
            answer = self.method.answer("minimise", self.energy, self.hidden, values)
            found: dict[str, Tensor] = answer.values
            return found
        with torch.no_grad():
            best = exact_minimum(self.energy, self.hidden, values)
        if best is None:
            raise Unsupported(
                f"the minimum of {type(self.energy).__name__} over {', '.join(self.hidden)} has no "
                "exact form; pass method= of groundstate.infer (Gradient, Coordinate)"
            )
        return best

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
