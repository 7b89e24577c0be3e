"""Classical multidimensional scaling by landmarks."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.latent.embedding.strain import StrainEnergy
from groundstate.learn.solvers.latent.embedding.scaling import ClassicalScaling
from groundstate.models.base import Plan
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.registry import models


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class LandmarkMDS(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""Classical scaling of some rows; the others are placed by their distances to these.

    .. math::
        y(x) = -\tfrac12\,\Lambda^{-1/2}V^\top\bigl(\delta^2(x) - \overline{\delta^2}\bigr) ,

    with the eigenvalues and eigenvectors of the centred squared distances between m landmarks, each
    the row farthest from those before. It is the minimum over z of the strain
    :math:`e(x, z) = \tfrac12\sum_j(b_j(x) - y_j^\top z)^2`. The cost is :math:`O(nm + m^3)`, and only
    n × m distances are ever looked at.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        None is ``max(100, 10 * n_components)``.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
    eigenvalues_ : (n_components,) array
    landmarks_ : (n_landmarks,) array of row numbers
    energy_ : StrainEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LandmarkMDS
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ np.ones((2, 4))
    >>> model = LandmarkMDS(1, n_landmarks=20).fit(X)
    >>> gap = np.abs(model.embedding_[0] - model.embedding_[1])
    >>> round(float(gap[0] / np.linalg.norm(X[0] - X[1])), 6)
    1.0
    """

    _places_known_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    }

    _needs_all_pairs: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_landmarks: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        n = len(X) if weight is None else int(weight.sum())
        m = max(100, 10 * self.n_components) if self.n_landmarks is None else self.n_landmarks
        if self.n_components > min(n, m):
            raise ValueError(
                f"n_components={self.n_components} must be at most the number of landmarks, {min(n, m)}"
            )
        energy = StrainEnergy(X.shape[1], self.n_components, **self._memory())
        return self._planned(energy, ClassicalScaling(landmarks=m))

    def _places(self, energy: Any, x: Tensor, weight: Tensor | None) -> Tensor:
        placed: Tensor = energy.place(x)
        return placed

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "eigenvalues" in history.extra:
            kind = found["embedding_"].dtype
            found["eigenvalues_"] = np.asarray(history.extra["eigenvalues"], kind)
            found["landmarks_"] = self._index.cpu().numpy()
        return found
