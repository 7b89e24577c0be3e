"""The recipe on one side of a split, its predictions for the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, take
from groundstate.evaluate.splits.folds import Split
from groundstate.study.candidates import baselines
from groundstate.study.design import INNER, Design, HeldRows, as_split, make_folds
from groundstate.study.question import Question
from groundstate.study.selection import Developed, Tuner, develop

RECIPE = "recipe"


@dataclass(frozen=True)
class Outer:
    """What one outer fold chose, its predictions, and the looks it took."""

    chosen: str
    predictions: dict[str, Prediction]
    looks: tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """Develops on some rows and predicts others."""

    question: Question
    candidates: dict[str, Any]
    measure: Metric
    tuner: Tuner | None
    key: Key
    seconds: float | None = None

    def prepared(
        self,
        rows: NDArray[np.intp],
        validation: NDArray[np.intp] | None,
        name: str,
        folds: int | None = None,
    ) -> tuple[Any, NDArray[Any], Floats, list[Split], Key]:
        """The rows, targets, weights and splits that compare candidates, and the key."""
        q = self.question
        X, y, weight = take(q.X, rows), q.y[rows], q.weight[rows]
        key = self.key.fold("develop", name)
        if validation is not None:
            rest = np.setdiff1d(np.arange(len(rows)), validation)
            return X, y, weight, [as_split(rest, validation, weight)], key
        splits = make_folds(
            take(q.features, rows),
            q.codes(y),
            folds or q.settings.folds,
            task=q.task,
            groups=None if q.groups is None else q.groups[rows],
            time=None if q.time is None else q.time[rows],
            weight=weight,
            key=key.fold("folds"),
        )
        return X, y, weight, splits, key

    def develop(
        self,
        rows: NDArray[np.intp],
        validation: NDArray[np.intp] | None,
        name: str,
        n_jobs: int,
        folds: int | None = None,
        spare: bool = True,
    ) -> Developed:
        """The chosen model from these rows; folds, or the validation rows among them, judge."""
        X, y, weight, splits, key = self.prepared(rows, validation, name, folds)
        return develop(
            self.candidates,
            X,
            y,
            task=self.question.task,
            measure=self.measure,
            splits=splits,
            weight=weight,
            key=key,
            n_jobs=n_jobs,
            level=self.question.settings.level,
            tuner=self.tuner,
            name=name,
            spare=spare,
            seconds=self.seconds,
        )

    def bases(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Fitted baselines."""
        q = self.question
        X, y, weight = take(q.X, rows), q.y[rows], q.weight[rows]
        return {
            name: fit_clone(base, X, y, weight, self.key.fold("base", name))
            for name, base in baselines(q.task).items()
        }

    def outer(
        self, i: int, per_repeat: int, train: NDArray[np.intp], test: NDArray[np.intp]
    ) -> Outer:
        """One outer fold: the whole recipe on one side, one look at the other."""
        import warnings

        from threadpoolctl import threadpool_limits

        with warnings.catch_warnings(), threadpool_limits(1), threads(1):
            warnings.simplefilter("ignore")
            made = self.develop(train, None, f"outer {i}", 1, INNER, spare=False)
            held = HeldRows(self.question.X, self.question.y, test)
            models = {**self.bases(train), RECIPE: made.model}
            again, fold = divmod(i, per_repeat)
            words = f"outer fold {fold + 1}" + (f", repeat {again + 1}" if again else "")
            rows, _ = held.look(words)
            predicted = {
                n: Prediction.of(m, rows, self.question.classes) for n, m in models.items()
            }
        return Outer(made.chosen, predicted, held.looks)


def judged_in_turn(
    side: Side, design: Design, n_jobs: int, left: Callable[[], float] | None = None
) -> tuple[list[Outer], Design]:
    """The outer folds, and the design as far as it was carried out.

    Parameters
    ----------
    left : seconds that are left; a repeat begins only when the last one would still fit in. None
        asks no clock.
    """
    from joblib import Parallel, delayed

    found: list[Outer] = []
    k, done = design.n_folds, 0
    chunk = design.repeats if left is None else 1  # without a clock all repeats are one batch
    while done < design.repeats:
        before = time.monotonic()
        part = list(enumerate(design.sides))[done * k : (done + chunk) * k]
        found += Parallel(n_jobs=n_jobs)(delayed(side.outer)(i, k, *pair) for i, pair in part)
        done += chunk
        if left is not None and left() < time.monotonic() - before:
            break
    return found, replace(design, sides=design.sides[: done * k], repeats=done)


def collected(outer: list[Outer], design: Design, n: int) -> list[dict[str, Prediction]]:
    """Answers for all rows, for each repeat."""
    k, found = design.n_folds, []
    for r in range(design.repeats):
        part, sides = outer[r * k : (r + 1) * k], design.sides[r * k : (r + 1) * k]
        found.append(
            {
                name: Prediction.assemble(
                    [(test, one.predictions[name]) for one, (_, test) in zip(part, sides)], n
                )
                for name in part[0].predictions
            }
        )
    return found
