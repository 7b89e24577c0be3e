r"""What a model that learned from generated rows knows of real ones, column by column.

.. math:: \text{kept} = \operatorname{mean}_j\frac{s_j(\text{generated}) - s_j(\text{constant})}
    {s_j(\text{real}) - s_j(\text{constant})}

with the score :math:`s_j` (accuracy, or R²) on unseen real rows of a boosted model of column j given
the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.generators.features import RowFeatures
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.proportions import proportion_interval

Floats = NDArray[np.float64]
MOST = 2000  # rows that are learned from
COLUMNS = 12  # that are tried
CLASSES = 20  # different values up to which a column is one of classes
GAIN = 0.05  # over a constant answer, from which there is something to learn
RESAMPLES = 200


@dataclass(frozen=True)
class ColumnLearned:
    """How well one column is predicted from the others on unseen real rows.

    Attributes
    ----------
    name : of the column
    score : "accuracy" or "R²"
    generated : Interval, of a model that learned from generated rows
    real : of one that learned from as many training rows
    constant : of the most frequent class or the mean
    """

    name: str
    score: str
    generated: Interval
    real: float
    constant: float

    @property
    def kept(self) -> float:
        """Share of what can be learned from real rows that generated rows teach too, in [0, 1]."""
        gain = (self.generated.estimate - self.constant) / (self.real - self.constant)
        return float(np.clip(gain, 0.0, 1.0))


@dataclass(frozen=True)
class Lesson:
    """What real rows teach of each column; generated rows are measured against it.

    Attributes
    ----------
    names : columns that can be learned at all
    scores : by column its score, and what real rows and a constant reach
    """

    names: list[str]
    scores: dict[str, tuple[str, float, float]]
    train: Any
    test: Any

    @classmethod
    def of(cls, train: Any, test: Any) -> Lesson:
        """From real rows, frames of the same columns; ``test`` holds rows that nothing learned from."""
        scores: dict[str, tuple[str, float, float]] = {}
        for name in _columns(train):
            words, y, there = _target(train, test, name)
            if y is None:
                continue
            hits = _hits(train, test, name, words)
            own = float(_score(hits, y[there], words))
            best = _usual(y[there]) if words else 0.0
            if own - best > GAIN:
                scores[name] = ("accuracy" if words else "R²", own, best)
        return cls(list(scores), scores, train, test)

    def of_generated(self, generated: Any, level: float = 0.95) -> list[ColumnLearned]:
        """What generated rows teach of each of the columns."""
        found = []
        for name in self.names:
            kind, real, constant = self.scores[name]
            words = kind == "accuracy"
            answers = _hits(generated, self.test, name, words)
            _, y, there = _target(self.train, self.test, name)
            assert y is not None
            interval = _interval(answers, y[there], words, level)
            found.append(ColumnLearned(name, kind, interval, real, constant))
        return found


def kept(columns: Sequence[ColumnLearned]) -> float | None:
    """Mean share of what real rows teach; None where there is nothing to learn."""
    return float(np.mean([c.kept for c in columns])) if columns else None


def _columns(frame: Any) -> list[str]:
    return [n for n in frame.columns if not frame[n].dtype.is_temporal()][:COLUMNS]


def _target(train: Any, test: Any, name: str) -> tuple[bool, Any, NDArray[np.bool_]]:
    """Whether a column is one of classes, its values in the test rows, and where they are there."""
    column, new = train[name], test[name]
    words = not column.dtype.is_numeric() or column.n_unique() <= CLASSES
    there = ~new.is_null().to_numpy()
    known = column.drop_nulls()
    if known.n_unique() < 2 or there.sum() < 20 or (words and known.n_unique() > 2 * CLASSES):
        return words, None, there
    return words, (np.array([str(v) for v in new]) if words else new.to_numpy()), there


def _hits(rows: Any, test: Any, name: str, words: bool) -> NDArray[Any]:
    """Predictions of a column for the test rows that have it, learned from some rows."""
    from groundstate.models.ensembles.boosting.hist_gradient_boosting_classifier import (
        HistGradientBoostingClassifier,
    )
    from groundstate.models.ensembles.boosting.hist_gradient_boosting_regressor import (
        HistGradientBoostingRegressor,
    )

    learn = rows.filter(rows[name].is_not_null())[:MOST]
    new = test.filter(test[name].is_not_null())
    code = RowFeatures.learned(test.drop(name))
    y = np.array([str(v) for v in learn[name]]) if words else learn[name].to_numpy().astype(float)
    if len(learn) < 2 or len(np.unique(y)) < 2:
        return np.repeat(y[:1] if len(y) else np.zeros(1), len(new))
    cls: Any = HistGradientBoostingClassifier if words else HistGradientBoostingRegressor
    few = min(20, max(2, len(learn) // 10))
    model = cls(max_iter=50, max_leaf_nodes=8, min_samples_leaf=few, random_state=0)
    return np.asarray(model.fit(code.of(learn.drop(name)), y).predict(code.of(new.drop(name))))


def _score(predicted: NDArray[Any], true: NDArray[Any], words: bool) -> float:
    if words:
        return float((predicted == true).mean())
    spread = float(np.var(true))
    return 1 - float(np.mean((true - predicted) ** 2)) / spread if spread else 0.0


def _usual(true: NDArray[Any]) -> float:
    return float(np.unique(true, return_counts=True)[1].max() / len(true))


def _interval(answers: NDArray[Any], true: NDArray[Any], words: bool, level: float) -> Interval:
    if words:
        return proportion_interval(int((answers == true).sum()), len(true), level)
    rng, tail = np.random.default_rng(0), (1 - level) / 2
    value = _score(answers, true, False)
    again = [
        _score(answers[at], true[at], False)
        for at in (rng.integers(0, len(true), len(true)) for _ in range(RESAMPLES))
    ]
    low, high = np.quantile(again, [tail, 1 - tail])
    return Interval(value, min(float(low), value), max(float(high), value), level, "bootstrap")
