"""Distances in units of a cloud's own spread."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.math.distances import mahalanobis
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.metrics.cloud import ESTIMATES, cloud
from groundstate.models.roles import EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models

INSTEAD = "set energy_.mu and energy_.U, the upper triangular factor of the precision"


@models.register(family="metrics", task="representation", role="transformer")
class MahalanobisTransformer(ClassNamePrefixFeaturesOutMixin, EnergyTransformer):
    r"""Coordinates in which Euclidean distances are Mahalanobis distances.

    .. math::
        x \mapsto Jx, \qquad J^\top J = \Sigma^{-1}, \qquad
        e(x) = \tfrac12(x - \mu)^\top\Sigma^{-1}(x - \mu) + \tfrac12\log|2\pi\Sigma| .

    The covariance of the mapped rows is the identity. For Gaussian rows the squared distance to the mean
    has the distribution :math:`\chi^2_d`.

    Parameters
    ----------
    cov : {"empirical", "ledoit_wolf", "oas", "mcd"}, default="empirical"
        How Σ is estimated: as it is, shrunk (two ways), or without the rows that stand out.
    random_state : int, default=None
        Of "mcd".
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    components_ : (n_features, n_features) array
        J, upper triangular.
    location_ : (n_features,) array
    covariance_ : (n_features, n_features) array
    precision_ : (n_features, n_features) array
    energy_ : GaussianMixtureEnergy with one component

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MahalanobisTransformer
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ [[2.0, 1.0], [0.0, 0.3]]
    >>> Z = MahalanobisTransformer().fit_transform(X)
    >>> bool(np.allclose(np.cov(Z.T, ddof=0), np.eye(2)))
    True
    """

    traits = Traits(space={"cov": settings.Choice("empirical", "ledoit_wolf", "oas")})
    _runs_on: Any = "answers"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cov": [StrOptions(set(ESTIMATES))],
    }

    def __init__(
        self,
        cov: str = "empirical",
        *,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        found = cloud(X, weight, self.cov, random_state=self.random_state)
        return found.plan(X.shape[1])

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {}

    location_ = Learned(lambda model: model.energy_.mu[0])
    components_ = Learned(lambda model: model.energy_.factors()[0].T, instead=INSTEAD)
    covariance_ = Learned(lambda model: model.energy_.covariances()[0], instead=INSTEAD)
    precision_ = Learned(
        lambda model: model.energy_.factors()[0] @ model.energy_.factors()[0].T, instead=INSTEAD
    )

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def _map(self) -> Tensor:
        J: Tensor = self.energy_.factors()[0].detach().T
        return J

    def transform(self, X: Any) -> Any:
        """Jx of each row, ``(n_samples, n_features)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(x @ self._map().T)

    def mahalanobis(self, X: Any) -> Any:
        """Squared distances to the mean, ``(n_samples,)``, as in scikit-learn."""
        x, home = self._rows(X)
        mu: Tensor = self.energy_.mu
        with answering(self.energy_, x):
            return home.give(((x - mu) @ self._map().T).square().sum(1))

    def distance(self, X: Any, Y: Any) -> Any:
        r""":math:`\sqrt{(x - y)^\top\Sigma^{-1}(x - y)}` of all pairs, ``(n_samples, n_others)``."""
        x, home = self._rows(X)
        y, _ = self._rows(Y)
        return home.give(mahalanobis(x, y, J=self._map()))

    def get_mahalanobis_matrix(self) -> Any:
        r""":math:`\Sigma^{-1}`, ``(n_features, n_features)``."""
        return np.asarray(self.precision_)
