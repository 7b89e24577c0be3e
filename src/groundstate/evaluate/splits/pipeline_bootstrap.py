r"""The bootstrap of the whole pipeline: fit on a resample, test on the rows it left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, NotApplicable
from groundstate.evaluate.fitting import fit_weighted, random_names, seeds_of, with_seed
from groundstate.evaluate.losses import (
    Loss,
    line_weights,
    loss_name,
    mean_loss,
    no_information,
    row_losses,
)
from groundstate.evaluate.rows import columns, n_rows, take, weights_of
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.population import fit_rows
from groundstate.models.population.many import has_program, log_reason

Estimate = Literal["oob", "632", "632+", "resplit"]


@dataclass(frozen=True)
class PipelineBootstrap(Displayed):
    """Losses of a recipe over resampled training sets.

    Attributes
    ----------
    scores : Scores
        One loss per resample: samples over training sets.
    estimate : float
        The loss by the method asked for.
    oob, train, no_information : float or None
        Mean loss on left-out rows, of the fit to all rows on itself, and of answers that have
        nothing to do with the targets.
    duplicates : float
        Share of tested rows that also trained; above 0 only for ``"resplit"``.
    leaky : bool
    """

    scores: Scores
    estimate: float
    method: str
    oob: float | None = None
    train: float | None = None
    no_information: float | None = None
    duplicates: float = 0.0
    leaky: bool = False
    replicates: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        if self.leaky:
            return f"LEAKY {self.scores} ({self.duplicates:.0%} of tested rows also trained)"
        return f"{self.scores}; {self.method} estimate {self.estimate:.4g}"


def pipeline_bootstrap(
    estimator: Any,
    X: Any,
    y: Any,
    n: int = 200,
    evaluate: Estimate = "oob",
    *,
    loss: Loss = None,
    groups: Any = None,
    sample_weight: Any = None,
    train_share: float = 0.8,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> PipelineBootstrap:
    r"""Resample the rows, fit, and test on rows that were not drawn (a share of about 1/e).

    Networks, also at the end of a pipeline, are trained on all resamples as one program, with the
    same result.

    ==========  ==================================================================================
    oob         mean loss on the rows left out
    632         .368 train + .632 oob
    632+        weight :math:`.632/(1-.368R)` on oob, :math:`R = (oob-train)/(\gamma-train)` in [0, 1]
    resplit     resample, then split: leaky, since :math:`1-e^{-\rho}` of the test rows train too
    ==========  ==================================================================================

    Parameters
    ----------
    estimator : unfitted recipe, preparation included
    n : resamples
    loss : per-row loss, 0-1 or squared by default
    groups : ``(N,)``; whole groups are drawn
    sample_weight : ``(N,)``; whole numbers are rows that many times, other weights are chances
    train_share : ρ of ``"resplit"``

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)); y = X[:, 0] + rng.normal(size=60)
    >>> found = pipeline_bootstrap(LinearRegression(), X, y, n=50)
    >>> found.leaky, 0.7 < found.estimate < 1.5
    (False, True)
    """
    from joblib import Parallel, delayed

    if evaluate not in ("oob", "632", "632+", "resplit"):
        raise ValueError(f"evaluate must be 'oob', '632', '632+' or 'resplit', got {evaluate!r}")
    target, key = np.asarray(y), Key.of(random_state)
    size = n_rows(X)
    kind = loss_name(estimator, loss)
    names = random_names(estimator)
    label = kind if isinstance(kind, str) else "loss"
    unit = None if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    weight = None if sample_weight is None else weights_of(sample_weight, size)
    line = _line(X, target, unit, line_weights(weight))
    jobs = [key.fold("resample", i) for i in range(n)]
    if evaluate == "resplit":
        found = Parallel(n_jobs=n_jobs)(
            delayed(_resplit)(estimator, names, X, target, line, train_share, kind, k) for k in jobs
        )
        scores = Scores([f[0] for f in found], ("train",), label, greater_is_better=False)
        share = float(np.mean([f[1] for f in found]))
        return PipelineBootstrap(
            scores, scores.mean, "resplit", duplicates=share, leaky=True, replicates=found
        )
    together = None
    if weight is None:
        together = _oob_together(estimator, names, X, target, line, unit, kind, jobs)
    found = together or Parallel(n_jobs=n_jobs)(
        delayed(_oob)(estimator, names, X, target, line, unit, kind, k, weight) for k in jobs
    )
    found = [f for f in found if f is not None]
    if not found:
        raise DataError("no resample left rows out with every class trained; bring more rows")
    total, times = np.zeros(size), np.zeros(size)
    for rows, losses in found:
        total[rows] += losses
        times[rows] += 1
    seen = times > 0

    def own(rows: Any) -> Any:
        return None if weight is None else weight[rows]

    oob = float(mean_loss(total[seen] / times[seen], own(seen)))
    values = [float(mean_loss(losses, own(rows))) for rows, losses in found]
    scores = Scores(values, ("train",), label, greater_is_better=False)
    if evaluate == "oob":
        return PipelineBootstrap(scores, oob, "oob", oob)
    model = fit_weighted(with_seed(estimator, names, key.fold("all")), X, target, weight)
    train = float(mean_loss(row_losses(model, X, target, kind), weight))
    if evaluate == "632":
        return PipelineBootstrap(scores, 0.368 * train + 0.632 * oob, "632", oob, train)
    gamma = no_information(target, model.predict(X), kind)
    bounded = min(oob, gamma)
    gap = gamma - train
    rate = min(1.0, max(0.0, (bounded - train) / gap)) if gap > 0 else 0.0
    share = 0.632 / (1 - 0.368 * rate)
    value = (1 - share) * train + share * bounded
    return PipelineBootstrap(scores, value, "632+", oob, train, gamma)


def _line(X: Any, y: NDArray[Any], unit: Any, weight: Any) -> WeightLine:
    """Rows as long as their weight, or groups, to draw from."""
    if unit is None:
        return WeightLine.of(*columns(X), y, weights=weight)
    return WeightLine.of(np.unique(unit))


def _hits(line: WeightLine, unit: Any, key: Key) -> NDArray[np.int64]:
    hits = line.bootstrap(key)
    return hits if unit is None else hits[unit]


def _drawn(
    line: WeightLine, unit: Any, y: NDArray[Any], loss: Any, key: Key
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Rows of a resample and rows it left out; None where nothing can be learned or tested."""
    hits = _hits(line, unit, key)
    drawn, left = np.repeat(np.arange(len(hits)), hits), np.flatnonzero(hits == 0)
    if not len(left) or (loss == "zero_one" and len(np.unique(y[drawn])) < 2):
        return None
    return drawn, left


