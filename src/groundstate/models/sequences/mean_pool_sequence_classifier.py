"""A classifier of sequences by their mean item."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.spaces import RaggedOf, Real
from groundstate.errors import ShapeError
from groundstate.models.learned import Learned
from groundstate.models.rows.classifier import RowClassifier
from groundstate.nn.blocks.bags import MeanPool
from groundstate.registry import models


@models.register(family="sequences", task="classification", role="classifier", auto=False)
class MeanPoolSequenceClassifier(RowClassifier):
    r"""Labels of sequences of any length by a linear map of their mean item.

    .. math:: e(x, y) = -W_y\,\frac1T\sum_{t=1}^{T} x_t - b_y, \qquad
              p(y \mid x) = \operatorname{softmax}(-e)_y

    X is a list of arrays ``(length, d)``, each of a length of its own, or an array
    ``(n, length, d)``. The order within a sequence does not matter; it is what any model of
    sequences has to beat. Learning lowers the cross-entropy plus :math:`\tfrac\alpha2\|W\|^2`.

    Attributes
    ----------
    coef_ : (n_classes, d) array
    intercept_ : (n_classes,) array

    Examples
    --------
    >>> from groundstate import MeanPoolSequenceClassifier
    >>> X = [[1.0, 2.0, 1.5], [1.2], [-1.0, -2.0], [-0.5, -1.5, -1.0, -2.0]]
    >>> model = MeanPoolSequenceClassifier(random_state=0).fit(X, ["up", "up", "down", "down"])
    >>> model.predict([[3.0, 1.0], [-2.0]]).tolist()
    ['up', 'down']
    """

    rows: ClassVar[str] = "sequence"
    coef_ = Learned(lambda m: m.energy_.net.linear.weight)
    intercept_ = Learned(lambda m: m.energy_.net.linear.bias)

    def _energy(self, X: Any, k: int, generator: torch.Generator) -> Energy:
        if len(X.item_shape) != 1:
            raise ShapeError(f"items must have shape (d,), got {X.item_shape}")
        d = X.item_shape[0]
        return NetClassEnergy(RaggedOf(Real(d)), k, MeanPool(d, k))
