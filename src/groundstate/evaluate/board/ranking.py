"""Cross-validate candidates on the training rows, rank them, refit the best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.thread_policy import one_thread
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, NotApplicable, failure
from groundstate.evaluate.board.ranked_table import Entry, Standings
from groundstate.evaluate.compare.hypothesis_tests import tied_with_best
from groundstate.evaluate.fitting import fit_clone, random_names, seeds_of
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.metrics import metric as metric_named
from groundstate.evaluate.metrics.intervals import interval
from groundstate.evaluate.metrics.scoring import target_of
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, columns, n_rows, take, weights_of
from groundstate.evaluate.splits.folds import Split, folds
from groundstate.evaluate.splits.population import fit_rows
from groundstate.evaluate.stopwatch import Stopwatch
from groundstate.models.population.many import has_program, log_reason

_FOR_DEVELOPERS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)


@dataclass(frozen=True)
class Ranked(Displayed):
    """What :func:`rank` found.

    Attributes
    ----------
    board : Standings
    chosen : str
        Name of the best candidate.
    model : Any
        The best candidate, fitted to all rows.
    predictions : dict[str, Prediction]
        For each candidate its answers for every row from the fold that had not seen it; rows that
        no fold tests are zero.
    folds : list[Split]
    classes : (K,) array or None
        The labels behind the class numbers; None for regression.
    """

    board: Standings
    chosen: str
    model: Any
    predictions: dict[str, Prediction]
    folds: list[Split]
    classes: NDArray[Any] | None


def rank(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    task: Literal["classification", "regression"],
    metric: str | Metric | None = None,
    cv: int | Sequence[Split] = 5,
    key: Key | RandomState = 0,
    sample_weight: Any = None,
    n_jobs: int = 1,
    level: float = 0.95,
    alpha: float = 0.05,
    refit: bool = True,
) -> Ranked:
    """Rank candidates by cross-validation and refit the best one.

    Every candidate sees the same folds, and its random numbers depend on its name and the fold
    alone: the result is the same for one worker and many. What a fit takes from the rows
    (imputation, scaling) belongs into the candidate, as a pipeline, so that each fold learns it
    from its own training rows.

    Parameters
    ----------
    candidates
        Name to unfitted estimator with scikit-learn's contract. They are cloned, never changed.
    X, y
        The training rows; the test rows stay outside.
    task
        Classification uses stratified folds.
    metric
        Name of a metric; accuracy or r2 by default.
    cv
        Number of folds, lowered to the number of different rows when there are fewer; or the
        splits themselves. Scores are those of the rows that some split tests.
    key
        Seed or key.
    sample_weight
        A weight of 2 is the row twice.
    n_jobs
        Worker processes.
    level, alpha
        Confidence of the intervals; level of the tests for "cannot be told apart".
    refit
        Fit the best candidate to all rows.

    Returns
    -------
    Ranked

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2)); y = X[:, 0] > 0
    >>> candidates = {"dummy": DummyClassifier(), "logistic": LogisticRegression()}
    >>> result = rank(candidates, X, y, task="classification")
    >>> result.chosen, result.board["dummy"].tied_with_best
    ('logistic', False)
    """
    measure = metric_named(metric, task)
    if measure.task != task:
        raise DataError(f"{measure.name} is a metric for {measure.task}, the task is {task}")
    if not candidates:
        raise DataError("there are no candidates; name at least one model")
    key, weight = Key.of(key), weights_of(sample_weight, n_rows(X))
    classes, target = target_of(y, task, n_rows(X))
    parts = _folds(X, target, cv, key, weight, task) if isinstance(cv, int) else list(cv)
    entries, predictions = _entered(
        candidates, X, y, target, classes, weight, parts, key, n_jobs, measure, level
    )
    if not predictions:
        raise DataError(f"no candidate could be fitted; {entries[0].notes[0]}")
    board = standings(
        entries, predictions, measure, target, parts, weight, key=key, level=level, alpha=alpha
    )
    chosen = board.best.name
    model = None
    if refit:
        model = fit_clone(candidates[chosen], X, y, weight, key.fold("refit", chosen))
    return Ranked(board, chosen, model, predictions, parts, classes)


def entered(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    splits: list[Split],
    *,
    task: str,
    measure: Metric,
    weight: Floats,
    key: Key,
    n_jobs: int = 1,
    level: float = 0.95,
) -> tuple[list[Entry], dict[str, Prediction]]:
    """Candidates on the splits, without comparing them: those of several calls make one board."""
    classes, target = target_of(y, task, n_rows(X))
    return _entered(candidates, X, y, target, classes, weight, splits, key, n_jobs, measure, level)


def _entered(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    target: NDArray[Any],
    classes: NDArray[Any] | None,
    weight: Floats,
    parts: list[Split],
    key: Key,
    n_jobs: int,
    measure: Metric,
    level: float,
) -> tuple[list[Entry], dict[str, Prediction]]:
    entries: list[Entry] = []
    predictions: dict[str, Prediction] = {}
    for name, mine in _run(candidates, X, y, target, classes, weight, parts, key, n_jobs).items():
        whole = _whole(mine, parts, len(weight))
        if whole is not None and not measure.available(whole):
            note = f"{name} gives no {measure.needs}, which {measure.name} needs"
            entries.append(Entry(name, math.nan, math.nan, math.nan, notes=(note,)))
            continue
        entries.append(_entry(name, mine, whole, parts, target, weight, measure, level, key))
        if whole is not None:
            predictions[name] = whole
    return entries, predictions


def standings(
    entries: Sequence[Entry],
    predictions: Mapping[str, Prediction],
    measure: Metric,
    target: NDArray[Any],
    parts: list[Split],
    weight: Floats,
    *,
    key: Key,
    level: float = 0.95,
    alpha: float = 0.05,
) -> Standings:
    """Entries as a board, those marked that cannot be told apart from the best."""
    judged = np.flatnonzero(np.sum([part.test for part in parts], axis=0))
    board = Standings(tuple(entries), measure.name, measure.greater_is_better, level)
    tied = tied_with_best(
        measure,
        target[judged],
        {name: predicted.take(judged) for name, predicted in predictions.items()},
        alpha=alpha,
        sample_weight=weight[judged],
        key=key.fold("tied"),
    )
    for name in tied:
        board = board.with_entry(name, tied_with_best=True)
    return board


@dataclass(frozen=True)
class _Fold:
    prediction: Prediction | None
    seconds: float
    notes: tuple[str, ...]


def _fold(
    estimator: Any,
    X: Any,
    y: Any,
    classes: NDArray[Any] | None,
    weight: Floats,
    split: Split,
    key: Key,
) -> _Fold:
    """Fit on one side, answer for the other; a failure on these rows becomes a note."""
    train = split.train_rows
    with _alone() as caught, Stopwatch() as watch:
        try:
            model = fit_clone(estimator, take(X, train), np.asarray(y)[train], weight[train], key)
            seconds = watch.seconds
            prediction = Prediction.of(model, take(X, split.test_rows), classes)
        except Exception as error:  # `failure` raises what is no failure on these rows
            return _failed(estimator, error, watch)
    return _Fold(prediction, seconds, _notes(caught))


def _all_folds(
    estimator: Any,
    X: Any,
    y: Any,
    classes: NDArray[Any] | None,
    weight: Floats,
    parts: list[Split],
    keys: list[Key],
) -> list[_Fold]:
    """The fits of all folds as one program, or one after the other where that does not go."""
    rows = [part.train_rows for part in parts]
    seeds = [seeds_of(random_names(estimator, unset=True), key) for key in keys]
    with _alone() as caught, Stopwatch() as watch:
        try:
            models = fit_rows(estimator, X, y, rows, seeds, weight)
            seconds = watch.seconds / len(parts)
            predicted = [
                Prediction.of(model, take(X, part.test_rows), classes)
                for model, part in zip(models, parts, strict=True)
            ]
            return [_Fold(one, seconds, _notes(caught)) for one in predicted]
        except NotApplicable as reason:
            log_reason(estimator, reason)
        except Exception as error:  # `failure` raises what is no failure on these rows
            return [_failed(estimator, error, watch)] * len(parts)
    each = zip(parts, keys, strict=True)
    return [_fold(estimator, X, y, classes, weight, part, key) for part, key in each]


def _failed(estimator: Any, error: Exception, watch: Stopwatch) -> _Fold:
    note = f"failed: {failure(error, type(estimator).__name__)}"
    return _Fold(None, watch.seconds, (note,))


@contextmanager
def _alone() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings kept, one thread: sums in BLAS depend on their number, and workers would change it."""
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        yield caught


