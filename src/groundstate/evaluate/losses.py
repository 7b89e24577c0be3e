"""Per-row losses of fitted models, for whoever needs more than a mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError

Floats = NDArray[np.float64]
Loss: TypeAlias = "str | Callable[[Any, Any], Any] | None"
NAMES = ("zero_one", "squared", "absolute", "log_loss")


def loss_name(estimator: Any, loss: Loss) -> Loss:
    """The loss asked for; by default 0-1 for classifiers and squared for regressors."""
    from sklearn.base import is_classifier

    if loss is None:
        return "zero_one" if is_classifier(estimator) else "squared"
    if isinstance(loss, str) and loss not in NAMES:
        raise ValueError(f"loss must be one of {', '.join(NAMES)} or a function, got {loss!r}")
    return loss


def row_losses(model: Any, X: Any, y: Any, loss: Loss) -> Floats:
    """Loss of a fitted model on each row; a function is called with truth and prediction.

    Parameters
    ----------
    loss : ``"zero_one"``, ``"squared"``, ``"absolute"``, ``"log_loss"`` or ``loss(y, pred) -> (n,)``
    """
    truth = np.asarray(y)
    if loss == "log_loss":
        if not hasattr(model, "predict_proba"):
            raise DataError(f"{type(model).__name__} gives no probabilities, which log_loss needs")
        p = np.asarray(model.predict_proba(X), np.float64)
        classes = np.asarray(model.classes_)
        at = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
        # a class that the training rows did not have was given no chance
        chance = np.where(classes[at] == truth, p[np.arange(len(truth)), at], 0.0)
        return -np.log(np.clip(chance, np.finfo(np.float64).eps, 1.0))
    predicted = np.asarray(model.predict(X))
    if callable(loss):
        return np.asarray(loss(truth, predicted), np.float64)
    if loss == "zero_one":
        return (predicted.reshape(truth.shape) != truth).astype(np.float64)
    gap = truth.astype(np.float64) - predicted.reshape(truth.shape)
    return np.abs(gap) if loss == "absolute" else np.square(gap)


def mean_loss(losses: Floats, weight: Floats | None = None) -> Any:
    """Mean over the last axis, a weight of 2 being the row twice.

    >>> float(mean_loss(np.array([0.0, 1.0]), np.array([3.0, 1.0])))
    0.25
    """
    return np.mean(losses, -1) if weight is None else np.average(losses, axis=-1, weights=weight)


def error_of_mean(losses: Floats, weight: Floats | None = None) -> Any:
    """Standard error of the mean over the last axis."""
    if weight is None:
        return np.std(losses, axis=-1, ddof=1) / np.sqrt(losses.shape[-1])
    gaps = losses - np.expand_dims(mean_loss(losses, weight), -1)
    total = total_weight(weight)
    return np.sqrt(mean_loss(gaps**2, weight) / max(total - 1, 1.0))


def total_weight(weight: Floats) -> float:
    r"""Rows that the weights stand for: their sum when whole, else :math:`(\sum w)^2/\sum w^2`.

    >>> total_weight(np.array([2.0, 1.0])), total_weight(np.array([0.5, 0.5]))
    (3.0, 2.0)
    """
    whole = bool((weight == np.round(weight)).all())
    return float(weight.sum() if whole else weight.sum() ** 2 / (weight**2).sum())


def line_weights(weight: Floats | None) -> Floats | None:
    """Lengths of rows on a line to draw from: whole weights as they are, others sum to the rows."""
    if weight is None or (weight == np.round(weight)).all():
        return weight
    return np.asarray(weight * (len(weight) / weight.sum()))


def no_information(y: Any, predicted: Any, loss: Loss) -> float:
    """Mean loss when predictions have nothing to do with the targets: over all pairs of them."""
    truth, answer = np.asarray(y), np.asarray(predicted)
    if loss == "zero_one":
        labels = np.unique(np.concatenate([truth, answer]))
        p = np.array([(truth == label).mean() for label in labels])
        q = np.array([(answer == label).mean() for label in labels])
        return float(1 - p @ q)
    if loss == "squared":
        a, b = truth.astype(np.float64), answer.astype(np.float64)
        return float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    if loss == "absolute":
        return float(np.abs(truth[:, None].astype(np.float64) - answer[None]).mean())
    raise DataError(".632+ needs the loss zero_one, squared or absolute")
