"""Maps of a graph by its slowest functions."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.embedding.graph_map import LaplacianEnergy
from groundstate.learn.solvers.latent.embedding.graph import LaplacianAxes, graph_of
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.distances import GivenDistances
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.models.traits import Traits
from groundstate.registry import models

GIVEN = ("precomputed", "precomputed_nearest_neighbors")


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class SpectralEmbedding(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""Coordinates that change least along the edges of a graph (Laplacian eigenmaps).

    .. math::
        \min_Y\;\tfrac12\sum_{ij}w_{ij}\|y_i - y_j\|^2 = \mathrm{tr}(Y^\top LY), \qquad
        Y^\top DY = I, \quad L = D - W ,

    solved by :math:`Wy = \lambda Dy` with the largest λ below that of the constant. A new row goes to
    where its energy :math:`\tfrac12\sum_jw_j(x)\sum_c(z_c - y_{jc}/\lambda_c)^2` is lowest (Nyström's
    extension).

    Parameters
    ----------
    affinity : str or callable, default="nearest_neighbors"
        The weights: one for the nearest rows (half, where only one of two is near to the other);
        "rbf", :math:`e^{-\gamma\|x_i - x_j\|^2}`; "precomputed", X itself;
        "precomputed_nearest_neighbors", neighbours by the distances X; or a function of the table of
        rows.
    gamma : float, default=None
        Of "rbf"; None is ``1 / n_features``.
    eigen_solver : {"arpack", "lobpcg", "amg"}, default=None
        Accepted for scikit-learn's sake: a factorised matrix and a few steps of Lanczos.
    eigen_tol : float or "auto", default="auto"
        Relative accuracy of the eigenvalues; "auto" is machine precision.
    n_neighbors : int, default=None
        Rows of a neighbourhood, the row itself counted; None is a tenth of the rows.
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    device : str or torch.device, default=None
        Where new rows are placed; the map itself is laid out on the CPU.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        The entry of largest modulus of each column is positive.
    affinity_matrix_ : (n_samples, n_samples) array or sparse array
        The weights, computed when asked for.
    eigenvalues_ : (n_components,) array
        λ; those of L are :math:`1 - \lambda`.
    n_neighbors_ : int
        Of the graph, for neighbours.
    gamma_ : float
        Of "rbf".
    energy_ : LaplacianEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SpectralEmbedding
    >>> t = np.linspace(0, 4, 60)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> y = SpectralEmbedding(n_components=1, n_neighbors=6).fit_transform(X)[:, 0]
    >>> bool(abs(np.corrcoef(y, t)[0, 1]) > 0.97)
    True
    """

    traits = Traits(space={"n_neighbors": settings.Whole(4, 60, log=True)})
    _runs_on = "answers"
    _store_private: ClassVar[tuple[str, ...]] = ("_levels", "_order")
    metric = "euclidean"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "affinity": [StrOptions({"nearest_neighbors", "rbf", *GIVEN}), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "eigen_solver": [StrOptions({"arpack", "lobpcg", "amg"}), None],
        "eigen_tol": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [None, Integral],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        affinity: Any = "nearest_neighbors",
        gamma: float | None = None,
        random_state: Any = None,
        eigen_solver: str | None = None,
        eigen_tol: Any = "auto",
        n_neighbors: int | None = None,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def _is_square(self) -> bool:
        return isinstance(self.affinity, str) and self.affinity in GIVEN

    def _checked_distances(self, D: Any, graph: bool) -> None:
        if self.affinity != "precomputed":
            GivenDistances._checked_distances(self, D, graph)

    def _densified(self, X: Any) -> Any:
        weights = self.affinity == "precomputed" and issparse(X)  # no edge is a weight of zero
        return X.toarray() if weights else super()._densified(X)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        n = len(X) if weight is None else int(weight.sum())
        if self.n_components >= n:
            raise ValueError(f"n_components={self.n_components} must be less than n_samples={n}")
        self.__dict__.pop("gamma_", None)
        k = self.n_neighbors if self.n_neighbors is not None else max(n // 10, 1)
        gamma = 1.0 / X.shape[1] if self.gamma is None else float(self.gamma)
        energy = LaplacianEnergy(
            X.shape[1], self.n_components, self.affinity, neighbors=k, gamma=gamma
        )
        return self._planned(
            energy, LaplacianAxes(0.0 if self.eigen_tol == "auto" else float(self.eigen_tol))
        )

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "eigenvalues" in history.extra:
            found["eigenvalues_"] = torch.tensor(history.extra["eigenvalues"]).numpy()
            found["_order"] = self._ordered()
            if self.affinity == "rbf":
                found["gamma_"] = energy.gamma
            elif isinstance(self.affinity, str) and self.affinity.endswith("nearest_neighbors"):
                found["n_neighbors_"] = energy.neighbors
        return found

    @property
    def affinity_matrix_(self) -> Any:
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        rows, order = energy.memory.rows, self._order
        graph = graph_of(energy, rows[:, energy.memory.column] if self._is_square else rows)
        return graph[order][:, order]
