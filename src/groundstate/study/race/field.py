r"""One race: every configuration on the same folds, and the choice judged without its own rows.

All configurations (candidates as they come, tuned settings, an average of models) are fitted on the
same K folds, so that there is a loss :math:`\ell_{ic}` of each judged row i and configuration c. The
rule that chooses, :math:`c(S)` from the rows S, is judged by leaving out one fold at a time: rows of
fold k are answered by :math:`c(\text{all folds but } k)`. That takes K fits of each configuration
where nested cross-validation takes K of each in each of K folds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.board.ranked_table import Entry
from groundstate.evaluate.board.ranking import Ranked, entered, scored, standings
from groundstate.evaluate.losses import error_of_mean, mean_loss
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, take
from groundstate.evaluate.splits.folds import Split
from groundstate.models.tables.ensemble import TableEnsemble
from groundstate.study.design import as_split, make_folds
from groundstate.study.question import Question
from groundstate.study.race.blend import ENSEMBLE, Blend

Rows = NDArray[np.intp]
_PARTS = 5  # of validation rows, each judged by what the others chose


@dataclass(frozen=True)
class Entrant:
    """A configuration in the race.

    Attributes
    ----------
    recipe : unfitted model
    candidate : name of the candidate it is a version of
    params : settings that differ from the usual ones
    earns : it is taken only when its gain over the best usual candidate is sure enough
    """

    recipe: Any
    candidate: str
    params: dict[str, Any] = field(default_factory=dict)
    earns: bool = False


class Race:
    """Configurations on the folds of some rows.

    Parameters
    ----------
    question : the table
    rows : positions of the rows that take part
    splits : fits learn from one side and answer for the other; positions among ``rows``
    parts : judged rows in parts, each left out in turn when the choice is judged
    measure : what configurations are chosen by
    key : of the random numbers
    """

    def __init__(
        self,
        question: Question,
        rows: Rows,
        splits: list[Split],
        parts: list[Rows],
        measure: Metric,
        key: Key,
    ) -> None:
        self.question, self.rows, self.splits, self.parts = question, rows, splits, parts
        self.measure, self.key = measure, key
        self.X, self.y = take(question.X, rows), question.y[rows]
        self.weight = question.weight[rows]
        self.classes = None if question.classes is None else np.unique(self.y)
        codes = self.y if self.classes is None else np.searchsorted(self.classes, self.y)
        self.truth = codes.astype(np.float64) if self.classes is None else codes
        self.groups = None if question.groups is None else question.groups[rows]
        self.judged = np.sort(np.concatenate(parts))
        self.entrants: dict[str, Entrant] = {}
        self.entries: dict[str, Entry] = {}
        self.predictions: dict[str, Prediction] = {}
        self.losses: dict[str, Floats] = {}
        self._blend: Blend | None = None

    def run(self, entrants: Mapping[str, Entrant], n_jobs: int = 1) -> None:
        """Fit some more configurations on every fold."""
        entries, predictions = entered(
            {name: one.recipe for name, one in entrants.items()}, self.X, self.y, self.splits,
            task=self.question.task, measure=self.measure, weight=self.weight, key=self.key,
            n_jobs=n_jobs, level=self.question.settings.level,
        )  # fmt: skip
        for entry in entries:
            name = entry.name
            self.entrants[name], self.entries[name] = entrants[name], entry
            if name in predictions:
                self.predictions[name] = predictions[name]
                self.losses[name] = self._losses(predictions[name])

    def name_twins(self, twins: Mapping[str, str]) -> None:
        """Configurations under further names, without fitting them again."""
        for who, name in twins.items():
            if name in self.losses:
                self.entries[who] = replace(self.entries[name], name=who)
                self.entrants[who] = replace(self.entrants[name], candidate=who)
                self.predictions[who], self.losses[who] = self.predictions[name], self.losses[name]

    def drop(self, name: str) -> None:
        """Take a configuration out of the race."""
        for kept in (self.entrants, self.entries, self.predictions, self.losses):
            kept.pop(name, None)

    def blend(self, names: Sequence[str]) -> dict[str, float]:
        """Enter the weighted mean of some configurations; its members with their weights.

        Without two members that are better together than one there is no such entrant.
        """
        self.drop(ENSEMBLE)
        self._blend = found = Blend(self, [n for n in names if n in self.losses])
        members = found.members() if len(found.names) > 1 else {}
        if len(members) < 2:
            return {}
        own = [(name, self.entrants[name].recipe) for name in members]
        recipe = TableEnsemble(own, weights=list(members.values()))
        self.entrants[ENSEMBLE] = Entrant(recipe, ENSEMBLE, earns=True)
        self.predictions[ENSEMBLE] = whole = found.answers(frozenset(range(len(self.parts))))
        self.losses[ENSEMBLE] = self._losses(whole)
        self.entries[ENSEMBLE] = scored(
            ENSEMBLE, whole, self.splits, self.truth, self.weight, self.measure,
            self.question.settings.level, self.key,
            seconds=sum(self.entries[name].fit_seconds for name in members),
        )  # fmt: skip
        return members

    def _within(self, name: str, rows: Rows) -> tuple[Floats, Prediction]:
        """Losses and answers of a configuration where only these rows are known.

        Weights of an ensemble come from the parts among them, never from those it answers for.
        """
        if name == ENSEMBLE and self._blend is not None and len(rows) < len(self.judged):
            known = np.zeros(len(self.rows), bool)
            known[rows] = True
            inside = frozenset(i for i, part in enumerate(self.parts) if known[part].all())
            blended = self._blend.answers(inside)
            return self._losses(blended), blended
        return self.losses[name], self.predictions[name]

    def ranked(self, chosen: str, names: Sequence[str]) -> Ranked:
        """Some of the configurations as a board, the chosen one under its candidate's name."""
        shown = {self.entrants[name].candidate: name for name in names}
        shown[self.entrants[chosen].candidate] = chosen
        predictions = {
            who: self.predictions[name] for who, name in shown.items() if name in self.predictions
        }
        measure, judged = self.question.measure, self.judged
        entries = []
        for who, name in shown.items():
            entry = replace(self.entries[name], name=who)
            if name in self.predictions and measure is not self.measure:
                own = self.predictions[name].take(judged)
                value = float(measure.score(self.truth[judged], own, self.weight[judged]))
                entry = replace(entry, reported=value)
            entries.append(entry)
        board = standings(
            entries, predictions, self.measure, self.truth, self.splits, self.weight,
            key=self.key, level=self.question.settings.level,
        )  # fmt: skip
        who = self.entrants[chosen].candidate
        return Ranked(board, who, None, predictions, self.splits, self.classes)

    def _losses(self, predicted: Prediction) -> Floats:
        """Loss of each row; squared errors for metrics that are no means of rows."""
        if self.measure.is_mean:
            sign = -1.0 if self.measure.greater_is_better else 1.0
            return np.asarray(sign * self.measure.per_row(self.truth, predicted), np.float64)
        if predicted.classes is None:
            return np.square(self.truth - predicted.values)
        return np.asarray(self.truth != predicted.values, np.float64)

    @property
    def by_rows(self) -> bool:
        """Whether the mean loss of rows ranks as the metric does."""
        return self.measure.is_mean or self.measure.name in ("r2", "rmse")

    def risk(self, name: str, rows: Rows, known: Rows | None = None) -> float:
        """What the choice minimises: mean loss, or the metric turned round where it is no mean.

        Parameters
        ----------
        known : rows that an ensemble may weigh its members by; those that are judged by default
        """
        losses, answers = self._within(name, rows if known is None else known)
        if self.by_rows:
            return float(mean_loss(losses[rows], self.weight[rows]))
        predicted = answers.take(rows)
        score = float(self.measure.score(self.truth[rows], predicted, self.weight[rows]))
        return -score if self.measure.greater_is_better else score

    def gain(self, name: str, usual: str, rows: Rows) -> tuple[float, float]:
        """By how much a configuration is better than another on the same rows, and its error."""
        if not self.by_rows or self.groups is not None:
            return self._gain_by_parts(name, usual, rows)
        gap = self._within(usual, rows)[0][rows] - self._within(name, rows)[0][rows]
        weight = self.weight[rows]
        return float(mean_loss(gap, weight)), float(error_of_mean(gap, weight))

    def _gain_by_parts(self, name: str, usual: str, rows: Rows) -> tuple[float, float]:
        inside = np.isin(self.judged, rows)
        kept = set(self.judged[inside].tolist())
        parts = [p for p in self.parts if set(p.tolist()) <= kept]
        each = np.array([self.risk(usual, p, rows) - self.risk(name, p, rows) for p in parts])
        error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.inf
        return self.risk(usual, rows) - self.risk(name, rows), error

    def choose(self, rows: Rows | None = None, among: set[str] | None = None) -> str:
        """The configuration to take, from the judged rows alone that are given.

        The best candidate as it comes, unless the best of the others (tuned settings, an average)
        gains more over it than one standard error of that gain. The best of many settings looks better
        than it is, and an average, whose weights its rows had no part in, does not: it is compared with
        what settings lose that are chosen in the same way.
        """
        rows = self.judged if rows is None else rows
        names = [n for n in self.losses if among is None or n in among]
        usual = [n for n in names if not self.entrants[n].earns]
        best = min(usual, key=lambda n: self.risk(n, rows))
        others = [n for n in names if self.entrants[n].earns]
        if not others:
            return best
        rival = min(others, key=lambda n: self.risk(n, rows))
        if ENSEMBLE in others and self._best_apart(others, rows) > self.risk(ENSEMBLE, rows):
            rival = ENSEMBLE
        gain, error = self.gain(rival, best, rows)
        return rival if gain > error else best

    def _best_apart(self, names: Sequence[str], rows: Rows) -> float:
        """Mean loss where rows of a part are answered by the setting that is best on the other parts."""
        known = np.zeros(len(self.rows), bool)
        known[rows] = True
        inside = [part for part in self.parts if known[part].all()]
        single = [name for name in names if name != ENSEMBLE]
        if not self.by_rows or not single or len(inside) < 2:
            return -np.inf
        lost = [[self.losses[n][p] @ self.weight[p] for p in inside] for n in single]
        sums = np.array(lost)  # (C, K)
        best = (sums.sum(1, keepdims=True) - sums).argmin(0)
        total = sum(self.weight[p].sum() for p in inside)
        return float(sums[best, np.arange(len(inside))].sum() / total)

    def answers(self, eligible: set[str]) -> tuple[Prediction, Counter[str]]:
        """Answers of the rule for every judged row, and how often it chose what.

        Rows of a part are answered by what was best on the other parts.
        """
        pieces: list[tuple[Rows, Prediction]] = []
        chosen: Counter[str] = Counter()
        for part in self.parts:
            others = np.setdiff1d(self.judged, part)
            name = self.choose(others if len(others) else self.judged, eligible)
            chosen[self.entrants[name].candidate] += 1
            pieces.append((part, self.predictions[name].take(part)))
        return Prediction.assemble(pieces, len(self.rows)), chosen


