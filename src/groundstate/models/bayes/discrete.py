"""What naive Bayes over bits, counts and categories has in common."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.errors import DataError
from groundstate.models import settings
from groundstate.models.bayes.closed_form import ClosedFormClassifier, checked_prior
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits

ALPHA_MIN = 1e-10


class DiscreteNB(ClosedFormClassifier):
    """Smoothed counts per class; the smoothing is a Dirichlet prior.

    Parameters
    ----------
    force_alpha : bool
        Keep an alpha below 1e-10 as it is.
    fit_prior : bool
        Learn the class probabilities; False makes them equal.
    class_prior : (n_classes,) array
        Class probabilities to keep.
    alpha : float or (n_features,) array
        Counts added to every word.

    Attributes
    ----------
    class_count_, class_log_prior_ : (n_classes,) arrays
    """

    traits = Traits(
        space={
            "alpha": settings.Real(1e-3, 1e1, log=True),
            "fit_prior": settings.Choice(True, False),
        }
    )

    _single_class: ClassVar[bool] = True
    _positive: ClassVar[bool] = False
    _wants: ClassVar[str] = "counts are zero or more"
    _allow_nan: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
    }
    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._positive
        tags.classifier_tags.poor_score = True  # on features that are no bits or counts
        return tags

    @available_if(lambda self: not self._positive)  # a tool that asks for it brings real features
    def decision_function(self, X: Any) -> Any:
        """Scores −e, ``(n_samples, n_classes)``; for two classes their difference, ``(n_samples,)``."""
        return super().decision_function(X)

    def _non_negative(self, X: Any) -> Any:
        if self._positive:
            values = X.data if issparse(X) else X
            if isinstance(values, Tensor):
                lowest: Any = values.nan_to_num().min()
            else:  # NaN hides nothing
                lowest = np.fmin.reduce(values, axis=None) if values.size else 0
            if lowest < 0:
                raise DataError(
                    f"Negative values in data passed to {type(self).__name__} (input X); "
                    f"{self._wants}"
                )
        return X

    def _prior(self) -> list[float] | None:
        classes = len(self.classes_)
        given = checked_prior(self.class_prior, classes)
        return [1.0 / classes] * classes if given is None and not self.fit_prior else given

    def _smoothing(self, features: int) -> Any:
        """alpha as a number or a list of one per feature, raised where that is asked for."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (features,):
            raise ValueError(
                f"alpha must be a number or have one entry per feature ({features}), got shape "
                f"{alpha.shape}"
            )
        if alpha.min() < 0:
            raise ValueError(f"All values in alpha must be at least 0, got {alpha.min()}.")
        if alpha.min() < ALPHA_MIN and not self.force_alpha:
            warnings.warn(
                f"alpha below {ALPHA_MIN} is raised to it; keep it with force_alpha=True",
                UserWarning,
                stacklevel=6,
            )
            alpha = np.maximum(alpha, ALPHA_MIN)
        return alpha.tolist()

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        return {
            "class_count_": sums["n"].numpy().copy(),
            "feature_count_": sums["x"].numpy().copy(),
        }

    class_log_prior_ = Learned(
        lambda model: model.energy_.log_prior,
        lambda model, value: model.energy_.logits.copy_(value),
    )
    feature_log_prob_ = Learned(
        lambda model: model.energy_.log_p(),
        lambda model, value: model.energy_.W.copy_(model._weights_of(value)),
    )

    def _weights_of(self, log_p: Tensor) -> Tensor:
        """The parameter W that has these log probabilities."""
        return log_p
