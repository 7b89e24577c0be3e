"""The final model: learned again with the best settings, alone or as several that vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.errors import Unsupported
from groundstate.tune.learn import Learn, step_name
from groundstate.tune.rows import Rows


def final_model(
    estimator: Any,
    params: Mapping[str, Any],
    rows: Rows,
    n_models: int,
    key: Key,
    steps: int | None = None,
    growth: float = 1.0,
) -> Any:
    """Learn from rows with the best settings and fresh seeds; several models become an ensemble.

    ``steps`` is where an early-stopped model was best; it grows with the rows.
    """
    chosen = dict(params)
    if steps is not None:
        chosen[step_name(estimator)] = max(1, round(steps * growth))
    learn = Learn(estimator)
    models = [learn(rows, chosen, key.fold("final", i)) for i in range(n_models)]
    return models[0] if n_models == 1 else Ensemble(models)


class Ensemble:
    """Fitted models with the same settings and different seeds, whose answers are averaged.

    Attributes
    ----------
    models_ : list of fitted estimators
    provenance_ : list of dicts, one for each
    """

    def __init__(self, models: list[Any]) -> None:
        self.models_ = models
        self.provenance_ = [model.provenance_ for model in models]
        self.n_features_in_ = getattr(models[0], "n_features_in_", None)
        if hasattr(models[0], "classes_"):
            self.classes_ = models[0].classes_

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Mean probabilities; shares of votes of models without any.  # (n, K)"""
        if not hasattr(self, "classes_"):
            raise Unsupported("only classifiers have probabilities; use predict")
        if hasattr(self.models_[0], "predict_proba"):
            return np.mean([np.asarray(m.predict_proba(X)) for m in self.models_], 0)
        votes = np.stack([np.asarray(m.predict(X)) for m in self.models_])  # (M, n)
        return np.stack([(votes == c).mean(0) for c in self.classes_], 1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, or the mean.  # (n,)"""
        if hasattr(self, "classes_"):
            return np.asarray(self.classes_[self.predict_proba(X).argmax(1)])
        return np.mean([np.asarray(m.predict(X)) for m in self.models_], 0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, or R²."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))
