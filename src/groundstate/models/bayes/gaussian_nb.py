"""Gaussian naive Bayes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.classes.discriminant import GaussianClassEnergy
from groundstate.energy.classes.discriminant_moments import largest_variance
from groundstate.models import settings
from groundstate.models.bayes.closed_form import (
    ClosedFormClassifier,
    checked_prior,
    class_probabilities,
)
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="bayes", task="classification", role="classifier")
class GaussianNB(ClosedFormClassifier):
    r"""Features that are independent Gaussians given the class.

    .. math::
        e(x, y) = -\log\pi_y + \sum_j \Bigl[\frac{(x_j - \mu_{yj})^2}{2\sigma_{yj}^2}
        + \tfrac12\log 2\pi\sigma_{yj}^2\Bigr], \qquad \min_\theta \sum_i w_i\, e(x_i, y_i) .

    The minimiser is one pass of sums: weight, mean and variance of every feature in every class.
    A missing value (NaN) is a term that is left out, in learning and in prediction.

    Parameters
    ----------
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features that is added to every variance.

    Attributes
    ----------
    class_count_, class_prior_ : (n_classes,) arrays
    theta_, var_ : (n_classes, n_features) arrays
        Means and variances.
    epsilon_ : float
        What was added to the variances.
    energy_ : GaussianClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GaussianNB
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = GaussianNB().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[-0.5], [3.0]]).tolist(), model.theta_.ravel().tolist()
    (['a', 'b'], [-1.5, 1.5])
    """

    traits = Traits(space={"var_smoothing": settings.Real(1e-12, 1e-1, log=True)})

    _single_class: ClassVar[bool] = True
    _allow_nan: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.device = device
        self.callbacks = callbacks

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> GaussianClassEnergy:
        k = len(self.classes_)
        prior = checked_prior(self.priors, k)
        energy = GaussianClassEnergy(
            k, x.shape[1], "diag", smoothing=self.var_smoothing, prior=prior, dtype=x.dtype
        ).to(x.device, x.dtype)
        energy.centre(x, y, weight)
        return energy

    theta_ = Learned(lambda model: model.energy_.mu)
    var_ = Learned(
        lambda model: model.energy_.U.double().square().reciprocal().to(model.energy_.U),
        lambda model, value: model.energy_.U.copy_(value.double().rsqrt()),
    )
    class_prior_ = class_probabilities()

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        widest = largest_variance(energy.sums, energy.origin.double())
        return {
            "class_count_": sums["n"].numpy().copy(),
            "epsilon_": self.var_smoothing * widest,
        }
