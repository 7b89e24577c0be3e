"""Naive Bayes for bits."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.classes.naive_bayes.counts import BernoulliClassEnergy
from groundstate.energy.classes.naive_bayes.missing import spoilt
from groundstate.models.bayes.discrete import DiscreteNB
from groundstate.registry import models


@models.register(family="bayes", task="classification", role="classifier")
class BernoulliNB(DiscreteNB):
    r"""Features that are independent bits given the class.

    .. math::
        e(x, y) = -\log\pi_y - \sum_j \bigl[x_j\log p_{yj} + (1 - x_j)\log(1 - p_{yj})\bigr],
        \qquad p_{yj} = \frac{n_{yj} + \alpha}{n_y + 2\alpha} .

    A missing bit (NaN) is a term that is left out: :math:`n_y` counts the rows that have it.

    Parameters
    ----------
    alpha : float or (n_features,) array, default=1.0
        Counts added to both values of every bit.
    binarize : float or None, default=0.0
        A feature above it is a one; None takes the features as bits.

    Attributes
    ----------
    feature_count_, feature_log_prob_ : (n_classes, n_features) arrays
    energy_ : BernoulliClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import BernoulliNB
    >>> X = np.array([[1, 0], [1, 1], [0, 1]])
    >>> BernoulliNB().fit(X, ["a", "a", "b"]).predict([[1, 0]]).tolist()
    ['a']
    """

    _accept_sparse: ClassVar[bool | str] = "csr"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _features(self, x: Tensor) -> Tensor:
        if self.binarize is None:
            return x
        if x.layout != torch.sparse_csr:
            return _above(x, self.binarize)
        ones = _above(x.values(), self.binarize)
        return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), ones, x.shape)

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> BernoulliClassEnergy:
        d = x.shape[1]
        return BernoulliClassEnergy(len(self.classes_), d, self._smoothing(d), self._prior())

    def _weights_of(self, log_p: Tensor) -> Tensor:
        return log_p - torch.log(-torch.expm1(log_p))


def _above(x: Tensor, level: float) -> Tensor:
    """Ones above a level; what is missing stays so."""
    ones = torch.gt(x, level, out=torch.empty_like(x))  # half the time of comparing, then casting
    return ones.masked_fill_(x.isnan(), torch.nan) if spoilt(x) else ones