def _notes(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    found = (w for w in caught if not issubclass(w.category, _FOR_DEVELOPERS))
    return tuple(dict.fromkeys(" ".join(str(w.message).split())[:300] for w in found))


def _run(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    target: NDArray[Any],
    classes: NDArray[Any] | None,
    weight: Floats,
    parts: list[Split],
    key: Key,
    n_jobs: int,
) -> dict[str, list[_Fold]]:
    """The folds of every candidate; a candidate whose fits are one program is one job."""
    from joblib import Parallel, delayed

    labels = target if classes is None else y
    jobs: list[tuple[str, list[int]]] = []
    for name, estimator in candidates.items():
        every = list(range(len(parts)))
        jobs += [(name, every)] if has_program(estimator) else [(name, [i]) for i in every]
    tasks = (
        delayed(_all_folds)(
            candidates[name], X, labels, classes, weight, [parts[i] for i in some],
            [key.fold("fit", name, i) for i in some],
        )
        for name, some in jobs
    )  # fmt: skip
    found: dict[str, list[_Fold]] = {name: [] for name in candidates}
    for (name, _), folds_of_it in zip(jobs, Parallel(n_jobs=n_jobs)(tasks), strict=True):
        found[name] += folds_of_it
    return found


def _whole(mine: list[_Fold], parts: list[Split], n: int) -> Prediction | None:
    pieces = [
        (part.test_rows, fold.prediction)
        for part, fold in zip(parts, mine)
        if fold.prediction is not None
    ]
    return Prediction.assemble(pieces, n) if len(pieces) == len(parts) else None


def _entry(
    name: str,
    mine: list[_Fold],
    whole: Prediction | None,
    parts: list[Split],
    target: NDArray[Any],
    weight: Floats,
    measure: Metric,
    level: float,
    key: Key,
) -> Entry:
    notes = tuple(dict.fromkeys(note for fold in mine for note in fold.notes))
    seconds = sum(fold.seconds for fold in mine) / len(mine)
    if whole is None:
        return Entry(name, math.nan, math.nan, math.nan, (), seconds, notes=notes)
    found = scored(name, whole, parts, target, weight, measure, level, key, seconds=seconds)
    return replace(found, notes=notes)


def scored(
    name: str,
    whole: Prediction,
    parts: list[Split],
    target: NDArray[Any],
    weight: Floats,
    measure: Metric,
    level: float,
    key: Key,
    *,
    seconds: float,
) -> Entry:
    """The line of a candidate whose answers for every judged row are known."""
    child = key.fold("interval", name)
    judged = np.flatnonzero(np.sum([part.test for part in parts], axis=0))
    found = interval(
        measure, target[judged], whole.take(judged), sample_weight=weight[judged], level=level,
        key=child,
    )  # fmt: skip
    each = []
    for part in parts:
        rows = part.test_rows
        each.append(measure.score(target[rows], whole.take(rows), weight[rows]))
    return Entry(name, found.estimate, found.low, found.high, tuple(each), seconds)


def _folds(
    X: Any, target: NDArray[Any], cv: int, key: Key, weight: Floats, task: str
) -> list[Split]:
    distinct = WeightLine.of(*columns(X), target, weights=weight).n_distinct
    if distinct < 2:
        raise DataError(f"{distinct} different row cannot be cross-validated; bring more data")
    return folds(
        X,
        target,
        k=min(cv, distinct),
        key=key.fold("folds"),
        sample_weight=weight,
        stratify=task == "classification",
    )
