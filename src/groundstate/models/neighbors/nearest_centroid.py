"""Classification by the nearest centroid."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.classes.centroids import CentroidClassEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.centroids import Centroids
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.bayes.closed_form import class_probabilities
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.registry import models


def _euclidean(model: Any) -> bool:
    if model.metric != "euclidean":
        raise AttributeError("scores and probabilities need metric='euclidean'")
    return True


@models.register(family="neighbors", task="classification", role="classifier", auto=False)
class NearestCentroid(EnergyClassifier):
    r"""Each class is a point, and a row belongs to the nearest.

    .. math::
        e(x, y) = -\log\pi_y + \tfrac12\,d(x/s, \mu_y/s)^2 + c, \qquad
        \mu_y = \arg\min_\mu \sum_{i : y_i = y} w_i\,\|x_i - \mu\|_p^p .

    The centroid of a class is its mean (Euclidean, p = 2) or its median (Manhattan, p = 1). With equal
    priors distances are measured as they are, s = 1; else in units of the standard deviation within
    the classes. A row of weight w is w rows.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}, default="euclidean"
    shrink_threshold : float, default=None
        Draw the centroids towards the mean of all rows by so many standard errors; what crosses it
        stays there, so that features in which the classes hardly differ decide nothing.
    priors : {"uniform", "empirical"} or (n_classes,) array, default="uniform"
        Class probabilities: equal, the shares of the rows, or given.

    Attributes
    ----------
    centroids_ : (n_classes, n_features) array
    class_prior_ : (n_classes,) array
    deviations_ : (n_classes, n_features) array
        Distances of the centroids from the mean of all rows in standard errors, after shrinking.
    within_class_std_dev_ : (n_features,) array
    energy_ : CentroidClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import NearestCentroid
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> NearestCentroid().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1]]).tolist()
    [1]
    """

    traits = Traits(space={"shrink_threshold": settings.Real(0.01, 10.0, log=True)})
    _accept_sparse: ClassVar[bool | str] = "dense"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions({"euclidean", "manhattan"})],
        "shrink_threshold": [Interval(Real, 0, None, closed="neither"), None],
        "priors": ["array-like", StrOptions({"empirical", "uniform"})],
    }

    def __init__(
        self,
        metric: str = "euclidean",
        *,
        shrink_threshold: float | None = None,
        priors: Any = "uniform",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = CentroidClassEnergy(len(self.classes_), X.shape[1], self.metric, self._prior())
        return Plan(energy, NLL(over=("x", "y")), Centroids(self.shrink_threshold))

    def _prior(self) -> list[float] | None:
        k = len(self.classes_)
        if isinstance(self.priors, str):
            return [1.0 / k] * k if self.priors == "uniform" else None
        given = np.asarray(self.priors, dtype=np.float64)
        if given.shape != (k,):
            raise ValueError(f"priors must have one entry per class ({k}), got {given.shape}")
        if (given < 0).any():
            raise ValueError(f"priors must be non-negative, got {given.tolist()}")
        if not np.isclose(given.sum(), 1.0):
            warnings.warn(
                "The priors do not sum to 1. Normalizing such that it sums to one.",
                UserWarning,
                stacklevel=6,
            )
        return (given / given.sum()).tolist()

    centroids_ = Learned(lambda model: model.energy_.mu)
    within_class_std_dev_ = Learned(lambda model: model.energy_.spread)
    deviations_ = Learned(lambda model: model.energy_.deviation.clone(), instead="set centroids_")
    class_prior_ = class_probabilities()

    def _scores(self, x: Tensor) -> Tensor:
        """Discriminants :math:`2\\log\\pi_y - d^2` in units of the standard deviation, ``(B, k)``."""
        energy: Any = self.energy_
        unit = torch.where(energy.spread > 0, energy.spread, 1.0)
        scores: Tensor = 2 * energy.log_prior - energy.squared(x, unit)
        return scores

    def _best(self, x: Tensor) -> Tensor:
        energy: Any = self.energy_  # without its constants, which swallow distances of 1e-8
        prior = energy.log_prior
        return (energy.squared(x, energy.scale) - 2 * (prior - prior.max())).argmin(1)

    @available_if(_euclidean)
    def decision_function(self, X: Any) -> Any:
        """Discriminants in units of the standard deviation within the classes,
        ``(n_samples, n_classes)``; for two classes their difference, ``(n_samples,)``.
        """
        x, home = self._rows(X)
        with answering(self.energy_, x):
            score = self._scores(x)
        return home.give(score[:, 1] - score[:, 0] if score.shape[1] == 2 else score)

    @available_if(_euclidean)
    def predict_proba(self, X: Any) -> Any:
        """The softmax of the discriminants, ``(n_samples, n_classes)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(torch.softmax(self._scores(x), 1))

    @available_if(_euclidean)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, ``(n_samples, n_classes)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(torch.log_softmax(self._scores(x), 1))
