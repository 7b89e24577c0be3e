"""What several estimators share beyond their role: a progress bar, filling in missing values."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.infer import impute
from groundstate.learn.callbacks import Progress
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.bridge import SklearnBridge
from groundstate.models.validation import validate_data


class VerboseMixin(EnergyEstimator):
    """A parameter ``verbose``: above zero, a progress bar on the terminal."""

    verbose: int

    def _callbacks(
        self, energy: Energy, X: Any, y: Any, weight: Any
    ) -> tuple[list[Any], SklearnBridge | None]:
        mine, theirs = super()._callbacks(energy, X, y, weight)
        bar = [Progress(type(self).__name__)] if self.verbose else []
        return [*bar, *mine], theirs


class ImputeMixin(EnergyEstimator):
    r"""Missing values are free coordinates: x given the part of it that is known."""

    def impute(
        self,
        X: Any,
        how: Literal["mean", "minimise", "sample"] = "mean",
        *,
        random_state: Any = None,
    ) -> Any:
        """Fill in NaN; what is known stays as it is, ``(n_samples, n_features)``.

        Parameters
        ----------
        X : rows with NaN where a value is missing
        how : the conditional "mean", the most probable value ("minimise"), or one "sample"
        random_state : int, for ``how="sample"``
        """
        check_is_fitted(self, "energy_")
        X, home = unwrap(X)
        device, dtype = self.energy_.placement()
        kept = np.float64 if dtype == torch.float64 else np.float32
        X = validate_data(
            self, X, reset=False, dtype=kept, order="C", ensure_all_finite="allow-nan"
        )
        generator = Key.of(random_state).torch(device)
        filled: Tensor = impute(self.energy_, tensor(X, device), how, generator=generator)
        return home.give(filled)


__all__ = ["ImputeMixin", "VerboseMixin"]