def _oob_together(
    estimator: Any, names: Any, X: Any, y: Any, line: Any, unit: Any, loss: Any, jobs: list[Key]
) -> list[Any] | None:
    """`_oob` of all resamples from fits as one program; None where there is none."""
    if not has_program(estimator):
        return None
    chosen = [(k, rows) for k in jobs if (rows := _drawn(line, unit, y, loss, k)) is not None]
    settings = [seeds_of(names, k.fold("fit")) for k, _ in chosen]
    try:
        models = fit_rows(estimator, X, y, [drawn for _, (drawn, _) in chosen], settings)
    except NotApplicable as reason:
        log_reason(estimator, reason)
        return None
    return [
        (left, row_losses(model, take(X, left), y[left], loss))
        for model, (_, (_, left)) in zip(models, chosen, strict=True)
    ]


def _oob(
    estimator: Any, names: Any, X: Any, y: Any, line: WeightLine, unit: Any, loss: Any, key: Key,
    weight: Any = None,
) -> tuple[NDArray[np.intp], Any] | None:  # fmt: skip
    chosen = _drawn(line, unit, y, loss, key)
    if chosen is None:
        return None
    drawn, left = chosen
    made, times = with_seed(estimator, names, key.fold("fit")), None
    if weight is not None:  # heavy rows come often: once, with how often as their weight
        left = left[weight[left] > 0]
        if not len(left):
            return None
        drawn, counts = np.unique(drawn, return_counts=True)
        times = counts.astype(np.float64)
        # groups are drawn as one: their rows keep their weights
        times = times if unit is None else times * weight[drawn]
    model = fit_weighted(made, take(X, drawn), y[drawn], times)
    return left, row_losses(model, take(X, left), y[left], loss)


def _resplit(
    estimator: Any, names: Any, X: Any, y: Any, line: WeightLine, share: float, loss: Any, key: Key
) -> tuple[float, float]:
    size = line.n_rows
    drawn = line.draw(key, size)
    cut = round(share * size)
    train, test = drawn[:cut], drawn[cut:]
    model = with_seed(estimator, names, key.fold("fit")).fit(take(X, train), y[train])
    value = float(row_losses(model, take(X, test), y[test], loss).mean())
    return value, float(np.isin(test, train).mean())
