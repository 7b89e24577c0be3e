"""What models of graphs of columns share: answers that are exact, also where cells are missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.graphical.by_class import ByClassEnergy
from groundstate.errors import DataError
from groundstate.learn.base import Rule
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.em.by_class import ByClass
from groundstate.math.distributions.operations import draw, mode
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.generative.base import GenerativeEstimator


class GraphOfColumns(GenerativeEstimator):
    """A distribution of the columns of a table in which any part given the rest is exact.

    NaN is a missing value everywhere: ``fit`` learns from what is known (EM), ``score_samples`` is the
    log probability of what is known, and ``impute`` gives what is not. With classes y each class has
    parameters of its own on the same graph.
    """

    _allow_nan: ClassVar[bool] = True

    # --- what a model fills in -----------------------------------------------------------

    def _part(self, x: Tensor, weight: Tensor | None) -> Energy:
        """A new energy for coded rows, before learning."""
        raise TypeError(f"{type(self).__name__} must define _part(x, weight)")

    def _solver(self, x: Tensor) -> Any:
        raise TypeError(f"{type(self).__name__} must define _solver(x)")

    def _rule(self) -> Rule:
        return NLL(over="x")

    def _start(self, energy: Any, x: Tensor, weight: Tensor | None, key: Any) -> None:
        """Set where learning begins, from coded rows (of one class)."""

    def _level(self, x: Tensor) -> Tensor:
        """Coded rows as the energy knows them."""
        return x

    def _log_volume(self, x: Tensor) -> Tensor:
        """What a log density loses to the units of the rows, ``(B,)``."""
        return x.new_zeros(len(x))

    def _fall(self, x: Tensor) -> Tensor:
        """Energy of the places of coded rows given what the energy knows of them, ``(B,)``."""
        return x.new_zeros(len(x))

    def _placed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Values of the energy as coded rows."""
        return x

    # --- learning ------------------------------------------------------------------------

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if weight is not None and not bool((weight > 0).any()):
            raise DataError("every row has weight 0, so there is nothing to learn from")
        self._learn_coding(X, weight)
        coded = self.coding_.encode(X)
        x = self._level(coded)
        if y is None:
            energy = self._placed_part(x, weight, X)
            self._start(energy, x, weight, 0)
            return Plan(energy=energy, rule=self._rule(), solver=self._solver(x), data={"x": x})
        if self.condition_ is None or self.condition_.classes is None:
            raise DataError(
                f"{type(self).__name__} is conditioned on classes; y holds real numbers, which could "
                "be columns of X instead"
            )
        parts = [self._placed_part(x, weight, X) for _ in self.condition_.classes]
        both = ByClassEnergy(parts)
        for k, (part, rows) in enumerate(both.groups(y)):
            self._start(part, x[rows], None if weight is None else weight[rows], k)
        solver = ByClass(self._solver(x))
        return Plan(energy=both, rule=self._rule(), solver=solver, data={"x": x, "y": y})

    def _placed_part(self, x: Tensor, weight: Tensor | None, X: Tensor) -> Energy:
        dtype = X.dtype if X.is_floating_point() else torch.get_default_dtype()
        return self._part(x, weight).to(X.device, dtype)

    # --- answers -------------------------------------------------------------------------

    def _raw(self, X: Any, allow_nan: bool = True) -> tuple[Tensor, Home]:
        return super()._raw(X, True)

    def _parts(self, x: Tensor, y: Tensor | None) -> Iterator[tuple[Any, Tensor]]:
        """The energy of each class, and the numbers of its rows."""
        energy = self.energy_
        if isinstance(energy, ByClassEnergy):
            assert y is not None
            yield from energy.groups(y)
        else:
            yield energy, torch.arange(len(x), device=x.device)

    @property
    def _alone(self) -> Any:
        """The energy of a model without classes."""
        if "energy_" not in vars(self):
            check_is_fitted(self, "energy_")
        if isinstance(self.energy_, ByClassEnergy):
            raise ValueError(
                f"this {type(self).__name__} was fitted with classes y, each with tables of its own; "
                "fit it without y, or with y as a column of X"
            )
        return self.energy_

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        level = self._level(x)
        out = x.new_zeros(len(x))
        for part, rows in self._parts(x, y):
            out = out.index_put((rows,), self._log_known(part, level[rows]))
        return out - self._log_volume(x) - self._fall(x)

    def _log_known(self, part: Any, x: Tensor) -> Tensor:
        """Log probability of what is known of each row, ``(B,)``."""
        free = torch.isnan(x)
        if not bool(free.any()):
            found: Tensor = -part(x=x)
            return found
        known = torch.where(free, 0.0, x)
        conditional = part.conditional(known, free)
        filled = torch.where(free, mode(conditional).detach(), known)
        log_p: Tensor = -part(x=filled) - conditional.log_prob(filled)
        return log_p

    def _log_known_by_y(
        self, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
    ) -> Tensor:
        known = torch.where(unknown, math.nan, x)
        each = [self._log_prob(known, c.expand(len(x), -1)) for c in contexts]
        return torch.stack(each, 1).detach()

    def _energies(self, x: Tensor, y: Tensor | None, z: Tensor | None) -> Tensor:
        if bool(torch.isnan(x).any()) or (y is None and self.condition_ is not None):
            return -self._density(x, y)
        level = self._level(x)
        out = self._fall(x)
        for part, rows in self._parts(x, y):
            out = out.index_put((rows,), part(x=level[rows]) + out[rows])
        return out

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        device, dtype = self.energy_.placement()
        x = torch.zeros(n, self.coding_.size, device=device, dtype=dtype)
        for part, rows in self._parts(x, y):
            x[rows] = self._drawn_part(part, len(rows), T, generator).to(x)
        return self._placed(x, generator), None

    def _drawn_part(self, part: Any, n: int, T: float, generator: torch.Generator) -> Tensor:
        found: Tensor = part.ancestral(n, T=T, generator=generator)["x"]
        return found

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        level, out = self._level(x), x.clone()
        with torch.no_grad():
            for part, rows in self._parts(x, y):
                conditional = part.conditional(level[rows], unknown[rows])
                if how == "minimise":
                    found = mode(conditional)
                else:
                    found = draw(conditional, 1, generator)[0]
                out[rows] = found.to(out)
        source = None if how == "minimise" else generator
        return torch.where(unknown, self._placed(out, source), x)

    def _fill_mean(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor | None:
        level, out = self._level(x), x.clone()
        with torch.no_grad():
            for part, rows in self._parts(x, y):
                conditional = part.conditional(level[rows], unknown[rows])
                out[rows] = self._mean_of(conditional).to(out)
        return torch.where(unknown, out, x)

    def _mean_of(self, conditional: Any) -> Tensor:
        found: Tensor = conditional.mean
        return found

    # --- names ---------------------------------------------------------------------------

    @property
    def _column_names(self) -> list[Any]:
        names = getattr(self, "feature_names_in_", None)
        return list(range(self.n_features_in_)) if names is None else names.tolist()

    def _number(self, name: Any) -> int:
        """The number of a column that is called by its name or number."""
        names = self._column_names
        if name in names:
            return names.index(name)
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(names):
            return name
        raise ValueError(f"there is no column {name!r}; the columns are {_listed(names)}")

    def _numbers(self, names: Any) -> list[int]:
        if isinstance(names, str) or not isinstance(names, Sequence | set | frozenset):
            names = [names]
        return [self._number(name) for name in names]


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
