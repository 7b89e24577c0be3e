"""Markov random fields of discrete columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.graphical.factor_graph import FactorGraphEnergy, Interaction
from groundstate.errors import DataError, Unsupported
from groundstate.infer import minimise
from groundstate.infer import sample as ask_draws
from groundstate.infer.sampling.gibbs import Gibbs
from groundstate.learn import LBFGS, NLL, PersistentCD, PseudoLikelihood, Stochastic
from groundstate.learn.base import History, Rule
from groundstate.learn.penalties.norms import L2
from groundstate.learn.structure import chow_liu, mutual_information
from groundstate.math.graphs.beliefs import Beliefs, belief_propagation, mean_field
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.generative.filling import log_known_of_draws
from groundstate.models.generative.graphical.binning import Binning
from groundstate.models.generative.graphical.network_questions import LevelsOfColumns
from groundstate.models.generative.shapes import Shapes
from groundstate.models.traits import Traits
from groundstate.registry import models

Way = Literal["auto", "exact", "belief_propagation", "mean_field", "gibbs"]


@models.register(family="graphical", task="generation", role="generator", auto=False)
class MarkovRandomField(LevelsOfColumns):
    r"""Discrete columns that interact in pairs or small groups, without direction.

    .. math:: e(x) = \sum_f\theta_f(x_f), \qquad p(x) = e^{-e(x)}/Z

    Ising: :math:`-\sum_ih_is_i - \sum_{ij}J_{ij}s_is_j` with :math:`s = \pm1`. Potts:
    :math:`-\sum_ih_i(x_i) - \sum_{ij}J_{ij}[x_i = x_j]`. Sums are exact by elimination where the graph
    is thin; belief propagation, mean field and Gibbs sampling answer on any.

    Parameters
    ----------
    edges : list of tuples, "complete" or "chow_liu", default="complete"
        Pairs (or larger groups, with ``interaction="table"``) of columns that interact, by name or
        number; every pair; or the best tree.
    interaction : {"table", "ising", "potts"}, default="table"
        Any energy for each joint value, or one number J for each pair.
    fields : bool, default=True
        Whether each column has an energy of its own too.
    learning : {"pseudo_likelihood", "likelihood", "pcd"}, default="pseudo_likelihood"
        Every column given the others; the likelihood itself (thin graphs); or its gradient by chains
        that never stop.
    alpha : float, default=0.01
        Strength of the squared penalty :math:`\tfrac\alpha2\|\theta\|^2` of the summed loss.
    n_bins : int, default=8
        Bins of a column that is neither a category nor few whole numbers.
    n_sweeps : int, default=200
        Gibbs sweeps behind a draw where exact draws are too expensive.
    learning_rate, n_chains, batch_size : float, int, int
        Of "pcd".
    max_iter : int, default=500
        Steps of L-BFGS, or passes of "pcd", at most.
    tol : float, default=1e-6

    Attributes
    ----------
    factors_ : list of tuples of column names
    tables_ : dict of arrays
        Energies of each factor, one axis for each of its columns.
    states_ : dict
        What the levels of each column are.

    Examples
    --------
    >>> from groundstate import MarkovRandomField
    >>> chain = MarkovRandomField.from_energies([(0, 1), (1, 2)], [0.5, 0.5], [2, 2, 2])
    >>> round(chain.log_partition(), 6)
    2.319671
    """

    traits = Traits(space={"alpha": settings.Real(1e-3, 10.0, log=True)})
    category_code: ClassVar[str] = "levels"
    _allow_nan: ClassVar[bool] = False  # it learns from whole rows, and answers for others too
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "edges": [StrOptions({"complete", "chow_liu"}), list, tuple],
        "interaction": [StrOptions({"table", "ising", "potts"})],
        "fields": ["boolean"],
        "learning": [StrOptions({"pseudo_likelihood", "likelihood", "pcd"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
    }
    coding_: Any

    def __init__(
        self,
        edges: Any = "complete",
        *,
        interaction: str = "table",
        fields: bool = True,
        learning: str = "pseudo_likelihood",
        alpha: float = 0.01,
        n_bins: int = 8,
        n_sweeps: int = 200,
        learning_rate: float = 0.1,
        n_chains: int = 100,
        batch_size: int = 128,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        levels = {j: len(v) for j, v in getattr(self, "_levels", {}).items()}
        self.coding_ = Binning.learned(X, levels, self.n_bins, weight)

    def _part(self, x: Tensor, weight: Tensor | None) -> FactorGraphEnergy:
        levels = self.coding_.coded_levels
        groups: list[tuple[int, ...]]
        if self.edges == "complete":
            groups = list(combinations(range(len(levels)), 2))
        elif self.edges == "chow_liu":
            w = None if weight is None else weight.double().cpu().numpy()
            tree = chow_liu(mutual_information(x.long().cpu().numpy(), levels, w))
            groups = [(p, i) for i, above in enumerate(tree) for p in above]
        else:
            groups = [tuple(self._number(v) for v in group) for group in self.edges]
        single = [(i,) for i in range(len(levels))] if self.fields else []
        return FactorGraphEnergy(levels, [*single, *groups], self.interaction)

    def _rule(self) -> Rule:
        if self.learning == "pcd":
            return PersistentCD(self.n_chains, over="x")
        return NLL(over="x") if self.learning == "likelihood" else PseudoLikelihood(over="x")

    def _solver(self, x: Tensor) -> Any:
        if self.learning != "pcd":
            return LBFGS(self.max_iter, self.tol)
        return Stochastic(
            lr=self.learning_rate, batch_size=self.batch_size, max_epochs=self.max_iter, tol=None
        )

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if y is not None and self.learning == "pcd":
            raise DataError("learning='pcd' takes no classes y; use 'pseudo_likelihood'")
        plan = super()._build(X, y, weight)
        if self.learning == "likelihood":
            for part, _ in self._built_parts(plan.energy):
                if not part.exact:
                    raise Unsupported(
                        "learning='likelihood' needs log Z by elimination, and the graph is too dense; "
                        "use 'pseudo_likelihood' or 'pcd'"
                    )
        plan.penalty = L2(self.alpha, intercept=True) if self.alpha else None
        return plan

    @staticmethod
    def _built_parts(energy: Any) -> list[tuple[Any, None]]:
        return [(part, None) for part in getattr(energy, "parts", [energy])]

    @classmethod
    def from_energies(
        cls,
        factors: Any,
        energies: Any,
        levels: Any,
        *,
        interaction: Interaction = "ising",
        **settings: Any,
    ) -> Self:
        """A field whose energies are known, ready to answer.

        Parameters
        ----------
        factors : groups of columns, by number
        energies : for each factor J (pairs of "ising" and "potts"), h (single columns), or a table
            with one axis for each column ("table")
        levels : number of values of each column
        interaction : as in the constructor
        """
        energy = FactorGraphEnergy(levels, factors, interaction).double()
        flat = [np.asarray(e, np.float64).reshape(-1) for e in energies]
        sizes = [len(e) for e in flat]
        if sizes != energy.sizes:
            raise ValueError(
                f"the factors take {energy.sizes} numbers with interaction={interaction!r}, got {sizes}"
            )
        with torch.no_grad():
            energy.theta.copy_(torch.from_numpy(np.concatenate(flat)))
        model = cls(list(map(tuple, factors)), interaction=interaction, **settings)
        d = len(energy.levels)
        model.n_features_in_ = d
        points = [np.arange(float(k)) for k in energy.levels]
        model.coding_ = Binning(
            np.zeros(d, np.int64), np.zeros(d, bool), np.concatenate(points),
            np.cumsum([0, *energy.levels]),
        )  # fmt: skip
        model._levels, model.event_shape_, model.condition_ = {}, (d,), None
        model._shapes = Shapes((d,))
        model.energy_, model.history_, model.n_iter_ = energy, History(solver="given"), 1
        return model

    # --- learned -------------------------------------------------------------------------

    @property
    def factors_(self) -> list[tuple[Any, ...]]:
        """Columns of each factor."""
        names = self._column_names
        return [tuple(names[v] for v in scope) for scope in self._alone.scopes]

    @property
    def tables_(self) -> dict[tuple[Any, ...], NDArray[Any]]:
        """Energies of each factor, one axis for each of its columns."""
        with torch.no_grad():
            tables = self._alone.tables()
        return {f: t.cpu().numpy() for f, t in zip(self.factors_, tables, strict=True)}

    # --- answers -------------------------------------------------------------------------

    @property
    def log_prob_kind(self) -> str:
        exact = all(part.exact for part, _ in self._built_parts(self.energy_))
        return "exact" if exact else "unnormalised"

    def _log_known(self, part: Any, x: Tensor) -> Tensor:
        free = torch.isnan(x)
        if not part.exact:
            if bool(free.any()):
                raise DataError(
                    "the graph is too dense to sum over missing values; fill them in with impute"
                )
            return -part(x=x)
        log_z = part.log_partition()
        if not bool(free.any()):
            return -part(x=x) - log_z
        known = torch.where(free, 0.0, x)
        return part.distribution(known, free).log_partition - log_z

    def _log_known_by_y(
        self, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
    ) -> Tensor:
        energy: Any = self.energy_  # one part for each class
        if all(part.exact for part in energy.parts):
            return super()._log_known_by_y(x, unknown, contexts, generator)
        return log_known_of_draws(self, x, unknown, contexts, generator)

    def log_partition(self, method: Way = "auto") -> float:
        """log Z: exact, Bethe's estimate ("belief_propagation") or a lower bound ("mean_field")."""
        energy = self._alone
        if method == "auto":
            method = "exact" if energy.exact else "belief_propagation"
        with torch.no_grad():
            if method == "exact":
                return float(energy.distribution().log_partition[0])
            return float(self._beliefs(method, {}).log_partition)

    def marginals(
        self,
        evidence: Mapping[Any, Any] | None = None,
        method: Way = "auto",
        *,
        n_draws: int = 2000,
        random_state: Any = None,
    ) -> dict[Any, NDArray[Any]]:
        """Probabilities of the values of each column given values of others.

        Parameters
        ----------
        evidence : values by column
        method : "exact" elimination, "belief_propagation" (exact on trees), "mean_field", "gibbs",
            or "auto": exact where the graph is thin, else belief propagation
        n_draws : draws of "gibbs"
        """
        energy, known = self._alone, self._evidence(evidence)
        if method == "auto":
            method = "exact" if energy.exact else "belief_propagation"
        x = energy.theta.new_zeros(1, len(energy.levels))
        for i, k in known.items():
            x[0, i] = k
        mask = torch.tensor([[i not in known for i in range(x.shape[1])]], device=x.device)
        with torch.no_grad():
            if method == "exact":
                found = [p[0] for p in energy.distribution(x, mask).marginals()]
            elif method == "gibbs":
                generator = Key.of(random_state).torch(x.device)
                free = {"x": mask.expand(n_draws, -1)}
                drawn = ask_draws(
                    energy, free, {"x": x.expand(n_draws, -1)}, 1, method=Gibbs(n_steps=self.n_sweeps),
                    generator=generator,
                )["x"][0].long()  # fmt: skip
                found = [
                    torch.bincount(drawn[:, i], minlength=k).to(x) / n_draws
                    for i, k in enumerate(energy.levels)
                ]
            else:
                found = self._beliefs(method, known).marginals
        return {n: p.cpu().numpy() for n, p in zip(self._column_names, found, strict=True)}

    def _beliefs(self, method: str, known: dict[int, int]) -> Beliefs:
        energy = self._alone
        scopes, tables = list(energy.scopes), energy.tables()
        for i, k in known.items():
            wall = torch.full((energy.levels[i],), torch.inf, dtype=tables[0].dtype)
            wall[k] = 0.0
            scopes.append((i,))
            tables.append(wall.to(tables[0].device))
        if method == "belief_propagation":
            found = belief_propagation(scopes, tables, energy.levels)
            if not found.converged:
                found = belief_propagation(
                    scopes, tables, energy.levels, damping=0.5, max_iter=1000
                )
            return found
        if method == "mean_field":
            return mean_field(scopes, tables, energy.levels)
        raise ValueError(
            "method must be 'auto', 'exact', 'belief_propagation', 'mean_field' or 'gibbs', got "
            f"{method!r}"
        )

    def _drawn_part(self, part: Any, n: int, T: float, generator: torch.Generator) -> Tensor:
        if part.exact:
            return part.distribution(T=T).draw(n, generator)[:, 0]
        start = part.spaces["x"].draw(n, generator=generator, device=part.theta.device)
        given = {"x": start.to(part.theta)}
        free = {"x": torch.ones_like(given["x"], dtype=torch.bool)}
        drawn = ask_draws(
            part, free, given, 1, T=T, method=Gibbs(n_steps=self.n_sweeps), init=given,
            generator=generator,
        )  # fmt: skip
        return drawn["x"][0]

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        if all(part.exact for part, _ in self._built_parts(self.energy_)):
            return super()._fill(x, unknown, y, how, generator)
        level, out = self._level(x), x.clone()
        for part, rows in self._parts(x, y):
            free, given = {"x": unknown[rows]}, {"x": level[rows]}
            if how == "minimise":
                found = minimise(part, free, given, generator=generator)["x"]
            else:
                found = ask_draws(
                    part, free, given, 1, method=Gibbs(n_steps=self.n_sweeps), generator=generator
                )["x"][0]
            out[rows] = found.to(out)
        source = None if how == "minimise" else generator
        return torch.where(unknown, self._placed(out, source), x)

    def _fill_mean(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor | None:
        if not all(part.exact for part, _ in self._built_parts(self.energy_)):
            return None
        return super()._fill_mean(x, unknown, y, generator)
