"""How a table is judged: rows set aside once, or every row by a recipe that had not seen it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.data.tables.table import Table
from groundstate.errors import DataError, Unreliable
from groundstate.evaluate.rows import Floats, classes_of, n_rows, take
from groundstate.evaluate.splits.folds import Split, folds
from groundstate.evaluate.splits.three_way import SplitRows, split
from groundstate.evaluate.splits.units import group_parts
from groundstate.models.traits import traits_of

Rows = NDArray[np.intp]
SIZES = (0.7, 0.2, 0.1)
ENOUGH, ENOUGH_OF_RAREST, ENOUGH_TO_VALIDATE = 300, 30, 400


REPEATS = 5  # of a design that judges every row
_WORK = 85.0  # what judging every row costs unasked at most, in nominal seconds
_QUICK = 0.5  # nominal seconds of a fit, up to which a candidate can be the first answer
_COUNTED = 1000  # texts whose words are counted, about
_LONG = 20.0  # nominal seconds from which more processes are worth their start


@dataclass(frozen=True)
class Size:
    """Rows, columns and classes of a table, and words of its texts: what the cost of a fit depends on.

    >>> Size(150, 4, 3).of(None)
    0.008
    """

    rows: int
    columns: int = 10
    classes: int = 2
    words: float = 0.0

    @classmethod
    def of_table(cls, table: Table, classes: NDArray[Any] | None) -> Size:
        """Of a table, with the classes of its target."""
        words = 0.0
        for name in table.features.schema.of_kind("text"):
            some = table.frame[name].gather_every(-(-table.n_rows // _COUNTED))
            counts = some.cast(pl.String).fill_null("").str.count_matches(r"\w+").to_numpy()
            words += float(counts.mean())
        return cls(table.n_rows, table.n_columns, 2 if classes is None else len(classes), words)

    def of(self, model: Any) -> float:
        """Nominal seconds of a fit, as the class declares them; of other models a guess."""
        inner = getattr(model, "estimator", model)
        members = getattr(inner, "members", None)
        if members is not None:
            return sum(self.of(member) for member in members)
        declared = traits_of(inner).cost
        if declared is not None:
            return declared.seconds(self.rows, self.columns, self.classes, self.words)
        return 0.008 * max(1.0, self.rows / 1000)


def usual_repeats(models: Mapping[str, Any], size: Size, folds: int, tune: int) -> int:
    """How often every row is judged unasked: five times, or less for slow models.

    By a nominal cost of a fit, so that it does not depend on the clock. All five are done with
    ``repeats=5``, and as many as fit in with ``budget``.

    Parameters
    ----------
    models : candidates
    size : of the table
    folds : parts of the rows
    tune : settings to try

    Examples
    --------
    >>> from groundstate import LogisticRegression, MLPClassifier
    >>> usual_repeats({"linear": LogisticRegression()}, Size(150), 5, 10)
    5
    >>> usual_repeats({"network": MLPClassifier()}, Size(10_000), 5, 10)
    1
    """
    return int(np.clip(_WORK / _one_repeat(models, size, folds, tune), 1, REPEATS))


def usual_workers(seconds: float, design: Design) -> int:
    """Processes unasked for fits of so many nominal seconds: one, or one for each core if they pay.

    A process takes seconds to start, so that quick candidates are never compared in several.
    """
    if design.kind != "nested" or seconds < _LONG:
        return 1
    from joblib import cpu_count

    return min(cpu_count(), design.n_folds)


def _one_repeat(models: Mapping[str, Any], size: Size, folds: int, tune: int) -> float:
    """Nominal seconds in which every row is judged once."""
    cost = [size.of(model) for model in models.values()]
    return folds * (sum(cost) + tune * sum(cost) / max(len(cost), 1))


def first_candidate(models: Mapping[str, Any], size: Size) -> str | None:
    """The candidate of the first answer: the first of the list that is quick, or the quickest; None
    where there is only the constant answer.

    Of the short lists that is a linear model, which takes moments also where no loop has been
    compiled yet.

    >>> from groundstate import LogisticRegression, MLPClassifier
    >>> first_candidate({"network": MLPClassifier(), "linear": LogisticRegression()}, Size(5000))
    'linear'
    """
    names = [name for name in models if name != "dummy"]
    quick = [name for name in names if size.of(models[name]) <= _QUICK]
    return next(iter(quick or sorted(names, key=lambda name: size.of(models[name]))), None)


class HeldRows:
    """Rows that stay closed until the one look; every look is written down.

    Parameters
    ----------
    X, y : the whole table
    rows : positions of the rows held back

    Examples
    --------
    >>> held = HeldRows(np.arange(6.0)[:, None], np.arange(6), np.array([1, 4]))
    >>> held.looks
    ()
    >>> held.look("report")[1].tolist(), held.looks
    ([1, 4], ('report',))
    """

    def __init__(self, X: Any, y: NDArray[Any], rows: Rows) -> None:
        self._X, self._y = X, y
        self.rows = rows
        self._looks: list[str] = []

    @property
    def looks(self) -> tuple[str, ...]:
        """What the rows were looked at for, in order."""
        return tuple(self._looks)

    def look(self, purpose: str) -> tuple[Any, NDArray[Any]]:
        """The rows and their targets."""
        self._looks.append(purpose)
        return take(self._X, self.rows), self._y[self.rows]


@dataclass(frozen=True)
class Design(Displayed):
    """Which rows develop a model and which rows judge it.

    Attributes
    ----------
    kind : ``"holdout"`` or ``"nested"``
    sides : list of (development rows, judged rows)
        One pair for a holdout; ``folds`` pairs for each repeat otherwise.
    validation : rows of the first development part that compare candidates, or None for folds
    repeats : times every row is judged
    reason : str
    """

    kind: Literal["holdout", "nested"]
    sides: list[tuple[Rows, Rows]] = field(repr=False)
    validation: Rows | None = field(repr=False)
    repeats: int
    reason: str

    @property
    def n_folds(self) -> int:
        """Pairs of one repeat."""
        return len(self.sides) // self.repeats

    @property
    def judged(self) -> int:
        """Number of rows that judge, each counted once."""
        return sum(len(test) for _, test in self.sides[: self.n_folds])

    @property
    def split(self) -> tuple[Rows, Rows]:
        """The first pair."""
        return self.sides[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        train, test = self.split
        return {
            "kind": self.kind,
            "reason": self.reason,
            "development": len(train) if self.kind == "holdout" else len(train) + len(test),
            "judged": self.judged,
            "outer_folds": self.n_folds if self.kind == "nested" else None,
            "repeats": self.repeats,
            "candidates_compared_on": "folds" if self.validation is None else "validation rows",
        }


def choose_design(
    X: Any,
    y: NDArray[Any],
    *,
    task: str,
    kind: str = "auto",
    test: float | Rows | None = None,
    groups: Any = None,
    time: Any = None,
    n_folds: int = 5,
    repeats: int = 1,
    key: Key,
) -> Design:
    """The design asked for, or the one that the size of the table allows.

    A tenth of the rows is trusted to judge when it holds 300 rows and 30 of the rarest class;
    smaller tables are judged by nested cross-validation, since a single small part may be lucky.

    Parameters
    ----------
    test : share of the rows, or positions of the rows to set aside
    groups, time : as in :func:`split`
    """
    if kind not in ("auto", "holdout", "nested"):
        raise DataError(f"design is auto, holdout or nested, got {kind!r}")
    n = n_rows(X)
    classes = task == "classification"
    if isinstance(test, np.ndarray):
        rest = np.setdiff1d(np.arange(n), test)
        return Design("holdout", [(rest, test)], None, 1, "the test rows were given")
    if test is not None and not 0 < test < 1:
        raise DataError(f"test is the share of rows to set aside, between 0 and 1, got {test}")
    if kind == "nested" and (test is not None or time is not None):
        raise DataError("a nested design judges every row; leave test and time out")
    if kind != "nested":
        share = SIZES[2] if test is None else test
        sizes = SIZES if test is None else ((1 - share) * 7 / 9, (1 - share) * 2 / 9, share)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Unreliable)  # rare classes are a finding of the audit
            cut = split(
                X, y, sizes, "auto" if classes else None, groups, time, random_state=key.fold("cut")
            )
        enough = _enough(y, cut, classes)
        if kind == "holdout" or test is not None or time is not None or enough:
            return _holdout(X, y, cut, enough, classes)
    parts: list[tuple[Rows, Rows]] = []
    for repeat in range(repeats):
        found = make_folds(
            X, y, n_folds, task=task, groups=groups, time=None, weight=np.ones(n),
            key=key.fold("outer", repeat),
        )  # fmt: skip
        parts += [(part.train_rows, part.test_rows) for part in found]
    why = (
        f"a tenth of {n:,} rows is too few to trust one test part"
        if kind == "auto"
        else "asked for"
    )
    return Design("nested", parts, None, repeats, why)


def _enough(y: NDArray[Any], cut: SplitRows, classes: bool) -> bool:
    if len(cut.test) < ENOUGH:
        return False
    if not classes:
        return True
    labels, counts = np.unique(y[cut.test], return_counts=True)
    return len(labels) == len(np.unique(y)) and int(counts.min()) >= ENOUGH_OF_RAREST


def _holdout(X: Any, y: NDArray[Any], cut: SplitRows, enough: bool, classes: bool) -> Design:
    if not len(cut.test) or len(cut.development) < 2:
        raise DataError(f"{len(y)} rows are too few to set some aside; bring more, or raise test")
    development, test = cut.development, cut.test
    if classes:  # a class nobody can learn cannot judge either
        unknown = ~np.isin(y[test], np.unique(y[development]))
        if unknown.any():
            development = np.sort(np.r_[development, test[unknown]])
            test = test[~unknown]
    validation = None
    if len(cut.val) >= ENOUGH_TO_VALIDATE and (
        not classes or len(np.unique(y[cut.train])) == len(np.unique(y[development]))
    ):
        validation = np.searchsorted(development, cut.val)
    why = "the test part is large enough to trust" if enough else "asked for"
    return Design("holdout", [(development, test)], validation, 1, why)


def make_folds(
    X: Any,
    y: NDArray[Any],
    k: int,
    *,
    task: str,
    groups: Any,
    time: Any,
    weight: Floats,
    key: Key,
) -> list[Split]:
    """Folds on the weight line, of whole groups, or forward in time."""
    if time is not None:
        order = np.argsort(np.asarray(time), kind="stable")
        from sklearn.model_selection import TimeSeriesSplit

        ahead = TimeSeriesSplit(k).split(np.zeros(len(order)))
        return [as_split(order[a], order[b], weight) for a, b in ahead]
    if groups is None:
        groups = _copies(X, y)
    if groups is not None:
        k = min(k, len(np.unique(np.asarray(groups))))
        if k < 2:
            raise DataError("all rows are of one group; folds of whole groups need two")
        labels = classes_of(y)[1] if task == "classification" else None
        part = group_parts(X, groups, [1 / k] * k, key, labels)
        pairs = ((np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(k))
        return [as_split(a, b, weight) for a, b in pairs]
    from groundstate.compute.weight_line.line import WeightLine
    from groundstate.evaluate.rows import columns

    distinct = WeightLine.of(*columns(X), y, weights=weight).n_distinct
    if distinct < 2:
        raise DataError(f"{distinct} different row cannot be cross-validated; bring more data")
    k = min(k, distinct)
    found: list[Split] = []
    for stratify in (task == "classification", False):
        cut = folds(X, y, k=k, key=key, sample_weight=weight, stratify=stratify)
        # few different rows may leave a side empty
        found = found or [part for part in cut if part.train.any() and part.test.any()]
    if not found:
        raise DataError(f"{distinct} different rows are too few to cross-validate; bring more data")
    return found


def twins(words: NDArray[np.uint64]) -> float:
    """Share of the rows that have an equal one, from a hash of each.

    >>> twins(np.array([1, 1, 2, 3], np.uint64))
    0.5
    """
    _, place, times = np.unique(words, return_inverse=True, return_counts=True)
    return float((times[place.reshape(-1)] > 1).mean())


def _copies(X: Any, y: NDArray[Any]) -> NDArray[np.intp] | None:
    """Groups of equal features, where some have different targets and most rows have no equal.

    Equal rows with equal targets stay together on the weight line anyway. Where most rows have an
    equal, columns take few values, and equal rows are no copies of each other.
    """
    from groundstate.compute.weight_line.hashing import row_hash
    from groundstate.evaluate.rows import columns

    words = row_hash(*columns(X))
    n_rows_alike, n_pairs = len(np.unique(words)), len(np.unique(row_hash(*columns(X), y)))
    if n_rows_alike == n_pairs or twins(words) > 0.5:
        return None
    return np.unique(words, return_inverse=True)[1].reshape(-1)


def as_split(train: Rows, test: Rows, weight: Floats) -> Split:
    """Positions as weights of the two sides."""
    sides = np.zeros((2, len(weight)))
    sides[0, train], sides[1, test] = weight[train], weight[test]
    return Split(sides[0], sides[1])
