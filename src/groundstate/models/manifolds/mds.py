"""Multidimensional scaling by stress majorisation."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.embedding.stress import StressEnergy
from groundstate.learn.solvers.latent.embedding.smacof import Smacof
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.registry import models


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class MDS(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""A map whose distances are the given ones as nearly as they can be.

    .. math:: \min_Y\;\sum_{i<j} w_{ij}\bigl(\|y_i - y_j\| - \delta_{ij}\bigr)^2 ,

    the stress, lowered by majorisation (SMACOF): every step solves a quadratic that lies above the
    stress and touches it, so that no step raises it. With ``metric_mds=False`` only the order of the
    distances counts: :math:`\delta` is replaced by the increasing function of it that fits best, and
    ``stress_`` is :math:`\sqrt{\sum(d - \hat d)^2/\sum d^2}`.

    A new row is placed where its own stress :math:`e(x, z) = \sum_j(\|z - y_j\| - \delta_j(x))^2` is
    lowest, with the map held fixed.

    Parameters
    ----------
    metric_mds : bool, default=True
    n_init : int, default=1
        Starts of ``init="random"``; the map of least stress is kept.
    init : {"classical_mds", "random"} or array (n_samples, n_components), default="classical_mds"
    max_iter : int, default=300
    verbose : int, default=0
        Above zero, a progress bar.
    eps : float, default=1e-6
        Stop when the stress falls by less than this, in units of the sum of squared distances.
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    random_state : int, default=None
    weights : array (n_samples, n_samples), default=None
        Of the pairs; a pair of weight zero, say a missing distance, does not count.
    normalized_stress : bool or "auto", default="auto"
        Whether ``stress_`` is relative; "auto" does so for ``metric_mds=False``.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
    stress_ : float
    dissimilarity_matrix_ : (n_samples, n_samples) array
    n_iter_ : int
    energy_ : StressEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> model = MDS(metric="precomputed").fit(D)
    >>> model.stress_ < 1e-8, round(float(np.linalg.norm(model.embedding_[0] - model.embedding_[1])), 4)
    (True, 3.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric_mds": ["boolean"],
        "init": [StrOptions({"random", "classical_mds"}), "array-like"],
        "eps": [Interval(Real, 0.0, None, closed="left")],
        "weights": ["array-like", None],
        "normalized_stress": ["boolean", StrOptions({"auto"})],
    }

    _needs_all_pairs: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        metric_mds: bool = True,
        n_init: int = 1,
        init: Any = "classical_mds",
        max_iter: int = 300,
        verbose: int = 0,
        eps: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        weights: Any = None,
        normalized_stress: Any = "auto",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, init: Any = None) -> Any:
        """Lay out the map; ``init``, coordinates to start from, goes before the parameter."""
        self.fit_transform(X, y, sample_weight, init)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, init: Any = None
    ) -> Any:
        """Lay out the map; the places of the rows, ``(n_samples, n_components)``."""
        self._given = init
        try:
            return super().fit_transform(X, y, sample_weight)
        finally:
            self.__dict__.pop("_given", None)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        init, weights = self.init, self.weights
        if self.__dict__.get("_given") is not None:
            init = self._given
        if not isinstance(init, str):
            init = torch.from_numpy(
                check_array(unwrap(init)[0], dtype=np.float64, input_name="init")
            )
            if init.shape != (len(X), self.n_components):
                raise ValueError(
                    f"init must hold the coordinates of all rows, ({len(X)}, {self.n_components}), "
                    f"got {tuple(init.shape)}"
                )
        if weights is not None:
            weights = torch.from_numpy(check_array(unwrap(weights)[0], dtype=np.float64))
        relative = self.normalized_stress
        relative = not self.metric_mds if isinstance(relative, str) else bool(relative)
        solver = Smacof(
            self.metric_mds, init, self.n_init, self.max_iter, self.eps, weights, relative
        )
        return self._planned(StressEnergy(X.shape[1], self.n_components, **self._memory()), solver)

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "stress" in history.extra:
            found["stress_"] = history.extra["stress"][-1]
        return found

    @property
    def dissimilarity_matrix_(self) -> Any:
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        with torch.no_grad():
            return energy.away(energy.memory.rows).cpu().numpy()
