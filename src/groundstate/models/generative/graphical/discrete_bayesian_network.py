"""Bayesian networks of discrete columns."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.graphical.bayesian_network import BayesianNetworkEnergy
from groundstate.learn.base import History
from groundstate.learn.solvers.closed import Closed
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.math.graphs.elimination import NEVER
from groundstate.models import settings
from groundstate.models.generative.graphical.binning import Binning
from groundstate.models.generative.graphical.edges import SEARCHES, learned_parents, parents_of
from groundstate.models.generative.graphical.network_questions import NetworkQuestions
from groundstate.models.generative.shapes import Shapes
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="graphical", task="generation", role="generator", auto=False)
class DiscreteBayesianNetwork(NetworkQuestions):
    r"""A directed graph of columns, each with a table of its probabilities given its parents.

    .. math:: e(x) = -\log p(x) = -\sum_i\log p(x_i \mid x_{pa(i)})

    Learning counts; with missing values (NaN) it is EM. Every question about some columns given others
    is answered exactly by variable elimination: ``query``, ``map_query``, ``impute``, ``sample``.

    Parameters
    ----------
    edges : list of pairs, "chow_liu", "hill_climbing" or "pc", default="chow_liu"
        Arrows (from, to) between columns, by name or number, or how to learn them: the best tree,
        the best graph that a search with a tabu list finds, or tests of independence.
    equivalent_sample_size : float, default=0
        Rows that a uniform Dirichlet prior (BDeu) of the tables weighs; 0 is maximum likelihood.
    n_bins : int, default=8
        Categories and columns of at most 20 different whole numbers are discrete as they are; other
        columns are cut into bins of equal frequency, uniform inside.
    criterion : {"bic", "bdeu"}, default="bic"
        What "hill_climbing" climbs.
    alpha : float, default=0.05
        Level of the tests of "pc".
    tol : float, default=1e-6
        EM stops when an iteration gains less, in nats per row.

    Attributes
    ----------
    edges_ : list of pairs of column names
    tables_ : dict
        For each column its probabilities, one axis for each parent (in the order of ``parents_``) and
        the last for the column itself.
    parents_ : dict of lists of column names
    states_ : dict
        What the levels of each column are: values, or bins (from, to).

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import DiscreteBayesianNetwork
    >>> net = DiscreteBayesianNetwork.from_tables(
    ...     [("rain", "wet")], {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.1, 0.9]]})
    >>> net.query("rain", {"wet": 1}).round(4)
    array([0.3077, 0.6923])
    """

    traits = Traits(
        space={
            "equivalent_sample_size": settings.Real(0.1, 100.0, log=True),
            "n_bins": settings.Whole(2, 16, log=True),
        }
    )
    category_code: ClassVar[str] = "levels"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "edges": [StrOptions(set(SEARCHES)), list, tuple],
        "equivalent_sample_size": [Interval(Real, 0, None, closed="left")],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "criterion": [StrOptions({"bic", "bdeu"})],
        "max_parents": [Interval(Integral, 0, None, closed="left"), None],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
    }
    coding_: Any

    def __init__(
        self,
        edges: Any = "chow_liu",
        *,
        equivalent_sample_size: float = 0.0,
        n_bins: int = 8,
        criterion: str = "bic",
        max_parents: int | None = None,
        alpha: float = 0.05,
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        levels = {j: len(v) for j, v in getattr(self, "_levels", {}).items()}
        self.coding_ = Binning.learned(X, levels, self.n_bins, weight)

    def _part(self, x: Tensor, weight: Tensor | None) -> BayesianNetworkEnergy:
        levels = self.coding_.coded_levels
        if isinstance(self.edges, str):
            w = None if weight is None else weight.double().cpu().numpy()
            parents = learned_parents(
                self.edges, torch.nan_to_num(x, nan=-1.0).long().cpu().numpy(), levels, w,
                criterion=self.criterion, equivalent_sample_size=self.equivalent_sample_size,
                max_parents=self.max_parents, alpha=self.alpha,
            )  # fmt: skip
        else:
            parents = parents_of(self.edges, self._number, self._column_names)
        return BayesianNetworkEnergy(parents, levels, self.equivalent_sample_size)

    def _solver(self, x: Tensor) -> Any:
        if not bool(torch.isnan(x).any()):
            return Closed(with_objective=False)
        return ExpectedEM(self.tol, self.max_iter)

    def _start(self, energy: Any, x: Tensor, weight: Tensor | None, key: Any) -> None:
        """Counts of the rows without gaps, and a little noise, which columns never seen need."""
        whole = ~torch.isnan(x).any(1)
        if bool(whole.all()):
            return
        w = None if weight is None else weight[whole]
        counts = energy.stats(w, x[whole])["counts"]
        noise = Key.of(self.random_state).fold("start", key).numpy().uniform(0.5, 1.5, len(counts))
        energy.from_stats({"counts": counts + torch.from_numpy(noise).to(counts)})

    def _log_known(self, part: Any, x: Tensor) -> Tensor:
        free = torch.isnan(x)
        if not bool(free.any()):
            found: Tensor = -part(x=x)
            return found
        log_p: Tensor = part.distribution(torch.where(free, 0.0, x), free).log_partition
        return torch.where(log_p > NEVER / 10, log_p, -math.inf)

    # --- networks that are written down --------------------------------------------------

    @classmethod
    def from_tables(
        cls,
        edges: Sequence[tuple[Any, Any]],
        tables: Mapping[Any, Any],
        states: Mapping[Any, Sequence[Any]] | None = None,
        **settings: Any,
    ) -> Self:
        """A network whose tables are known, ready to answer.

        Parameters
        ----------
        edges : arrows (from, to)
        tables : for each column an array with one axis for each of its parents, in the order of the
            edges, and a last axis for the column itself, which sums to 1; see ``noisy_or``
        states : values of the columns, where they are not 0, 1, 2, ...
        settings : parameters of the constructor
        """
        names = list(tables)
        ends = dict.fromkeys(n for edge in edges for n in edge)
        absent = [n for n in ends if n not in tables]
        if absent:
            raise ValueError(
                f"there is no table for {absent[0]!r}; tables are given for {', '.join(map(repr, names))}"
            )
        model = cls(list(edges), **settings)
        model._validate_params()
        model.n_features_in_ = len(names)
        if all(isinstance(n, str) for n in names):
            model.feature_names_in_ = np.array(names, dtype=object)
        elif names != list(range(len(names))):
            raise ValueError(f"columns are named by strings or numbered 0, 1, ..., got {names!r}")
        parents = parents_of(edges, names.index, names)
        arrays = [np.asarray(tables[n], np.float64) for n in names]
        levels = [a.shape[-1] if a.ndim else 0 for a in arrays]
        energy = BayesianNetworkEnergy(parents, [max(k, 1) for k in levels]).double()
        for i, array in enumerate(arrays):
            try:
                energy.set_table(i, array)
            except ValueError as error:
                raise ValueError(f"{names[i]!r}: {error}") from None
        points = [
            np.asarray((states or {}).get(n, range(k))) for n, k in zip(names, levels, strict=True)
        ]
        for name, own, k in zip(names, points, levels, strict=True):
            if len(own) != k:
                raise ValueError(f"{name!r} has {k} probabilities and {len(own)} states")
        model._levels = {i: p for i, p in enumerate(points) if p.dtype.kind not in "fiub"}
        counts = np.array([len(p) if i in model._levels else 0 for i, p in enumerate(points)])
        cuts = [
            np.empty(0) if i in model._levels else p.astype(float) for i, p in enumerate(points)
        ]
        if any((np.diff(c) <= 0).any() for c in cuts):
            raise ValueError("states that are numbers must increase")
        starts = np.cumsum([0, *map(len, cuts)])
        model.coding_ = Binning(counts, np.zeros(len(names), bool), np.concatenate(cuts), starts)
        model.event_shape_, model.condition_ = (len(names),), None
        model._shapes = Shapes((len(names),))
        model.energy_, model.history_, model.n_iter_ = energy, History(solver="given"), 1
        return model

    def do(self, values: Mapping[Any, Any] | None = None, **named: Any) -> Self:
        """The network after an intervention: arrows into these columns are cut, their values set.

        Seeing X = x changes what is believed of its causes; setting it does not.
        """
        given = {self._number(k): v for k, v in {**(values or {}), **named}.items()}
        if not given:
            raise ValueError("do() needs a value for at least one column, such as do(rain=1)")
        old = self._alone
        parents = [[] if i in given else above for i, above in enumerate(old.parents)]
        energy = BayesianNetworkEnergy(parents, old.levels, old.equivalent_sample_size)
        energy = energy.to(old.logits.device, old.logits.dtype)
        for i, table in enumerate(old.tables()):
            if i in given:
                energy.set_table(i, np.eye(old.levels[i])[self._state(i, given[i])])
            else:
                with torch.no_grad():
                    a, b = energy.starts[i], energy.starts[i + 1]
                    energy.logits[a:b] = table.flatten()
        twin = copy.copy(self)
        twin.energy_ = energy
        return twin


def noisy_or(strengths: Sequence[float], leak: float = 0.0) -> NDArray[np.float64]:
    r"""The table of an effect that each of its causes brings about on its own.

    .. math:: p(z = 1 \mid x) = 1 - (1 - \lambda_0)\prod_i(1 - \lambda_i)^{x_i}

    Parameters
    ----------
    strengths : :math:`\lambda_i`, chance that a present cause i is enough
    leak : :math:`\lambda_0`, chance of the effect without any cause

    Returns
    -------
    ``(2, ..., 2)``, one axis for each cause and the last for the effect

    Examples
    --------
    >>> noisy_or([0.9, 0.8])[1, 1].round(4).tolist()
    [0.02, 0.98]
    """
    values = np.asarray(strengths, np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all() or not 0 <= leak <= 1:
        raise ValueError(f"strengths and leak are probabilities, got {strengths!r} and {leak!r}")
    fails = np.array(1.0 - leak)
    for s in values:
        fails = np.stack([fails, fails * (1 - s)], -1)
    return np.stack([fails, 1 - fails], -1)
