"""The metric of a model, and distances in place of rows."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.metrics import DistanceMetric
from sklearn.utils import Tags

from groundstate.compute.foreign.sklearn import DistanceMetric32
from groundstate.errors import DataError
from groundstate.math.distances.dissimilarities import OfTable
from groundstate.models.base import EnergyEstimator


class GivenDistances(EnergyEstimator):
    r"""Rows, or with ``metric="precomputed"`` their distances :math:`d(x_i, x_j)` to the learned rows.

    A sparse matrix of distances is a graph of near rows, as a ``KNeighborsTransformer`` makes it: what
    is stored is a distance, also a zero, and a pair that is not stored are no neighbours, infinitely
    far apart. It is kept as a table of all pairs.
    """

    _accept_sparse: ClassVar[bool | str] = "dense"
    _needs_all_pairs: ClassVar[bool] = False  # whether the distances of near rows are not enough
    metric: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_square
        return tags

    @property
    def _is_square(self) -> bool:
        """Whether X are the distances between the rows."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _checked(self, X: Any, y: Any) -> Any:
        graph = self._is_square and issparse(X)
        if graph and self._needs_all_pairs:
            raise TypeError(
                f"{type(self).__name__} needs the distances of all pairs, got a sparse matrix, which "
                "leaves pairs out; pass X.toarray() if every pair is in it, or the rows themselves"
            )
        rows, *rest = super()._checked(X, y)
        if self._is_square:
            if rows.shape[0] != rows.shape[1]:
                raise DataError(
                    "Precomputed matrix must be square, with the distances between all rows, got "
                    f"shape {tuple(rows.shape)}"
                )
            self._checked_distances(rows, graph)
        return rows, *rest

    def _checked_distances(self, D: Any, graph: bool) -> None:
        """Refuse what are no distances between rows; those of a graph lie at zero from themselves."""
        if D.min() < 0:
            raise DataError(
                "Negative values in data passed to precomputed distance matrix: All distances should "
                f"be positive, the least is {float(D.min()):g}"
            )
        if graph:
            own = D.diagonal()
            np.fill_diagonal(D, np.where(np.isinf(own), 0.0, own))

    def _densified(self, X: Any) -> Any:
        return with_gaps(X) if self._is_square and issparse(X) else super()._densified(X)


def with_gaps(X: Any) -> NDArray[Any]:
    """Distances of a sparse graph as a table in which what is not stored is infinite.

    >>> with_gaps(csr_array([[0.0, 2.0]])).tolist()
    [[inf, 2.0]]
    """
    graph = X.tocoo()
    table = np.full(X.shape, np.inf, X.dtype)
    table[graph.row, graph.col] = graph.data
    return table


def without_gaps(D: NDArray[Any]) -> Any:
    """A table of distances as a sparse graph, without those that are infinite but with zeros."""
    row, column = (~np.isinf(D)).nonzero()
    starts = np.concatenate([[0], np.bincount(row, minlength=len(D)).cumsum()])
    return csr_array((D[row, column], column, starts), shape=D.shape)


def memory_of(metric: Any, metric_params: Any, p: float = 2.0) -> dict[str, Any]:
    """Arguments of a memory of rows for a metric and its parameters."""
    extra = dict(metric_params or {})
    p = extra.pop("p", p)
    VI = None
    if metric == "mahalanobis":
        VI = _inverse_covariance(extra)
    elif metric == "seuclidean":
        if "V" not in extra:
            raise ValueError("metric 'seuclidean' needs metric_params={'V': variances}")
        metric, VI = "mahalanobis", np.diag(1.0 / np.asarray(extra.pop("V"), float))
    w = extra.pop("w", None) if metric == "minkowski" else None
    if isinstance(metric, DistanceMetric):
        metric = OfTable(partial(_pairwise, metric))
    elif callable(metric):
        chosen, given = metric, extra
        metric = (lambda a, b: chosen(a, b, **given)) if given else chosen
    elif extra:
        raise ValueError(f"metric {metric!r} has no parameter {sorted(extra)[0]!r}")
    return {"metric": metric, "p": p, "VI": VI, "w": w}


def _pairwise(metric: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Distances of all pairs of rows by an object of scikit-learn's."""
    kind = np.float32 if isinstance(metric, DistanceMetric32) else np.float64
    found: NDArray[Any] = metric.pairwise(rows.astype(kind, copy=False))
    return found


def _inverse_covariance(extra: dict[str, Any]) -> Any:
    """VI of the Mahalanobis metric, taken out of its parameters."""
    VI, V = extra.pop("VI", None), extra.pop("V", None)
    if VI is None and V is None:
        raise ValueError(
            "metric 'mahalanobis' needs metric_params={'VI': inverse_covariance} or {'V': covariance}"
        )
    return VI if V is None else np.linalg.inv(np.asarray(V, dtype=np.float64))


__all__ = ["GivenDistances", "memory_of", "with_gaps", "without_gaps"]
