"""The role of an outlier detector: scores, an offset, 1 or −1."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import OutlierMixin as SklearnOutlierMixin
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.math.stats.quantiles import repeated_quantile
from groundstate.models.arrays import unwrap


class OutlierMixin(SklearnOutlierMixin):
    r"""Which rows are unusual: their free energy :math:`F(x)` is high.

    A row is an outlier, −1, where :math:`-F(x)` is below ``offset_``, the quantile of the scores of
    the learned rows that ``contamination`` names.
    """

    energy_: Any
    offset_: float
    contamination: Any
    _rows: Any
    _checked_weight: Any

    def score_samples(self, X: Any) -> Any:
        """−F(x) of each row, ``(n_samples,)``: low is unusual."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._scores(x))

    def _scores(self, x: Tensor) -> Tensor:
        hidden = [name for name in self.energy_.spaces if name != "x"]
        return -(self.energy_.marginal(*hidden)(x=x) if hidden else self.energy_(x=x))

    def _set_offset(self, X: Any, weight: Any) -> None:
        scores = np.asarray(unwrap(self.score_samples(X))[0], dtype=np.float64)
        w = None if weight is None else np.asarray(unwrap(weight)[0], dtype=np.float64)
        self.offset_ = repeated_quantile(scores, w, self.contamination)

    def decision_function(self, X: Any) -> Any:
        """Score over ``offset_``, ``(n_samples,)``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """1 for usual rows and −1 for outliers, ``(n_samples,)``."""
        score = self.decision_function(X)
        if isinstance(score, Tensor):
            return torch.where(score < 0, -1, 1)
        return np.where(score < 0, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then 1 or −1 for each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)