def race_of(
    question: Question,
    rows: Rows,
    validation: Rows | None,
    key: Key,
    measure: Metric,
    sides: list[tuple[Rows, Rows]] | None = None,
) -> Race:
    """The race of some rows: on given sides, on their validation rows, or on folds.

    Parameters
    ----------
    rows : positions in the table
    validation : positions among ``rows`` that compare configurations; None for folds
    sides : rows to learn from and to judge, for each fold
    """
    weight = question.weight[rows]
    if sides is not None:
        splits = [as_split(a, b, weight) for a, b in sides]
        return Race(question, rows, splits, [b for _, b in sides], measure, key)
    groups = None if question.groups is None else question.groups[rows]
    if validation is not None:
        rest = np.setdiff1d(np.arange(len(rows)), validation)
        own = rows[validation]
        parts = make_folds(
            take(question.features, own), question.codes(question.y[own]), _PARTS,
            task=question.task, groups=None if groups is None else groups[validation], time=None,
            weight=weight[validation], key=key.fold("parts"),
        )  # fmt: skip
        splits = [as_split(rest, validation, weight)]
        held = [validation[part.test_rows] for part in parts]
        return Race(question, rows, splits, held, measure, key)
    splits = make_folds(
        take(question.features, rows), question.codes(question.y[rows]), question.settings.folds,
        task=question.task, groups=groups, weight=weight, key=key.fold("folds"),
        time=None if question.time is None else question.time[rows],
    )  # fmt: skip
    return Race(question, rows, splits, [part.test_rows for part in splits], measure, key)
