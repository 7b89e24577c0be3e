"""Missing values are free coordinates: x given the part of it that is known."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.infer import impute as fill_in
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.validation import validate_data


def impute(
    model: Any,
    X: Any,
    how: Literal["mean", "mode", "minimise", "sample"] = "mean",
    *,
    random_state: Any = None,
) -> Any:
    """Fill in NaN; what is known stays as it is, ``(n_samples, n_features)``.

    Parameters
    ----------
    X : rows with NaN where a value is missing
    how : the conditional "mean", the most probable value ("mode" or "minimise"), or one "sample"
    random_state : int, for ``how="sample"``
    """
    check_is_fitted(model, "energy_")
    X, home = unwrap(X)
    device, dtype = model.energy_.placement()
    kept = np.float64 if dtype == torch.float64 else np.float32
    X = validate_data(model, X, reset=False, dtype=kept, order="C", ensure_all_finite="allow-nan")
    generator = Key.of(random_state).torch(device)
    way = "minimise" if how == "mode" else how
    filled: Tensor = fill_in(model.energy_, tensor(X, device), way, generator=generator)
    return home.give(filled)
