"""What forests add: bootstrap rows, out-of-bag answers, and their trees as estimators."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.tree import GrowTrees
from groundstate.models.extras import VerboseMixin
from groundstate.models.trees.grown import CONSTRAINTS, GrownTrees

EXACT_ROWS = 2_000  # members differ by more than cuts between neighbours: bins above this
FOREST: dict[str, Any] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    **CONSTRAINTS,
    "bootstrap": ["boolean"],
    "oob_score": ["boolean", callable],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    "max_samples": [
        None,
        Interval(Real, 0.0, 1.0, closed="right"),
        Interval(Integral, 1, None, closed="left"),
    ],
}


class Forest(VerboseMixin, GrownTrees):
    """Many trees on weighted copies of the rows; the energy averages them."""

    n_estimators: int
    bootstrap: bool
    oob_score: Any
    n_jobs: int | None
    max_samples: Any
    warm_start: bool
    _splitter: ClassVar[str] = "best"
    _store_private: ClassVar[tuple[str, ...]] = ("_bags",)

    def _solver(self, X: Tensor, weight: Tensor | None) -> GrowTrees:
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: otherwise every tree sees every row")
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError("max_samples needs bootstrap=True")
        total = len(X) if weight is None else float(weight.sum())
        draws = None
        if self.max_samples is not None:
            share = self.max_samples
            draws = int(share) if isinstance(share, Integral) else max(1, round(share * total))
        return GrowTrees(
            replace(self._limits(X, weight, self._splitter), exact_rows=EXACT_ROWS),
            self.n_estimators,
            self.bootstrap,
            draws,
            self._category_sizes(X.shape[1]),
            self.ccp_alpha,
            bool(self.oob_score),
            self.warm_start,
            None if self.n_jobs is None else effective_n_jobs(self.n_jobs),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {}

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        super()._fit(X, y, sample_weight)
        outside = self.history_.extra.pop("out_of_bag", None)
        if outside is not None:
            self._judge(np.asarray(outside), y, sample_weight)
        return self

    def _judge(self, outside: NDArray[Any], y: Any, weight: Any) -> None:
        """Set what is known about rows from the trees that did not see them."""
        raise TypeError(f"{type(self).__name__} must define _judge(outside, y, weight)")

    @property
    def estimators_(self) -> list[Any]:
        """The trees as fitted single trees of their own."""
        return [self._member(t) for t in range(self.energy_.nodes.n_trees)]

    def _member(self, t: int) -> Any:
        raise TypeError(f"{type(self).__name__} must define _member(t)")

    def __len__(self) -> int:
        return int(self.energy_.nodes.n_trees)


__all__ = ["FOREST", "Forest"]
