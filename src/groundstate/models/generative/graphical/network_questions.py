"""Questions to a Bayesian network of levels: probabilities, best values, independence, draws."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.graphical.bayesian_network import BayesianNetworkEnergy
from groundstate.errors import DataError
from groundstate.math.graphs.dags import ancestors
from groundstate.math.graphs.elimination import NEVER, contract, invert
from groundstate.math.graphs.programs import program_of
from groundstate.models.generative.graphical.arrows import Arrows
from groundstate.models.generative.graphical.tabular import GraphOfColumns

SMALL = 8  # tables that are multiplied one by one


class LevelsOfColumns(GraphOfColumns):
    """Every column is discrete: coded by level numbers, of bins with the place in the bin."""

    coding_: Any  # a Binning

    def _level(self, x: Tensor) -> Tensor:
        found: Tensor = self.coding_.level(x)
        return found

    def _log_volume(self, x: Tensor) -> Tensor:
        found: Tensor = self.coding_.log_width(x)
        return found

    def _fall(self, x: Tensor) -> Tensor:
        found: Tensor = self.coding_.fall(x)
        return found

    def _placed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        found: Tensor = self.coding_.inside(x, generator)
        return found

    def _mean_of(self, conditional: Any) -> Tensor:
        found: Tensor = self.coding_.mean(conditional.marginals())
        return found

    @property
    def states_(self) -> dict[Any, list[Any]]:
        """What the levels of each column are: values, or bins (from, to)."""
        return {n: list(self._states(j)) for j, n in enumerate(self._column_names)}

    def _states(self, j: int) -> list[Any]:
        named: dict[int, Any] = getattr(self, "_levels", {})
        kept = vars(self.coding_).setdefault("_states", {})  # asked for by every question
        if j not in kept:
            kept[j] = self.coding_.states(j, named.get(j))
        states: list[Any] = kept[j]
        return states

    def _state(self, j: int, value: Any) -> int:
        """Level number of a value of a column."""
        states = self._states(j)
        if value in states:
            return states.index(value)
        coding: Any = self.coding_
        if coding.binned[j] and isinstance(value, int | float):
            row = torch.zeros(1, coding.size, dtype=torch.float64)
            row[:] = torch.tensor([float(coding.values(k)[0]) for k in range(coding.size)])
            row[0, j] = float(value)
            return int(coding.level(coding.encode(row))[0, j])
        raise DataError(
            f"{self._column_names[j]!r} has no state {value!r}; its states are "
            f"{', '.join(map(repr, states[:12]))}"
        )

    def _evidence(self, evidence: Mapping[Any, Any] | None) -> dict[int, int]:
        found, at = {}, {name: j for j, name in enumerate(self._column_names)}
        for name, value in (evidence or {}).items():
            j = at[name] if name in at else self._number(name)
            found[j] = self._state(j, value)
        return found


class NetworkQuestions(Arrows, LevelsOfColumns):
    """What a Bayesian network with tables is asked, by names of columns and values."""

    @property
    def tables_(self) -> dict[Any, NDArray[Any]]:
        """Probabilities of each column given its parents, the column itself the last axis."""
        with torch.no_grad():
            tables = self._alone.tables()
        return {n: t.exp().cpu().numpy() for n, t in zip(self._column_names, tables, strict=True)}

    def query(self, variables: Any, evidence: Mapping[Any, Any] | None = None) -> NDArray[Any]:
        """Joint probabilities of some columns given values of others, one axis for each column.

        By variable elimination in min-fill order; columns that cannot matter (no ancestors of what
        is asked or given) are left out first.

        Parameters
        ----------
        variables : a column, or several
        evidence : values by column
        """
        asked = self._numbers(variables)
        table, log_p = self._table(asked, self._evidence(evidence))
        self._possible(log_p, evidence)
        return table

    def _possible(self, log_p: float, evidence: Any) -> None:
        if log_p < NEVER / 10:
            raise DataError(f"the evidence {dict(evidence)!r} has probability 0 under this network")

    def _table(self, asked: list[int], known: dict[int, int]) -> tuple[NDArray[Any], float]:
        """Probabilities ``(*levels)`` of columns given level numbers, and log p of these."""
        energy: BayesianNetworkEnergy = self._alone
        both = [i for i in asked if i in known]
        if both or len(set(asked)) < len(asked):
            names = [self._column_names[i] for i in (both or asked)]
            raise ValueError(f"columns are asked once and not given as well; see {names}")
        scopes, sizes = energy.scopes, tuple(energy.levels)
        if len(scopes) <= SMALL:
            value, log_scale = self._by_hand(asked, known)
        else:
            program = program_of(scopes, sizes, tuple(asked), tuple(known))
            levels = np.array([list(known.values())], np.int64).reshape(1, len(known))
            values, scales = program(energy.on_host(), levels)
            value, log_scale = values[0], float(scales[0])
        total = float(value.sum())
        if total == 0:
            return value, NEVER
        return value / total, float(np.log(total)) + log_scale

    def _by_hand(self, asked: list[int], known: dict[int, int]) -> tuple[NDArray[Any], float]:
        """Few tables: not worth the loading of what is compiled."""
        energy: BayesianNetworkEnergy = self._alone
        flat, tables, scopes = energy.on_host(), [], []
        for i in sorted(ancestors(energy.parents, [*asked, *known])):
            scope = energy.scopes[i]
            table = flat[energy.starts[i] : energy.starts[i + 1]].reshape(energy.shapes[i])
            tables.append(table[tuple(known.get(v, slice(None)) for v in scope)])
            scopes.append(tuple(v for v in scope if v not in known))
        return contract(scopes, tables, tuple(energy.levels), tuple(asked))

    def log_evidence(self, evidence: Mapping[Any, Any]) -> float:
        """Log probability that these columns have these values."""
        log_p = self._table([], self._evidence(evidence))[1]
        return log_p if log_p > NEVER / 10 else -np.inf

    def map_query(
        self, variables: Any = None, evidence: Mapping[Any, Any] | None = None
    ) -> dict[Any, Any]:
        """The most probable values of columns given others; None asks for all that are not given.

        Of some columns the others are summed out (marginal MAP); of all it is the most probable
        explanation, found with maxima in place of sums.
        """
        known = self._evidence(evidence)
        states = list(self.states_.values())
        if variables is not None:
            asked = self._numbers(variables)
            table, log_p = self._table(asked, known)
            self._possible(log_p, evidence)
            at = np.unravel_index(int(table.argmax()), tuple(table.shape))
            return {
                self._column_names[i]: states[i][int(k)] for i, k in zip(asked, at, strict=True)
            }
        energy: BayesianNetworkEnergy = self._alone
        x = torch.zeros(1, len(states), dtype=energy.logits.dtype, device=energy.logits.device)
        for i, k in known.items():
            x[0, i] = k
        mask = torch.tensor([[i not in known for i in range(len(states))]], device=x.device)
        with torch.no_grad():
            best = energy.distribution(x, mask).mode
            self._possible(-float(energy(x=best)[0]), evidence)
        return {
            self._column_names[i]: states[i][int(best[0, i])]
            for i in range(len(states))
            if i not in known
        }

    def likelihood_weighting(
        self, n_samples: int, evidence: Mapping[Any, Any], random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Rows of level numbers drawn down the arrows with the evidence held, and their weights.

        A weight is the probability of the evidence given what was drawn above it; weighted means over
        the rows estimate conditional means without bias in the limit. ``sample(evidence=...)`` draws
        exactly instead.
        """
        energy: BayesianNetworkEnergy = self._alone
        known = self._evidence(evidence)
        key = Key.of(random_state)
        u = torch.from_numpy(key.numpy().random((n_samples, len(energy.levels)))).to(energy.logits)
        x = torch.zeros(n_samples, len(energy.levels), dtype=torch.int64, device=u.device)
        log_w = u.new_zeros(n_samples)
        with torch.no_grad():
            tables = energy.tables()
            for i in energy.order:
                row = tables[i][tuple(x[:, p] for p in energy.parents[i])].expand(n_samples, -1)
                if i in known:
                    x[:, i] = known[i]
                    log_w = log_w + row[:, known[i]]
                else:
                    x[:, i] = invert(row, u[:, i])
        return x.cpu().numpy(), log_w.clamp_min(NEVER).exp().double().cpu().numpy()

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        *,
        evidence: Mapping[Any, Any] | None = None,
        T: float = 1.0,
        return_latent: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Draw rows, ``(n_samples, n_features)``; T divides the logits of every table.

        Parameters
        ----------
        n_samples : int
        y : class to draw rows of, where the model was fitted with classes
        evidence : values by column that the rows are to have; the others are drawn given them, exactly
        T : temperature; below 1 nearer to the most probable values
        return_latent : nothing is hidden in a Bayesian network; must be False
        random_state : the seed
        """
        if not evidence:
            return super().sample(
                n_samples, y, T=T, return_latent=return_latent, random_state=random_state
            )
        if T != 1:
            raise ValueError("draws given evidence are exact at T=1")
        known = self._evidence(evidence)
        self._possible(self._table([], known)[1], evidence)
        twin = copy.copy(self)
        twin._given_levels = known
        return GraphOfColumns.sample(twin, n_samples, y, random_state=random_state)

    _given_levels: Mapping[int, int] | None = None

    def _drawn_part(self, part: Any, n: int, T: float, generator: torch.Generator) -> Tensor:
        if not self._given_levels:
            return super()._drawn_part(part, n, T, generator)
        x = part.logits.new_zeros(1, len(part.levels))
        for i, k in self._given_levels.items():
            x[0, i] = k
        mask = torch.tensor([[i not in self._given_levels for i in range(x.shape[1])]])
        found: Tensor = part.distribution(x, mask.to(x.device)).draw(n, generator)[:, 0]
        return found
