r"""Targets of unit scale for estimators that need them, and their answers back in the target's units.

.. math:: \tilde y = (y - m) / s
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from groundstate.data.preparation.weighted import check_weights, mean_and_scale, tally
from groundstate.errors import DataError, Unsupported
from groundstate.models.traits import asks_scaled_target


@dataclass(frozen=True, eq=False)  # arrays have no one answer
class TargetScale:
    r"""Weighted mean and spread of the training rows' target.

    .. math:: m = \sum_i w_i y_i / W, \qquad s = \sqrt{\textstyle\sum_i w_i (y_i - m)^2 / W}

    A constant target has s = 1. A weight of 2 is the row twice, to the last bit.

    Attributes
    ----------
    mean, scale : (n_targets,) or () array

    Examples
    --------
    >>> kept = TargetScale.of([100.0, 100.0, 130.0, 130.0])
    >>> kept.there([130.0]).round(6).tolist(), kept.back([0.0]).tolist()
    ([1.0], [115.0])
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, y: Any, sample_weight: Any = None) -> Self:
        """Learn it from training rows."""
        values = _numbers(y)
        weights = check_weights(sample_weight, len(values))
        columns = values.reshape(len(values), -1).T
        found = np.array([mean_and_scale(*tally(column, weights)) for column in columns])
        mean, scale = found.T.reshape(2, *values.shape[1:])
        return cls(mean, scale)

    def there(self, y: Any) -> NDArray[np.float64]:
        """Values of the target as the estimator knows them."""
        return np.asarray((_numbers(y) - self.mean) / self.scale)

    def back(self, y: Any) -> Any:
        """The estimator's values in the target's units; targets are the last axis of several."""
        return np.asarray(y) * self.scale + self.mean

    def energy_shift(self, distribution: bool, given: bool, T: float = 1.0) -> float:
        r"""What an energy gains when y is in the target's units.

        :math:`\sum_j\log s_j` where it is that of a distribution of y, whose density is per unit of y; a sum
        over y at temperature T loses T times as much, as :math:`dy = s\,d\tilde y`.

        Parameters
        ----------
        distribution : whether :math:`e^{-e}` is a density of y
        given : whether y is given; it is summed over otherwise
        """
        return float(np.log(self.scale).sum()) * (distribution - (0.0 if given else T))


def scale_for(estimator: Any, wanted: bool | None, y: Any, weight: Any) -> TargetScale | None:
    """The scale that an estimator learns its target on, or None; where nothing is asked, its traits decide."""
    if wanted is None:
        wanted = asks_scaled_target(estimator)
    elif wanted and not is_regressor(estimator):
        raise Unsupported(
            f"scale_target=True is for regressors, and {type(estimator).__name__} is none; "
            "leave it at None"
        )
    return TargetScale.of(y, weight) if wanted and y is not None else None


def _numbers(y: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "scale_target needs a target of numbers; pass numbers, or scale_target=False"
        ) from error
