"""How far the score moves with the seed and with the training rows: what only refits can tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.evaluate.curves.diagnose import diagnose
from groundstate.evaluate.curves.learning_curve import learning_curve
from groundstate.evaluate.fitting import random_names
from groundstate.evaluate.intervals.retrain import retrain
from groundstate.evaluate.intervals.variation import advice_of, variation_report
from groundstate.evaluate.losses import Loss, error_of_mean
from groundstate.evaluate.rows import Floats, take
from groundstate.evaluate.splits.pipeline_bootstrap import pipeline_bootstrap
from groundstate.study.race import names
from groundstate.study.race.clock import Clock

# shares of the time that is left, which one part may take
_SEEDS, _RESAMPLES, _CURVE, _DIAGNOSIS = 0.3, 0.5, 0.5, 0.5
_REMEDIES = 40  # fits that a diagnosis with remedies takes, about
_USUAL_SEEDS, _USUAL_RESAMPLES, _CROSSED = 5, 100, 10
_CURVE_REPEATS = 5
SOURCES = ("test", "seed", "train", "interaction")
_ROWS_FOR_REMEDIES = 1_000
_ROWS_FOR_ALL = 2_000  # larger tables get fewer resamples, and none beyond _ROWS_FOR_ANY
_ROWS_FOR_ANY = 20_000


def usual_numbers(n: int, seeds: int | None, resamples: int | None) -> tuple[int, int]:
    """Seeds and resamples asked for, or what a table of n rows gets unasked.

    >>> usual_numbers(150, None, None), usual_numbers(10_000, None, None)
    ((5, 100), (5, 20))
    >>> usual_numbers(10**6, 3, None)
    (3, 0)
    """
    few = _USUAL_SEEDS if n <= _ROWS_FOR_ANY else 0
    many = round(_USUAL_RESAMPLES * min(1.0, _ROWS_FOR_ALL / n)) if n <= _ROWS_FOR_ANY else 0
    return few if seeds is None else seeds, many if resamples is None else resamples


def variation(
    recipe: Any,
    X: Any,
    y: NDArray[Any],
    split: tuple[NDArray[np.intp], NDArray[np.intp]],
    test_losses: Floats,
    test_weight: Floats | None = None,
    *,
    seeds: int,
    resamples: int,
    groups: Any = None,
    key: Key,
    clock: Clock,
    fit_seconds: float,
    skip: Callable[[str], None],
    loss: Loss = None,
    weight: Floats | None = None,
) -> dict[str, Any]:
    """Standard deviations of the mean loss by source, with the values behind them.

    Parameters
    ----------
    split : rows to learn from and rows to judge by
    test_losses : ``(n,)`` losses of the held-out rows
    seeds, resamples : fits with other seeds, and fits to resampled training rows
    fit_seconds : time of one fit, for the share of the budget
    skip : called with what was left out
    weight, test_weight : of all rows and of the judged ones; None when all are one
    """
    from sklearn.base import is_classifier

    found: dict[str, Any] = {
        "loss": "share of wrong answers" if is_classifier(recipe) else "squared error",
        "test": float(error_of_mean(test_losses, test_weight)),
        "seed": None,
        "train": None,
    }
    random = bool(random_names(recipe))
    short = seeds > 0 and not clock.begins(names.SEEDS, seeds * fit_seconds, _SEEDS)
    if short:
        seeds = 0
    if seeds >= 2 or (seeds and not random):
        again = retrain(
            recipe, X, y, split, seeds, loss=loss, sample_weight=weight,
            random_state=key.fold("seeds"),
        )  # fmt: skip
        found["seed"] = again.scores.std
        found["seeds"] = {
            "values": again.scores.values,
            "disagreement": again.disagreement,
            "deterministic": again.deterministic,
        }
    else:
        skip(f"fits with other seeds ({clock.remedy(names.SEEDS) if short else '--seeds'})")
    train = split[0]
    part, labels = take(X, train), y[train]
    if resamples < 2:
        skip("fits to resampled training rows (--bootstrap)")
        return found
    if not clock.begins(names.RESAMPLES, resamples * fit_seconds, _RESAMPLES):
        skip(f"fits to resampled training rows ({clock.remedy(names.RESAMPLES)})")
        return found
    oob = pipeline_bootstrap(
        recipe, part, labels, resamples, loss=loss, groups=None if groups is None else groups[train],
        sample_weight=None if weight is None else weight[train], random_state=key.fold("oob"),
    )  # fmt: skip
    found["oob"] = {"estimate": oob.estimate, "values": oob.scores.values}
    found["train"] = oob.scores.std
    several = max(seeds, 1) if random else 1
    crossed = min(_CROSSED, resamples)
    parted = clock.begins(names.SOURCES, crossed * several * fit_seconds, _RESAMPLES)
    if parted:
        report = variation_report(
            recipe, X, y, several, crossed, split=split, loss=loss, sample_weight=weight,
            random_state=key.fold("sources"),
        )  # fmt: skip
        found["train"] = report.train
        if random and several >= 2:
            found["seed"], found["interaction"] = report.seed, report.interaction
    for name in ("seed", "train"):  # the last bits of equal numbers are no spread
        if found[name] is not None and found[name] <= 1e-6 * found["test"]:
            found[name] = 0.0
    if parted:
        found["advice"] = advice_of({name: found.get(name) or 0.0 for name in SOURCES})
    return found


def learning(
    recipe: Any,
    X: Any,
    y: NDArray[Any],
    *,
    groups: Any,
    level: float,
    key: Key,
    clock: Clock,
    fit_seconds: float,
    skip: Callable[[str], None],
    weight: Floats | None = None,
) -> dict[str, Any] | None:
    """The learning curve of a recipe with its forecast, or None where it does not fit in."""
    if len(y) > _ROWS_FOR_ANY:
        skip(f"the learning curve, for more than {_ROWS_FOR_ANY:,} rows")
        return None
    if not clock.begins(names.LEARNING, _CURVE_REPEATS * 2.3 * fit_seconds, _CURVE):
        skip(f"the learning curve ({clock.remedy(names.LEARNING)})")
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the audit has reported rare classes already
            found = learning_curve(
                recipe, X, y, repeats=_CURVE_REPEATS, groups=groups, sample_weight=weight, level=level,
                random_state=key,
            )  # fmt: skip
    except (DataError, ValueError) as error:  # a small part may lack what a model needs
        skip(f"the learning curve: {' '.join(str(error).split())[:200]}")
        return None
    return found.to_dict()


def diagnosed(
    recipe: Any,
    X: Any,
    y: NDArray[Any],
    *,
    groups: Any,
    level: float,
    key: Key,
    clock: Clock,
    fit_seconds: float,
    skip: Callable[[str], None],
    weight: Floats | None = None,
) -> dict[str, Any] | None:
    """Whether the recipe fits too little or too much, or None where it does not fit in."""
    if len(y) > _ROWS_FOR_ANY:
        skip(f"the diagnosis, for more than {_ROWS_FOR_ANY:,} rows")
        return None
    if not clock.begins(names.DIAGNOSIS, 5 * fit_seconds, _DIAGNOSIS):
        skip(f"the diagnosis ({clock.remedy(names.DIAGNOSIS)})")
        return None
    small = len(y) <= _ROWS_FOR_REMEDIES and clock.begins(
        names.REMEDIES, _REMEDIES * fit_seconds, _DIAGNOSIS
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the audit has reported rare classes already
            found = diagnose(
                recipe, X, y, groups=groups, sample_weight=weight, level=level,
                try_remedies=small, random_state=key,
            )  # fmt: skip
    except (DataError, ValueError) as error:  # a fold may lack what a model needs
        skip(f"the diagnosis: {' '.join(str(error).split())[:200]}")
        return None
    return found.to_dict()
