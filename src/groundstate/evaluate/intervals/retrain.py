"""How much a score moves when only the seed changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import NotApplicable
from groundstate.evaluate.fitting import fit_weighted, random_names, seeds_of, with_seed
from groundstate.evaluate.losses import Loss, error_of_mean, loss_name, mean_loss, row_losses
from groundstate.evaluate.rows import n_rows, sides, take, weights_of
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.population import fit_rows
from groundstate.models.population.many import log_reason


@dataclass(frozen=True)
class Retrained(Displayed):
    r"""Samples of p(score | training rows, test rows), over seeds.

    Attributes
    ----------
    scores : Scores
        Mean test loss of each seed.
    disagreement : float
        Share of test rows on which two seeds answer differently (classes), or the mean distance of
        two answers (numbers), over pairs of seeds.
    relative_sd : float
        Standard deviation over seeds divided by that of test sampling,
        :math:`\mathrm{sd}(\ell)/\sqrt n`.
    n_fits : int
    deterministic : bool
        The estimator has nothing random in it: one fit, spread 0.
    hardware_sd : float or None
        Spread of fits with the same seed (``repeat_same_seed``).
    """

    scores: Scores
    disagreement: float
    relative_sd: float
    n_fits: int
    deterministic: bool
    hardware_sd: float | None = None
    predictions: NDArray[Any] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if self.deterministic:
            return f"{self.scores.metric} {self.scores.mean:.4g}, the same for every seed"
        return f"{self.scores}; sd {self.scores.std:.3g}, {self.relative_sd:.2g} of test sampling"


def retrain(
    estimator: Any,
    X: Any,
    y: Any,
    split: Any,
    seeds: int = 10,
    *,
    loss: Loss = None,
    sample_weight: Any = None,
    repeat_same_seed: int = 0,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> Retrained:
    """Fit the same recipe to the same rows with other seeds, and score each fit.

    Networks, also at the end of a pipeline, are trained as one program, with the same result.

    Parameters
    ----------
    estimator : unfitted; every ``random_state`` inside gets a new seed for each fit
    split : ``SplitRows``, ``Split``, or (train rows, test rows)
    seeds : number of fits
    loss : per-row loss, as in :func:`row_losses`; 0-1 or squared by default
    sample_weight : ``(N,)``; a weight of 2 is the row twice, on both sides
    repeat_same_seed : further fits with the first seed, to measure what hardware alone does

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.arange(20.0)[:, None]
    >>> found = retrain(LinearRegression(), X, X[:, 0] ** 2, (np.arange(15), np.arange(15, 20)))
    >>> found.n_fits, found.scores.std
    (1, 0.0)
    """
    from joblib import Parallel, delayed

    train, test = sides(split)
    target, key = np.asarray(y), Key.of(random_state)
    kind = loss_name(estimator, loss)
    name = kind if isinstance(kind, str) else "loss"
    names = random_names(estimator)
    weight = None if sample_weight is None else weights_of(sample_weight, n_rows(X))
    fits, judges = (None, None) if weight is None else (weight[train], weight[test])
    rows = take(X, train), target[train], take(X, test), target[test], fits
    if not names:
        losses, predicted = _one(estimator, names, None, rows, kind)
        value = float(mean_loss(losses, judges))
        scores = Scores([value], ("seed",), name, greater_is_better=False)
        return Retrained(scores, 0.0, 0.0, 1, True, None, predicted[None])
    keys = [*(key.fold("seed", i) for i in range(seeds)), *[key.fold("seed", 0)] * repeat_same_seed]
    # what hardware alone does is seen in fits one after the other, all by the same program
    models = None
    if not repeat_same_seed:
        try:
            models = fit_rows(
                estimator, X, target, [train] * seeds, [seeds_of(names, k) for k in keys], weight
            )
        except NotApplicable as reason:
            log_reason(estimator, reason)
    found: list[Any]
    if models is None:
        jobs = (delayed(_one)(estimator, names, k, rows, kind) for k in keys)
        found = list(Parallel(n_jobs=n_jobs)(jobs))
    else:
        found = [_predicted(model, rows, kind) for model in models]
    losses = np.stack([f[0] for f in found])  # (fits, n_test)
    predicted = np.stack([f[1] for f in found[:seeds]])
    means = mean_loss(losses, judges)
    scores = Scores(means[:seeds], ("seed",), name, greater_is_better=False)
    usual = float(error_of_mean(losses[:seeds], judges).mean())
    hardware = None
    if repeat_same_seed:
        hardware = float(np.std(np.r_[means[0], means[seeds:]], ddof=1))
    apart = _disagreement(predicted)
    relative = scores.std / usual if usual > 0 else 0.0
    return Retrained(scores, apart, relative, len(keys), False, hardware, predicted)


def _one(estimator: Any, names: list[str], key: Key | None, rows: Any, loss: Loss) -> Any:
    X, y, _, _, weight = rows
    return _predicted(fit_weighted(with_seed(estimator, names, key), X, y, weight), rows, loss)


def _predicted(model: Any, rows: Any, loss: Loss) -> Any:
    """Losses and answers on the test rows."""
    _, _, X_test, y_test, _ = rows
    return row_losses(model, X_test, y_test, loss), np.asarray(model.predict(X_test))


def _disagreement(predicted: NDArray[Any]) -> float:
    """Mean over pairs of fits of the share of rows (or the distance) they differ by."""
    m = len(predicted)
    if m < 2:
        return 0.0
    if predicted.dtype.kind == "f" and (predicted != np.round(predicted)).any():
        ranked = np.sort(predicted, axis=0)  # Σ_{i<j} |x_i - x_j| from sorted values
        factor = 2 * np.arange(m) - m + 1
        return float((factor @ ranked.reshape(m, -1)).mean() * 2 / (m * (m - 1)))
    same = 0.0
    for column in predicted.reshape(m, -1).T:
        counts = np.unique(column, return_counts=True)[1]
        same += float((counts * (counts - 1)).sum()) / (m * (m - 1))
    return 1 - same / predicted.reshape(m, -1).shape[1]
