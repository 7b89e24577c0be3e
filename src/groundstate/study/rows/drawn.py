"""The study of pictures with masks or boxes: how well what is drawn agrees with what was drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.rows import Rows
from groundstate.data.images.masks import IGNORED
from groundstate.errors import DataError
from groundstate.evaluate import Interval, Standings
from groundstate.evaluate.board.ranked_table import Entry
from groundstate.evaluate.board.ranking import Ranked
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.metrics.drawn import Judged, JudgedBoxes, JudgedMasks, drawn_intervals
from groundstate.evaluate.splits.folds import folds as fold_splits
from groundstate.evaluate.splits.folds import train_test
from groundstate.math.stats.bootstrap import interval_of
from groundstate.study.candidates import DUMMY
from groundstate.study.rows.source import RowSource, part_of
from groundstate.study.selection import Developed

COMPARED = 0.25  # of the rows to learn from, on which candidates are compared
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drawing(ABC):
    """One such task: what a model answers, what the constant answer is, how both are judged.

    Attributes
    ----------
    metrics : names of the scores, the usual one first
    """

    source: RowSource
    metrics: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: RowSource) -> Drawing:
        return Masks(source) if source.task == "segmentation" else Boxes(source)

    @abstractmethod
    def targets(self, index: NDArray[np.intp]) -> Any:
        """Targets of some pictures as models learn from them."""

    @abstractmethod
    def constant(self, learned: NDArray[np.intp], index: NDArray[np.intp]) -> Any:
        """What answers without a model, for some pictures."""

    @abstractmethod
    def judged(self, index: NDArray[np.intp], predictions: Any) -> Judged:
        """Answers for some pictures beside the truth."""


@dataclass(frozen=True, eq=False)
class Masks(Drawing):
    """A label for every pixel; the constant answer is the commonest one."""

    metrics: tuple[str, ...] = ("iou", "dice", "pixel_accuracy")

    @property
    def classes(self) -> NDArray[Any]:
        return np.setdiff1d(np.unique(self.source.y), [IGNORED])

    def targets(self, index: NDArray[np.intp]) -> Any:
        return self.source.y[index]

    def constant(self, learned: NDArray[np.intp], index: NDArray[np.intp]) -> Any:
        own = self.source.y[learned]
        labels, times = np.unique(own[own != IGNORED], return_counts=True)
        return np.full((len(index), *own.shape[1:]), labels[times.argmax()])

    def judged(self, index: NDArray[np.intp], predictions: Any) -> Judged:
        truth, classes = self.source.y[index], self.classes
        codes = np.where(truth == IGNORED, IGNORED, np.searchsorted(classes, truth))
        return JudgedMasks.of(
            codes, np.searchsorted(classes, np.asarray(predictions)), len(classes), IGNORED
        )


@dataclass(frozen=True, eq=False)
class Boxes(Drawing):
    """Boxes with labels; the constant answer is that there is nothing."""

    metrics: tuple[str, ...] = ("ap50", "ap", "ar")

    def targets(self, index: NDArray[np.intp]) -> Any:
        return [self.source.y[i] for i in index]

    def constant(self, learned: NDArray[np.intp], index: NDArray[np.intp]) -> Any:
        kind = np.asarray([label for t in self.source.y for label in t.labels][:1] or ["none"])
        empty = {"boxes": np.zeros((0, 4)), "labels": kind[:0], "scores": np.zeros(0)}
        return [empty] * len(index)

    def judged(self, index: NDArray[np.intp], predictions: Any) -> Judged:
        empty = self.constant(index, index[:1])[0]["labels"]
        truths = [
            {"boxes": t.boxes, "labels": np.array(t.labels) if len(t) else empty}
            for t in self.targets(index)
        ]
        return JudgedBoxes.of(truths, predictions)


@dataclass(frozen=True, eq=False)
class Look:
    """What the one look at pictures never seen gave.

    Attributes
    ----------
    predictions : answers of the chosen model
    judged : the same beside the truth
    scores, baseline : intervals by metric, of the model and of the constant answer
    skill : share of the constant answer's loss 1 - score that the model saves
    comparison : difference of the two
    """

    predictions: Any
    judged: Judged
    scores: dict[str, Interval]
    baseline: dict[str, Interval]
    skill: Interval
    comparison: dict[str, Any]


def develop_drawn(
    task: Drawing, candidates: dict[str, Any], learned: NDArray[np.intp], metric: str,
    folds: int | None, level: float, key: Key,
) -> Developed:  # fmt: skip
    """Compare candidates on a part of the pictures, or on folds of them, and fit the best to all.

    The constant answer stands on the board and is never chosen: it would be no model.
    """
    rows = part_of(task.source.rows, learned)
    child = key.fold("folds")
    splits = (
        [train_test(rows, test=COMPARED, key=child)]
        if folds is None
        else fold_splits(rows, k=folds, key=child)
    )
    entries: list[Entry] = []
    draws: dict[str, dict[str, Floats]] = {}
    for name, candidate in candidates.items():
        parts = []
        for i, split in enumerate(splits):
            train, test = learned[split.train_rows], learned[split.test_rows]
            predictions = _answers(task, candidate, train, test, key.fold("fit", name, i))
            parts.append(task.judged(test, predictions))
        found, draws[name] = drawn_intervals(type(parts[0]).joined(parts), level, key.fold("cv"))
        each = tuple(float(p.scores(np.ones((1, len(p))))[metric][0]) for p in parts)
        one = found[metric]
        entries.append(Entry(name, one.estimate, one.low, one.high, each))
    board = Standings(tuple(entries), metric, True, level)
    chosen = next(entry.name for entry in board if entry.name != DUMMY)
    for name, values in draws.items():
        gap = draws[chosen][metric] - values[metric]
        if name == chosen or np.nanmean(gap <= 0) > (1 - level) / 2:
            board = board.with_entry(name, tied_with_best=True)
    weight, child = np.ones(len(learned)), key.fold("refit", chosen)
    model = fit_clone(candidates[chosen], rows, task.targets(learned), weight, child)
    ranked = Ranked(board, chosen, None, {}, splits, None)
    return Developed(ranked, chosen, candidates[chosen], {}, None, "not asked for", model, None)


def _answers(
    task: Drawing, candidate: Any, train: NDArray[np.intp], test: NDArray[np.intp], key: Key
) -> Any:
    if candidate is None:
        return task.constant(train, test)
    rows = task.source.rows
    model = fit_clone(
        candidate, part_of(rows, train), task.targets(train), np.ones(len(train)), key
    )
    return model.predict(part_of(rows, test))


def look_at(
    task: Drawing, developed: Developed, learned: NDArray[np.intp], judged: NDArray[np.intp],
    metric: str, level: float, key: Key,
) -> Look:  # fmt: skip
    """Judge the chosen model and the constant answer on pictures that no fit has seen."""
    rows: Rows = part_of(task.source.rows, judged)
    constant = task.constant(learned, judged)
    predictions = developed.model.predict(rows)
    own, base = task.judged(judged, predictions), task.judged(judged, constant)
    child = key.fold("scores")
    scores, draws = drawn_intervals(own, level, child)
    simple, others = drawn_intervals(base, level, child)
    left = np.maximum(1 - others[metric], 1e-12)
    skill = interval_of(
        1 - (1 - scores[metric].estimate) / max(1 - simple[metric].estimate, 1e-12),
        1 - (1 - draws[metric]) / left, level, "percentile",
    )  # fmt: skip
    gap = draws[metric] - others[metric]
    gap = gap[~np.isnan(gap)]
    test = []
    if len(gap):
        side = min(int((gap <= 0).sum()), int((gap >= 0).sum()))
        p = min(1.0, 2 * (side + 1) / (len(gap) + 1))
        ends = interval_of(
            scores[metric].estimate - simple[metric].estimate, gap, level, "percentile"
        )
        test.append({"against": DUMMY, "difference": ends.estimate, "lo": ends.low, "hi": ends.high,
                     "p": p, "p_holm": p, "method": "paired bootstrap"})  # fmt: skip
    tied = list(developed.ranking.board.tied)
    comparison = {"metric": metric, "chosen": developed.chosen, "tied": tied, "test": test}
    return Look(predictions, own, scores, simple, skill, comparison)


def with_look(developed: Developed, look: Look, metric: str) -> Developed:
    """The board with the scores of the look."""
    board = developed.ranking.board
    for name, found in ((DUMMY, look.baseline), (developed.chosen, look.scores)):
        one = found[metric]
        board = board.with_entry(
            name, test_score=one.estimate, test_low=one.low, test_high=one.high
        )
    return replace(developed, ranking=replace(developed.ranking, board=board))


def check_metric(task: Drawing, name: str | None) -> str:
    """The metric asked for, or the usual one."""
    if name is None:
        return task.metrics[0]
    if name not in task.metrics:
        raise DataError(
            f"{name!r} is no metric of {task.source.task}; there are {', '.join(task.metrics)}"
        )
    return name


def set_aside(source: RowSource, test: float, key: Key) -> NDArray[np.intp]:
    """Pictures that judge: those that the data set aside, or a share."""
    if source.judges is not None:
        return source.judges
    return train_test(source.rows, test=test, key=key.fold("test")).test_rows
