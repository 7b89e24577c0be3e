r"""A loss of the table on the rows of one boosting run: y is fixed, the scores F move."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.math.losses import CrossEntropy, LogLoss, PointLoss, weighted_quantile

F64 = NDArray[np.float64]


class Loss:
    r"""One loss on n rows with the scores F, ``(n, k)``: :math:`g = \partial L/\partial F`, h.

    Parameters
    ----------
    loss : of ``groundstate.math.losses``; None is that of classes
    y : ``(n,)`` int64 classes, or ``(n,)`` float64 targets
    outputs : number of scores; 1 for two classes and for values
    """

    def __init__(self, loss: PointLoss | None, y: Tensor, outputs: int) -> None:
        if loss is None:
            loss = LogLoss() if outputs == 1 else CrossEntropy()
        self.loss, self.y, self.outputs = loss, y, outputs
        self.one = torch.ones(len(y), dtype=torch.float64, device=y.device)  # many hessians
        self.renews = loss.flat  # leaves by quantiles of residuals

    def start(self, weight: Tensor | None) -> F64:
        """The best constant score, ``(k,)``."""
        y, w = self.y.cpu(), None if weight is None else weight.cpu()
        if isinstance(self.loss, CrossEntropy):
            return self.loss.constants(y, self.outputs, w).numpy()
        return np.array([self.loss.constant(y.double(), w)])

    def gradients(self, F: Tensor) -> list[tuple[Tensor, Tensor]]:
        """g and h of each output, ``(n,)`` each."""
        if isinstance(self.loss, CrossEntropy):
            g, h = self.loss.derivatives(F, self.y)
            return [(g[:, c], h[:, c]) for c in range(self.outputs)]
        f = F[:, 0]
        if self.renews or self.loss.name == "squared_error":
            return [(self.loss.gradient(f, self.y), self.one)]
        return [self.loss.derivatives(f, self.y)]

    def mean(self, F: Tensor, weight: Tensor | None) -> float:
        """The weighted mean loss."""
        values = self.loss.value(F if self.outputs > 1 else F[:, 0], self.y)
        return float(values.mean() if weight is None else torch.dot(values, weight) / weight.sum())

    def leaf_value(self, residual: F64, weight: F64 | None) -> float:
        """The best constant to add to rows of these residuals, where ``renews``."""
        return weighted_quantile(residual, weight, getattr(self.loss, "q", 0.5))
