r"""A leaderboard that keeps the labels, takes predictions, and does not wear the test set out.

``"full"`` answers every submission with its score, so that the best of many is too good.
``"ladder"`` answers with the best score so far and moves only for a gain that chance does not
explain (Blum and Hardt); ``"split"`` answers on public rows and ranks on private ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.audit.ledger import Ledger, rows_id
from groundstate.evaluate.board.page import (
    REPORTED,
    REVEALED,
    answers_table,
    page,
    paragraph,
    ranked_table,
)
from groundstate.evaluate.compare.many_models import Ranking, rank_draws
from groundstate.evaluate.metrics import metric as metric_named
from groundstate.evaluate.metrics.intervals import interval as score_interval
from groundstate.evaluate.metrics.resampled import Resampled
from groundstate.evaluate.predictions import Prediction
from groundstate.math.stats.interval import Interval, checked_level

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
MECHANISMS = ("full", "ladder", "split")
_RESAMPLES = 2000


@dataclass(frozen=True)
class Place(Displayed):
    """One line of the board.

    Attributes
    ----------
    name : str
    score : Interval
        At a level that makes the intervals of all places hold at once.
    ranks : (int, int)
        First and last rank it may have, all places at once.
    group : int
        Places of one group cannot be told apart from the first of the group.
    """

    name: str
    score: Interval
    ranks: tuple[int, int]
    group: int


@dataclass
class Leaderboard(Displayed):
    r"""Holds the labels of a test set and ranks predictions for it.

    The ladder starts at the best constant answer and moves to a submission whose paired gain
    exceeds ``step`` standard errors; ``"simultaneous"`` takes the normal quantile at 0.05 divided
    by the number of submissions so far, since after many submissions one standard error is what
    chance alone brings. Shown scores are rounded to 1/n.

    Parameters
    ----------
    y_test : (n,)
        Labels or values; they are never shown.
    metric : name of a metric of :data:`METRICS`
    mechanism : ``"full"``, ``"ladder"`` or ``"split"``
    step : standard errors that a gain must exceed on the ladder, or ``"simultaneous"``
    public : share of public rows of ``"split"``
    ledger : where every look is written down
    level : confidence of all intervals and ranks together
    looked : how many submissions were judged on these labels in all, where more than are here

    Examples
    --------
    >>> y = np.arange(200) % 2
    >>> board = Leaderboard(y, "accuracy")
    >>> board.submit("half right", np.zeros(200, int)), board.submit("right", y)
    (0.5, 1.0)
    >>> [place.name for place in board.places()]
    ['right', 'half right']
    """

    y_test: Any = field(repr=False)
    metric: str = "accuracy"
    mechanism: Literal["full", "ladder", "split"] = "full"
    step: float | Literal["simultaneous"] = "simultaneous"
    public: float = 0.3
    ledger: Ledger | None = None
    random_state: Key | RandomState = 0
    level: float = 0.95
    looked: int = 0

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise DataError(
                f"mechanism must be one of {', '.join(MECHANISMS)}, got {self.mechanism!r}"
            )
        checked_level(self.level)
        self._metric = metric_named(self.metric)
        self._y: NDArray[Any] = np.asarray(self.y_test)
        if self._y.ndim != 1 or len(self._y) < 10:
            raise DataError(f"a board needs ten labels or more, got shape {self._y.shape}")
        self._predicted: dict[str, Prediction] = {}
        self._shown: dict[str, float] = {}
        self._truth: NDArray[Any] | None = None
        self._final: Ranking | None = None
        self._fresh: tuple[NDArray[Any], dict[str, Prediction]] = np.empty(0), {}
        self._key = Key.of(self.random_state)
        everything = np.arange(len(self._y))
        self._public: Rows = everything
        self._private: Rows = everything
        if self.mechanism == "split":
            order = self._key.fold("rows").numpy().permutation(len(self._y))
            cut = max(1, min(len(order) - 1, round(self.public * len(order))))
            self._public, self._private = np.sort(order[:cut]), np.sort(order[cut:])
        self._best: tuple[Prediction, float] | None = None
        self._id = rows_id(everything[:, None], self._y)

    @property
    def n_submissions(self) -> int:
        """How many predictions were judged so far."""
        return len(self._predicted)

    def submit(self, name: str, predictions: Any, proba: Any = None) -> float:
        """Judge predictions for the test rows, in their order, and give the answer of the board.

        Parameters
        ----------
        predictions : (n,) labels or values
        proba : (n, K) or (n,), where the metric reads probabilities
        """
        if name in self._predicted:
            raise DataError(f"{name!r} was submitted already; give every submission its own name")
        truth, predicted = Prediction.read(self._y, predictions, proba, self._metric.task)
        self._truth = truth if self._truth is None else self._truth
        self._predicted[name] = predicted
        score = self._score(predicted, self._public)
        shown = score if self.mechanism != "ladder" else self._climb(truth, predicted, score)
        self._shown[name] = shown
        if self.ledger is not None:
            self.ledger.record(None, self._id, name, scores={self.metric: shown}, purpose="select")
        return shown

    @property
    def test_id(self) -> str:
        """The hash under which the ledger knows the labels."""
        return self._id

    @property
    def answers(self) -> dict[str, float]:
        """What was reported to every submission, in the order of submission."""
        return dict(self._shown)

    @property
    def best_shown(self) -> float:
        """The best answer given so far."""
        if not self._shown:
            raise DataError("nobody has submitted anything yet")
        values = self._shown.values()
        return max(values) if self._metric.greater_is_better else min(values)

    def ranking(self) -> Ranking:
        """All submissions ranked at once, by rows that gave no answers where there are any."""
        return self._ranking(self._predicted, self._private)

    def places(self) -> list[Place]:
        """The board: ranked, with intervals that hold for all submissions at once, ties grouped."""
        predicted = {name: p.take(self._private) for name, p in self._predicted.items()}
        assert self._truth is not None or not predicted
        truth = None if self._truth is None else self._truth[self._private]
        return self._places(self.ranking(), predicted, truth, self._looks)

    def final_places(self) -> list[Place]:
        """As :meth:`places`, on the fresh labels."""
        if self._final is None:
            raise DataError("there are no fresh labels yet; pass them to final")
        return self._places(self._final, self._fresh[1], self._fresh[0], len(self._fresh[1]))

    def final(self, y_fresh: Any, predictions: Mapping[str, Any]) -> Ranking:
        """Rank once more on labels nobody has seen; this works one time."""
        if self._final is not None:
            raise DataError("the fresh labels were used already; a second look is not fresh")
        unknown = sorted(set(predictions) - set(self._predicted))
        if unknown:
            raise DataError(f"{unknown[0]!r} is not on the board; submit it first")
        fresh = {
            name: Prediction.read(y_fresh, predicted, None, self._metric.task)
            for name, predicted in predictions.items()
        }
        truth = next(iter(fresh.values()))[0]
        predicted = {name: p for name, (_, p) in fresh.items()}
        self._final = self._ranking(predicted, np.arange(len(truth)), truth)
        self._fresh = truth, predicted
        return self._final

    def to_html(self, reveal: bool | None = None) -> str:
        """The board as one page that needs nothing else.

        Parameters
        ----------
        reveal : show scores with intervals and not only what was reported to submissions; by default
            with ``mechanism="full"`` alone, since otherwise the page would give away what the
            mechanism keeps
        """
        open_ = self.mechanism == "full" if reveal is None else reveal
        if open_:
            rows, note, n = ranked_table(self.places()), REVEALED, len(self._private)
        else:
            rows = answers_table(self._shown, self._metric.greater_is_better)
            note, n = REPORTED, len(self._public)
        head = f"{self.n_submissions} submissions by {self._metric.title} on {n} rows."
        parts = [paragraph(f"{head} {note[self.mechanism]}"), rows]
        if open_:
            parts.append(paragraph(_GROUPS))
        if self._final is not None:
            parts += [
                "<h2>On fresh labels</h2>",
                ranked_table(self.final_places()),
                paragraph("Nobody had seen these labels, so that nothing could be fitted to them."),
            ]
        return page("Leaderboard", parts)

    @property
    def _looks(self) -> int:
        """Submissions judged, those that are gone included."""
        return max(len(self._predicted), self.looked)

    def _places(
        self, found: Ranking, predicted: Mapping[str, Prediction], truth: Any, looks: int
    ) -> list[Place]:
        group, head, out = 0, 0, []
        level = 1 - (1 - self.level) / max(1, looks)
        for i, name in enumerate(found.names):
            if i and found.separated[i, head]:
                group, head = group + 1, i
            score = score_interval(
                self._metric,
                truth,
                predicted[name],
                level=level,
                key=self._key.fold("interval", name),
            )
            out.append(Place(name, score, found.ranks[i], group + 1))
        return out

    def _score(self, predicted: Prediction, rows: Rows) -> float:
        assert self._truth is not None
        return self._metric.score(self._truth[rows], predicted.take(rows))

    def _climb(self, truth: NDArray[Any], predicted: Prediction, score: float) -> float:
        """The ladder's answer: the best score so far, rounded to 1/n."""
        n = len(truth)
        if self._best is None:
            start = _constant(truth, predicted)
            self._best = start, self._metric.score(truth, start)
        sign = 1.0 if self._metric.greater_is_better else -1.0
        gain = sign * (score - self._best[1])
        if gain > 0 and gain > self._reach() * self._error(truth, predicted, self._best[0]):
            self._best = predicted, round(score * n) / n if self._metric.is_mean else score
        return self._best[1]

    def _reach(self) -> float:
        if self.step == "simultaneous":
            return float(scipy.stats.norm.isf(0.05 / max(1, self._looks)))
        return float(self.step)

    def _error(self, truth: NDArray[Any], a: Prediction, b: Prediction) -> float:
        """Standard error of the paired difference of two scores."""
        if self._metric.is_mean:
            d = self._metric.per_row(truth, a) - self._metric.per_row(truth, b)
            return float(d.std(ddof=1)) / math.sqrt(len(d))
        found = Resampled(self._metric, truth, [a, b], np.ones(len(truth)), 400, self._key)
        return float(np.nanstd(found.draws[:, 0] - found.draws[:, 1], ddof=1))

    def _ranking(
        self, predicted: Mapping[str, Prediction], rows: Rows, truth: NDArray[Any] | None = None
    ) -> Ranking:
        if not predicted:
            raise DataError("nobody has submitted anything yet")
        y = self._truth if truth is None else truth
        assert y is not None
        parts = [p.take(rows) for p in predicted.values()]
        found = Resampled(
            self._metric, y[rows], parts, np.ones(len(rows)), _RESAMPLES, self._key.fold("rank")
        )
        sign = -1.0 if self._metric.greater_is_better else 1.0
        draws, loss = sign * found.draws, sign * found.estimates
        draws = draws[~np.isnan(draws).any(1)]
        cov = np.atleast_2d(np.cov(draws.T)) if len(draws) > 1 else np.zeros((len(loss),) * 2)
        return rank_draws(tuple(predicted), loss, draws, cov, self.level, float(len(rows)))


def _constant(truth: NDArray[Any], like: Prediction) -> Prediction:
    """The best answer that does not look at the rows."""
    if like.classes is None:
        return Prediction(np.full(len(truth), truth.mean()))
    share = np.bincount(truth, minlength=len(like.classes)) / len(truth)
    table = np.tile(share, (len(truth), 1))
    return Prediction(np.full(len(truth), share.argmax()), table, table, like.classes)


_GROUPS = (
    "Places of one group cannot be told apart from the first of the group. Intervals and ranks hold "
    "for all submissions at once."
)
