"""Outliers by how few random cuts set them apart."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.trees.isolation import IsolationEnergy
from groundstate.energy.trees.leaves import TreeMeanEnergy
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.learn import Naive
from groundstate.learn.solvers.trees.isolation import Isolation
from groundstate.models import settings
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.ensembles.grown import estimator_of
from groundstate.models.outliers.role import OutlierMixin
from groundstate.models.traits import Traits
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.registry import models

USUAL = -0.5  # the offset of contamination="auto"


@models.register(family="outliers", task="outliers", role="outlier detector")
class IsolationForest(OutlierMixin, EnergyEstimator):
    r"""Rows that few random cuts set apart from the others.

    .. math::
        e(x, 0) = 2^{-\bar h(x)/c(\psi)}, \qquad e(x, 1) = -\text{offset}, \qquad
        c(n) = 2H_{n-1} - \frac{2(n-1)}n .

    :math:`\bar h` is the mean over trees of the number of cuts on the way of x to its leaf, plus
    :math:`c(n)` for the n rows that share the leaf. A tree takes a sample of ψ rows and cuts random
    columns at random places between their ends. Free z is detection: an outlier, z = 1, is where
    :math:`e(x, 0)` is above the threshold. A row with a missing value goes to a random side.

    Draws are points on the weight line: a weight of 2 is the row twice, and the order of the rows changes
    nothing.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    max_samples : "auto", int or float, default="auto"
        ψ, the rows of a tree: 256 at most, so many, or a share.
    contamination : "auto" or float, default="auto"
        Share of the learned rows that are outliers; "auto" takes one half as the threshold.
    max_features : int or float, default=1.0
        Columns of a tree, or their share.
    bootstrap : bool, default=False
        Whether a tree draws its rows with replacement.
    n_jobs : int or None, default=None
        Accepted for scikit-learn's sake.
    random_state : int, default=None
    verbose : int, default=0
    warm_start : bool, default=False
        Keep the trees that are there and grow further ones.
    device : str or torch.device, default=None
        Where answers are computed.
    callbacks : sequence, default=None

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees, which predict path lengths.
    estimators_features_ : list of arrays
        Columns of each tree.
    estimators_samples_ : list of arrays
        Rows of each tree; a row of weight above one is listed once for every copy.
    max_samples_ : int
        ψ in use.
    offset_ : float
    energy_ : IsolationEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import IsolationForest
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[:3] += 8.0
    >>> model = IsolationForest(contamination=0.015, random_state=0).fit(X)
    >>> np.flatnonzero(model.predict(X) == -1).tolist()
    [0, 1, 2]
    """

    traits = Traits(
        space={
            "max_samples": settings.Real(0.05, 1.0),
            "max_features": settings.Real(0.3, 1.0),
            "contamination": settings.Real(0.01, 0.2),
        },
        single_columns=True,
        steps="n_estimators",
        counts_all_steps=True,
        summed=True,
    )
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "dense"
    _runs_on: Any = "answers"
    _store_private: ClassVar[tuple[str, ...]] = ("_levels",)
    offset_: float
    contamination: Any
    estimators_samples_: list[Any]
    estimators_features_: list[Any]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_samples: Any = "auto",
        contamination: Any = "auto",
        max_features: Any = 1.0,
        bootstrap: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _sizes(self, X: Tensor, weight: Tensor | None) -> tuple[int, int]:
        """Rows and columns of a tree."""
        n = len(X) if weight is None else max(1, round(float(weight.double().sum())))
        if self.max_samples == "auto":
            rows = min(256, n)
        elif isinstance(self.max_samples, Integral):
            rows = int(self.max_samples)
            if rows > n:
                warnings.warn(
                    f"max_samples ({rows}) is greater than the total number of samples ({n}). "
                    "max_samples will be set to n_samples for estimation.",
                    UserWarning,
                    stacklevel=2,
                )
                rows = n
        else:
            rows = max(1, int(self.max_samples * n))
        d = X.shape[1]
        if isinstance(self.max_features, Integral):
            if int(self.max_features) > d:
                raise ValueError(f"max_features={self.max_features} is above the {d} features of X")
            return rows, int(self.max_features)
        return rows, max(1, int(self.max_features * d))

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self.max_samples_, columns = self._sizes(X, weight)
        before: tuple[Any, ...] = ()
        if self.warm_start and "energy_" in vars(self):
            energy: Any = self.energy_
            nodes: TreeNodes = energy.nodes
            before = tuple(nodes.tree(t) for t in range(nodes.n_trees))
            if self.n_estimators < len(before):
                raise ValueError(
                    f"n_estimators={self.n_estimators} must be larger or equal to "
                    f"len(estimators_)={len(before)} when warm_start==True"
                )
            if self.n_estimators == len(before):
                warnings.warn(
                    "Warm-start fitting without increasing n_estimators does not fit new trees.",
                    UserWarning,
                    stacklevel=2,
                )
        solver = Isolation(self.n_estimators, self.max_samples_, columns, self.bootstrap, before)
        solver = self._noted(X, weight, solver)
        return Plan(energy=IsolationEnergy(X.shape[1]), rule=Naive(), solver=solver)

    def _noted(self, X: Tensor, weight: Tensor | None, solver: Isolation) -> Isolation:
        x = np.ascontiguousarray(X.detach().cpu().numpy())
        found = solver.samples(x, weight, Key.of(self.random_state))
        first = len(solver.before)
        kept = (self.estimators_samples_, self.estimators_features_) if first else ([], [])
        self.estimators_samples_, self.estimators_features_ = (list(part) for part in kept)
        trees = {t: found(t) for t in range(first, self.n_estimators)}
        for rows, many, columns in trees.values():
            copies = np.maximum(np.ceil(many - 1e-9), 1).astype(np.int64)
            self.estimators_samples_.append(np.repeat(rows, copies))
            self.estimators_features_.append(columns)
        return replace(solver, found=trees.__getitem__)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        energy: Any = self.energy_
        self.offset_ = USUAL
        if self.contamination != "auto":
            self._set_offset(X, sample_weight)
        energy.threshold.fill_(-self.offset_)
        return self

    def _scores(self, x: Tensor) -> Tensor:
        energy: Any = self.energy_
        return -energy.scores(x)

    def path_lengths(self, X: Any) -> Any:
        """Mean number of cuts on the way of each row, ``(n_samples,)``: short is unusual."""
        x, home = self._rows(X)
        energy: Any = self.energy_
        return home.give(energy.paths(x))

    @property
    def estimators_(self) -> list[DecisionTreeRegressor]:
        if "energy_" not in vars(self):
            raise AttributeError("IsolationForest has estimators_ after fit, and is not fitted yet")
        own: Any = self.energy_
        nodes: TreeNodes = own.nodes
        made = []
        for t in range(nodes.n_trees):
            energy = TreeMeanEnergy(self.n_features_in_, 1)
            energy.to(*self.energy_.placement())
            energy.nodes.set([nodes.tree(t)])
            made.append(estimator_of(energy, DecisionTreeRegressor(splitter="random")))
        return made
