"""What a fitted model says about rows, in the one form that metrics read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.evaluate.rows import Floats


@dataclass(frozen=True)
class Prediction(Displayed):
    """Answers for N rows.

    Attributes
    ----------
    values : (N,)
        Predicted labels, as numbers of ``classes``, or predicted real values.
    probability : (N, K) or None
        Probabilities of the classes, in the order of ``classes``.
    ranking : (N, K) or None
        Scores that order rows by class; the probabilities where there are any.
    classes : (K,) or None
        The labels; None for regression.
    """

    values: NDArray[Any]
    probability: Floats | None = None
    ranking: Floats | None = None
    classes: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, model: Any, X: Any, classes: NDArray[Any] | None = None) -> Prediction:
        """Ask a fitted estimator; ``classes`` are all labels of the task, None for regression.

        A model that has seen fewer classes in training gives the others probability zero.
        """
        answer = np.asarray(model.predict(X))
        if classes is None:
            return cls(answer.astype(np.float64).reshape(len(answer)))
        own = np.asarray(getattr(model, "classes_", classes))
        place = np.searchsorted(classes, own)
        if (place >= len(classes)).any() or (classes[place] != own).any():
            raise DataError(f"the model knows classes {own.tolist()}, not among {classes.tolist()}")
        probability = None
        if hasattr(model, "predict_proba"):
            probability = _spread(np.asarray(model.predict_proba(X)), place, len(classes), 0.0)
        ranking = probability
        if ranking is None and hasattr(model, "decision_function"):
            decision = np.asarray(model.decision_function(X), np.float64)
            if decision.ndim == 1:
                decision = np.stack([-decision, decision], 1)
            if decision.shape[1] == len(own):
                ranking = _spread(decision, place, len(classes), -np.inf)
        return cls(np.searchsorted(classes, answer), probability, ranking, classes)

    @classmethod
    def read(
        cls, y: Any, pred: Any, proba: Any = None, task: str = "classification"
    ) -> tuple[NDArray[Any], Prediction]:
        """Class numbers (or real values) of a target, and what arrays say about it.

        Parameters
        ----------
        y, pred : (N,)
            Labels or values.
        proba : (N, K) or (N,), optional
            Probabilities of the sorted labels, or of the larger of two.
        """
        if isinstance(pred, Prediction):
            return np.asarray(y), pred
        truth, predicted = np.asarray(y), np.asarray(pred)
        if truth.shape != predicted.shape or truth.ndim != 1:
            raise DataError(
                f"y and pred need one value per row each, got {truth.shape} and {predicted.shape}"
            )
        if task != "classification":
            return truth.astype(np.float64), cls(predicted.astype(np.float64))
        classes = _labels(truth, predicted)
        table = None
        if proba is not None:
            table = np.asarray(proba, np.float64)
            table = np.stack([1 - table, table], 1) if table.ndim == 1 else table
            if table.shape[1] != len(classes):
                raise DataError(
                    f"proba has {table.shape[1]} columns for the {len(classes)} labels "
                    f"{classes.tolist()[:5]}; give one per sorted label"
                )
        if np.array_equal(classes, np.arange(len(classes))):
            return truth.astype(np.intp), cls(predicted.astype(np.intp), table, table, classes)
        codes = np.searchsorted(classes, truth), np.searchsorted(classes, predicted)
        return codes[0], cls(codes[1], table, table, classes)

    def take(self, rows: NDArray[np.intp]) -> Prediction:
        """The answers for some of the rows."""
        return Prediction(
            self.values[rows],
            None if self.probability is None else self.probability[rows],
            None if self.ranking is None else self.ranking[rows],
            self.classes,
        )

    @classmethod
    def assemble(cls, parts: list[tuple[NDArray[np.intp], Prediction]], n: int) -> Prediction:
        """Answers for N rows from answers for parts of them; rows in no part stay zero.

        Where not every part has probabilities, the scores that rank rows come on several scales
        (distances here, probabilities there), so each part gives the rank of a row among its own.
        """
        first = parts[0][1]
        scaled = all(part.probability is not None for _, part in parts)

        def blank(name: str) -> Floats | None:
            predicted = [getattr(part, name) for _, part in parts]
            return (
                None if any(s is None for s in predicted) else np.zeros((n, predicted[0].shape[1]))
            )

        values = np.zeros(n, first.values.dtype)
        whole = cls(values, blank("probability"), blank("ranking"), first.classes)
        for rows, part in parts:
            for name in ("values", "probability", "ranking"):
                target = getattr(whole, name)
                if target is not None:
                    predicted = getattr(part, name)
                    ranked = name == "ranking" and not scaled
                    target[rows] = (
                        rankdata(predicted, axis=0) / (len(predicted) + 1) if ranked else predicted
                    )
        return whole


def _labels(*predicted: NDArray[Any]) -> NDArray[Any]:
    """The sorted distinct labels; small whole numbers are counted, not sorted."""
    if all(labels.dtype.kind in "iu" and len(labels) for labels in predicted):
        low, high = min(int(v.min()) for v in predicted), max(int(v.max()) for v in predicted)
        if low >= 0 and high < 4096:
            seen = sum(np.bincount(labels, minlength=high + 1) for labels in predicted)
            return np.flatnonzero(seen)
    return np.unique(np.concatenate(predicted))


def _spread(own: NDArray[Any], place: NDArray[np.intp], k: int, absent: float) -> Floats:
    """Columns of the model's classes at their places among all K."""
    wide = np.full((len(own), k), absent)
    wide[:, place] = own
    return wide
