"""Linear metrics learned from pairs: of labelled rows, or given as pairs or triplets."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import DataError, ShapeError
from groundstate.learn.solvers.metrics.pairs import Pairs, draw_pairs
from groundstate.models.arrays import unwrap
from groundstate.models.metrics.linear_metric import LinearMetricLearner

F64 = NDArray[np.float64]
PRIORS = ("identity", "covariance")


class PairMetricLearner(LinearMetricLearner):
    """A map J learned from pairs of rows that belong together, and pairs that do not.

    Parameters
    ----------
    n_constraints : int
        Pairs of each kind that are drawn from labelled rows; None is 20 times the square of the number
        of classes.
    random_state : int
        Of the pairs.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_constraints": [Interval(Integral, 1, None, closed="left"), None],
    }
    n_constraints: int | None
    _given: Pairs | None = None

    def fit_pairs(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs of rows.

        Parameters
        ----------
        pairs : (n_pairs, 2, n_features)
        y : (n_pairs,), 1 for pairs that belong together, -1 (or 0) for those that do not
        """
        rows = _tuples(pairs, 2)
        similar = np.asarray(unwrap(y)[0])
        if similar.shape != (len(rows),) or not np.isin(similar, (-1, 0, 1)).all():
            raise ShapeError(
                f"y has a 1 or a -1 for each of {len(rows)} pairs, got shape {similar.shape} with "
                f"values such as {np.unique(similar)[:4].tolist()}"
            )
        return self._from(rows, Pairs.of(rows[:, 0], rows[:, 1], similar == 1))

    def fit_triplets(self, triplets: Any) -> Self:
        """Learn from triplets: a row, one that belongs to it, and one that does not.

        Parameters
        ----------
        triplets : (n_triplets, 3, n_features)
        """
        rows = _tuples(triplets, 3)
        kinds = np.repeat([True, False], len(rows))
        anchor = np.concatenate([rows[:, 0], rows[:, 0]])
        pairs = Pairs.of(anchor, np.concatenate([rows[:, 1], rows[:, 2]]), kinds)
        return self._from(rows, pairs)

    def _from(self, rows: F64, pairs: Pairs) -> Self:
        self._given = pairs
        flat = rows.reshape(-1, rows.shape[-1])
        try:
            return self.fit(flat, np.arange(len(flat)) % 2)  # labels that nothing reads
        finally:
            del self._given

    def _pairs(self, X: Tensor, y: Tensor, weight: Tensor | None) -> tuple[F64, F64, Pairs]:
        """Different rows, their weights, and pairs."""
        index, w = distinct_rows(row_hash(X.detach(), y), weight)
        x, labels = X.detach().double().cpu().numpy()[index], y.cpu().numpy()[index]
        if self._given is not None:
            return x, w, self._given
        n = 20 * len(self.classes_) ** 2 if self.n_constraints is None else self.n_constraints
        key = Key.of(getattr(self, "random_state", None)).fold("pairs")
        return x, w, draw_pairs(x, labels, w, n, key)

    def _first(self, given: Any, x: F64, w: F64, name: str) -> F64:
        """A first metric from its name or as an array, positive definite."""
        d = x.shape[1]
        if isinstance(given, str):
            if given == "identity":
                return np.eye(d)
            gap = x - w @ x / w.sum()
            S = (gap * w[:, None]).T @ gap / w.sum()
            size = max(float(np.trace(S)) / d, np.finfo(float).tiny)
            return np.linalg.inv(S + 1e-6 * size * np.eye(d))
        M = np.asarray(given, dtype=np.float64)
        if M.shape != (d, d) or not np.allclose(M, M.T) or np.linalg.eigvalsh(M)[0] <= 0:
            raise ValueError(
                f"{name} must be one of {', '.join(PRIORS)} or a symmetric positive definite matrix of "
                f"shape ({d}, {d}), got an array of shape {M.shape}"
            )
        return M


def _tuples(rows: Any, size: int) -> F64:
    """Pairs or triplets as an array, finite."""
    found = np.asarray(unwrap(rows)[0], dtype=np.float64)
    if found.ndim != 3 or found.shape[1] != size or not len(found):
        what = {2: "pairs (n_pairs, 2, n_features)", 3: "triplets (n_triplets, 3, n_features)"}[
            size
        ]
        raise ShapeError(f"{what} are needed, got an array of shape {found.shape}")
    if not np.isfinite(found).all():
        row = int(np.argwhere(~np.isfinite(found))[0, 0])
        raise DataError(f"entry {row} holds NaN or infinity; replace or drop such entries")
    return found
