"""What the two histogram boosters share: parameters, solver, staged answers."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length
from torch import Tensor

from groundstate.compute.foreign.sklearn import Hidden, Interval, StrOptions, check_sample_weight
from groundstate.energy.base import Energy
from groundstate.learn.solvers.boosting.histogram.grower import Limits
from groundstate.learn.solvers.boosting.newton import HistogramBoosting, Stopping
from groundstate.models import settings
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.tables.categories import Categories
from groundstate.models.traits import Cost, Traits
from groundstate.models.trees.inputs import category_sizes

SMALL_TREES = {"learning_rate": 0.05, "max_iter": 300, "max_leaf_nodes": 8, "min_samples_leaf": 10}


class HistogramBooster(EnergyEstimator):
    """Parameters to solver settings, and predictions after every step.

    Parameters
    ----------
    learning_rate : float
        ν, the share of each tree that is added.
    max_iter : int
        Steps; with more than two classes a step is one tree per class.
    max_leaf_nodes : int or None
    max_depth : int or None
    min_samples_leaf : int
        Least weight of a leaf; a row of weight 2 counts twice.
    l2_regularization : float
        λ.
    max_features : float
        Share of the columns that a node may choose from.
    max_bins : int
        Bins of a column, missing values apart.
    categorical_features : array of indices, names or booleans, "from_dtype" or None
    monotonic_cst : array or dict
        +1, −1 or 0 per column: predictions may only rise or fall with it.
    interaction_cst : "pairwise", "no_interactions", sequence of groups or None
        Which columns may meet on one path.
    warm_start : bool
        Go on from the trees of the last fit.
    early_stopping : "auto" or bool
        "auto" stops early above 10,000 rows, and with ``fit(..., X_val=, y_val=)``.
    scoring : str, callable or None
        What early stopping watches.
    validation_fraction : float, int or None
        Share of the weight that is held out; None watches the training rows.
    n_iter_no_change : int
    tol : float
    random_state : int
        Of the held-out rows and of ``max_features``.
    goss : bool or (float, float)
        Gradient-based one-side sampling: a tree sees the share a of rows with the largest
        gradients and b of the others, which then count (1 − a)/b times. True is (0.2, 0.1).
    device : str or torch.device
        Where trees grow and predictions are computed; with columns of categories, trees grow on
        the CPU.

    Attributes
    ----------
    do_early_stopping_ : bool
    is_categorical_ : (n_features,) boolean array or None
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
        "early_stopping": [StrOptions({"auto"}), "boolean"],
        "scoring": [str, callable, None],
        "validation_fraction": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "goss": ["boolean", "array-like"],
        "device": [Hidden(None), str, torch.device, None],
    }

    traits = Traits(
        single_columns=True,
        cost=Cost(0.06, rows=0.6, columns=0.8, classes=0.9, start=0.02),
        summed=True,
        steps="max_iter",
        counts_all_steps=True,
        preset=SMALL_TREES,
        space={
            "learning_rate": settings.Real(0.02, 0.2, log=True),
            "max_iter": settings.Whole(50, 1000, log=True),
            "max_leaf_nodes": settings.Whole(3, 64, log=True),
            "min_samples_leaf": settings.Whole(2, 60, log=True),
            "l2_regularization": settings.Real(1e-3, 1e2, log=True),
            "max_features": settings.Real(0.3, 1.0),
        },
    )

    _categories: ClassVar[Any] = Categories()
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "dense"
    energy_: Any
    max_iter: int
    learning_rate: float
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    l2_regularization: float
    max_features: float
    max_bins: int
    categorical_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    warm_start: bool
    early_stopping: Any
    scoring: Any
    validation_fraction: float | None
    n_iter_no_change: int
    tol: float
    goss: Any
    _judging: Any = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Learn from rows ``X`` (n_samples, n_features), targets ``y`` and weights.

        A weight of 2 is the row twice. ``X_val``, ``y_val`` and ``sample_weight_val`` are rows that
        early stopping watches in the place of a held-out share.
        """
        self._judging = None
        if X_val is not None or y_val is not None:
            if X_val is None or y_val is None:
                raise ValueError("X_val and y_val come together; give both or none")
            if self.early_stopping is False:
                raise ValueError(
                    "X_val and y_val are for early stopping, but early_stopping=False; set it to "
                    "True or 'auto', or leave them out"
                )
            self._judging = (X_val, y_val, sample_weight_val)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self._judging = None

    def _judges(self, energy: Energy, X: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        """The rows that early stopping watches where the user gave some: x, y, weights."""
        if self._judging is None:
            return None
        X_val, y_val, weight = self._judging
        self.energy_ = energy.to(X.device, X.dtype)
        x, _ = self._rows(X_val)
        y_val = column_or_1d(unwrap(y_val)[0], warn=True)
        check_consistent_length(x, y_val)
        y = torch.as_tensor(np.asarray(self._encoded("y", np.asarray(y_val)))).to(X.device)
        w = torch.ones(len(x)) if weight is None else tensor(
            check_sample_weight(unwrap(weight)[0], x.cpu().numpy(), ensure_non_negative=True),
            X.device)  # fmt: skip
        return x, (y.to(X.dtype)[:, None] if isinstance(self, RegressorMixin) else y), w

    def _solver(
        self, energy: Energy, X: Tensor, y: Tensor, weight: Tensor | None
    ) -> HistogramBoosting:
        d = X.shape[1]
        sizes = category_sizes(self, d)
        total = len(X) if weight is None else float(weight.sum())
        judges = self._judging is not None
        stop = judges or total > 10_000 if self.early_stopping == "auto" else self.early_stopping
        stop = bool(stop)
        self.do_early_stopping_ = stop
        limits = Limits(
            self.max_leaf_nodes,
            self.max_depth,
            float(self.min_samples_leaf),
            l2=self.l2_regularization,
            columns=self.max_features,
            rising=self._signs(d, sizes),
            together=self._groups(d),
        )
        return HistogramBoosting(
            self.max_iter,
            self.learning_rate,
            limits,
            self.max_bins,
            sizes,
            self._stopping(energy, X, y, total) if stop else None,
            continued=self.warm_start,
            goss=self._one_side(),
        )

    def _one_side(self) -> tuple[float, float] | None:
        given = self.goss
        if given is False:
            return None
        top, other = (0.2, 0.1) if given is True else (float(share) for share in given)
        if not (0 < top < 1 and other > 0 and top + other <= 1):
            raise ValueError(
                f"goss={given!r} must be shares (a, b) of rows with large and of other gradients, "
                "above zero and together at most one, as in goss=(0.2, 0.1)"
            )
        return top, other

    def _stopping(self, energy: Energy, X: Tensor, y: Tensor, total: float) -> Stopping:
        judges = self._judges(energy, X)
        if judges is not None:
            X, y = torch.cat([X, judges[0]]), torch.cat([y, judges[1]])
        share = self.validation_fraction
        if share is not None and share >= 1:
            share = share / total
        score = None
        if self.scoring != "loss":
            scorer = check_scoring(self, self.scoring)
            asked = signature(scorer).parameters
            weighs = "sample_weight" in asked or "kwargs" in asked
            rows, target = X.cpu().numpy(), self._shown(y.cpu().numpy())

            def score(energy: Energy, at: NDArray[Any], weight: NDArray[Any] | None) -> float:
                self.energy_ = energy
                same = weight is None or not weighs or bool((weight == weight[0]).all())
                given = {} if same else {"sample_weight": weight}
                # the rows are numbers without names by now
                levels, self._levels = self._levels, {}
                names = self.__dict__.pop("feature_names_in_", None)
                value = float(scorer(self, rows[at], target[at], **given))
                self._levels = levels
                if names is not None:
                    self.feature_names_in_ = names
                return value

        return Stopping(share, self.n_iter_no_change, self.tol, score, judges)

    def _shown(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets as the user gave them."""
        raise TypeError(f"{type(self).__name__} must define _shown(y)")

    def _signs(self, d: int, sizes: tuple[int, ...] | None) -> tuple[int, ...] | None:
        given = self.monotonic_cst
        if given is None:
            return None
        if isinstance(given, dict):
            names = list(getattr(self, "feature_names_in_", []))
            unknown = [name for name in given if name not in names]
            if unknown:
                raise ValueError(f"monotonic_cst names {unknown[0]!r}, which X does not have")
            given = [given.get(name, 0) for name in names]
        signs = tuple(int(s) for s in given)
        if len(signs) != d:
            raise ValueError(f"monotonic_cst has {len(signs)} entries, but X has {d} features")
        if not set(signs) <= {-1, 0, 1}:
            raise ValueError(f"monotonic_cst holds {sorted(set(signs))}; use -1, 0 and 1")
        if sizes is not None and any(s and c for s, c in zip(signs, sizes)):
            raise ValueError("categorical features cannot have monotonic constraints")
        return signs

    def _groups(self, d: int) -> tuple[frozenset[int], ...] | None:
        given = self.interaction_cst
        if given is None:
            return None
        if given == "no_interactions":
            return tuple(frozenset({j}) for j in range(d))
        if given == "pairwise":
            pairs = tuple(frozenset({i, j}) for i in range(d) for j in range(i))
            return pairs or (frozenset({0}),)
        groups = [frozenset(int(j) for j in part) for part in given]
        outside = sorted(j for part in groups for j in part if not 0 <= j < d)
        if outside:
            raise ValueError(f"interaction_cst names column {outside[0]}, but X has {d} columns")
        rest = frozenset(range(d)) - frozenset().union(*groups)
        return (*groups, rest) if rest else tuple(groups)

    def _steps_done(self, energy: Any) -> int:
        return 0 if int(energy.nodes.column[0]) < 0 else int(energy.nodes.n_trees) // len(energy.b)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        scores = self.history_.extra if hasattr(self, "history_") else {}
        d = len(range(self.n_features_in_))
        sizes = category_sizes(self, d)
        return {
            "train_score_": np.array(scores.get("train", [])),
            "validation_score_": np.array(scores.get("validation", [])),
            "n_trees_per_iteration_": len(energy.b),  # type: ignore[arg-type]
            "is_categorical_": None if sizes is None else np.array(sizes) > 0,
        }

    def _staged(self, X: Any) -> Iterator[tuple[Tensor, Any]]:
        """Scores after every step."""
        x, home = self._rows(X)
        energy = self.energy_
        with torch.no_grad():
            raw = energy.b.repeat(len(x), 1)
            leaves = energy.nodes.apply_rows(x)
            k = len(energy.b)
            for t in range(0, leaves.shape[1], k):
                for c in range(k):
                    raw[:, c] += energy.nodes.value[leaves[:, t + c], 0]
                yield raw.clone(), home
