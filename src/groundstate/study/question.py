"""What is asked: a table, a target, and settings that can be checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.data import Table, read
from groundstate.data.messages import listing
from groundstate.data.tables.match import matches
from groundstate.data.tables.schema import Schema
from groundstate.errors import DataError
from groundstate.evaluate.metrics import METRICS, Metric, metric
from groundstate.evaluate.rows import Floats, weights_of
from groundstate.study.rare import rare_class


@dataclass(frozen=True)
class Settings:
    """What was asked for; together with the table it decides every number."""

    seed: int = 0
    test: float | str | None = None
    folds: int = 5
    level: float = 0.95
    metric: str = ""
    models: tuple[str, ...] = ()
    device: str | None = None
    design: str = "auto"
    repeats: int | None = None
    seeds: int | None = None
    bootstrap: int | None = None
    budget: float | None = None
    groups: str | None = None
    time: str | None = None
    weights: str | None = None
    positive: str | None = None
    cost_fp: float | None = None
    cost_fn: float | None = None
    tune: int = 0
    spec: str = ""
    params: dict[str, Any] | None = None
    chosen_by: str = ""
    quick: bool = False
    thorough: bool = False
    without: tuple[str, ...] = ()

    def again(self, left_out: Iterable[str], repeats: int | None) -> Settings:
        """Settings that give the same without a clock, where a clock left parts out.

        Parameters
        ----------
        left_out : candidates and parts, as ``without`` takes them
        repeats : times that every row was judged; None where rows were set aside

        Examples
        --------
        >>> Settings(budget=9.0, tune=10).again(["Ridge", "#2", "#3", "#4", "#5", "#6", "#7", "#8",
        ...                                      "#9", "#10"], None).without
        ('Ridge',)
        """
        left = dict.fromkeys([*self.without, *left_out])
        tune = self.tune
        while tune and left.pop(f"#{tune}", "") is None:  # the last ones need not be proposed
            tune -= 1
        return replace(
            self, without=tuple(left), tune=tune, budget=None, thorough=True,
            repeats=self.repeats if repeats is None else repeats,
        )  # fmt: skip

    def with_models(
        self, names: Iterable[str], spec: Any, tuner: Any, params: dict[str, Any] | None
    ) -> Settings:
        """The same settings with the names of the candidates, as a command would say them."""
        known = tuple(names)
        spelled = ",".join(name for name in known if name != "dummy") or "dummy"
        if isinstance(spec, str) and (":" in spec or spec.strip() in ("auto", "all")):
            spelled = spec.strip()
        tune = int(getattr(tuner, "n_trials", 0))
        return replace(self, models=known, spec=spelled, tune=tune, params=params)


@dataclass(frozen=True)
class Question(Displayed):
    """A table with everything that belongs to its rows.

    Attributes
    ----------
    X : the rows as candidates see them
    y : ``(n,)`` labels or values
    classes : ``(K,)`` or None
    positive : number of the class that matters, of two
    test : share, positions of given test rows, or None
    """

    table: Table
    X: Any
    y: NDArray[Any]
    task: Any
    measure: Metric
    settings: Settings
    classes: NDArray[Any] | None
    positive: int | None
    weight: Floats = field(repr=False)
    groups: NDArray[Any] | None = field(repr=False)
    time: NDArray[Any] | None = field(repr=False)
    test: float | NDArray[np.intp] | None = field(repr=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def features(self) -> Any:
        """The rows without their target: what a split may depend on."""
        return self.table.features

    def codes(self, y: NDArray[Any]) -> NDArray[Any]:
        """Class numbers of labels; values as they are."""
        return y.astype(np.float64) if self.classes is None else np.searchsorted(self.classes, y)


def ask(
    X: Any,
    y: Any = None,
    *,
    target: str | int | None,
    metric: str | None,
    test: float | str | None,
    groups: Any,
    time: Any,
    weights: Any,
    positive: Any,
    cost_fp: float | None,
    cost_fn: float | None,
    folds: int,
    repeats: int | None,
    level: float,
    budget: float | None,
    seed: int,
    device: str | None,
    design: str,
    seeds: int | None,
    bootstrap: int | None,
) -> Question:
    """Read the table and refuse early whatever can be refused."""
    table = read(X) if y is None else read((X, y), target="target")
    rows = None
    if isinstance(test, str):
        table, rows = _with_test(table, test, target)
    if target is not None:
        given = table.n_rows
        table = table.with_target(target)
        if rows is not None and table.n_rows < given:
            raise DataError("some test rows have no target; leave those rows out of the test file")
    beside = {"groups": groups, "time": time, "weights": weights}
    columns = {name: _column(table, name, value) for name, value in beside.items()}
    drop = [value for value in (groups, weights) if isinstance(value, str)]
    if drop:
        table = table.select([name for name in table.columns if name not in drop])
    table = _as_values(table, metric)
    measure = _measure(table, metric)
    _numbers(folds, repeats, level, budget, seeds, bootstrap, cost_fp, cost_fn)
    classes = _classes(table)
    named: Any = {name: value if isinstance(value, str) else None for name, value in beside.items()}
    settings = Settings(
        seed=seed, test=test, folds=folds, level=level, metric=measure.name, device=device,
        design=design, repeats=repeats, seeds=seeds, bootstrap=bootstrap, budget=budget,
        positive=None if positive is None else str(positive), cost_fp=cost_fp, cost_fn=cost_fn,
        **named,
    )  # fmt: skip
    return Question(
        table=table,
        X=table,
        y=table.y,
        task=table.task,
        measure=measure,
        settings=settings,
        classes=classes,
        positive=positive_of(table.y, classes, positive, cost_fp, cost_fn),
        weight=weights_of(columns["weights"], table.n_rows),
        groups=columns["groups"],
        time=columns["time"],
        test=rows if isinstance(test, str) else test,
    )


def _with_test(
    table: Table, source: str, target: str | int | None
) -> tuple[Table, NDArray[np.intp]]:
    """Both tables as one, and the positions of the test rows."""
    import polars as pl

    named = table if target is None else table.with_target(target)
    more = read(source, schema=named.schema)
    absent = [name for name in named.columns if name not in more.columns]
    if absent:
        raise DataError(f"{source!r} lacks the columns {listing(absent)} of the table")
    frame = pl.concat([named.frame, more.frame.select(named.columns)], how="vertical_relaxed")
    _same_labels(named, more, source)
    rows = np.arange(named.n_rows, frame.height)
    notes = (*named.notes, *(f"{more.name}: {note}" for note in matches(more.notes)))
    return replace(named, frame=frame, set_aside=None, notes=notes), rows


def _same_labels(table: Table, more: Table, source: str) -> None:
    """Refuse test rows of which no label is one of the table."""
    if table.task != "classification" or table.target is None:
        return
    own, other = (
        sorted(map(str, t.frame[table.target].drop_nulls().unique().to_list()))
        for t in (table, more)
    )
    if not other or set(own) & set(other):
        return
    raise DataError(
        f"no value of {table.target!r} in {source!r} ({listing(other)}) is one of the table's "
        f"({listing(own)}); write both files with the same labels"
    )


def _column(table: Table, what: str, value: Any) -> NDArray[Any] | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value == table.target:
            raise DataError(f"{value!r} is the target and cannot be the {what} too")
        table.column(value)  # an unknown name raises, with the nearest known one
        found = table.values(value)
        if table.frame[value].null_count():
            raise DataError(f"the {what} column {value!r} has missing values; fill them in first")
        return found.astype(str) if found.dtype == object else found
    found = np.asarray(value)
    if found.shape != (table.n_rows,):
        raise DataError(f"{what} has shape {found.shape}; expected one per row, ({table.n_rows},)")
    return found


def _as_values(table: Table, wanted: str | None) -> Table:
    """A target of a few whole numbers is values, no labels, where the metric is one of values."""
    if table.task != "classification" or metric(wanted, table.task).task != "regression":
        return table
    assert table.target is not None
    column = table.schema[table.target]
    if column.kind != "numeric" or column.n_unique <= 2:
        return table
    note = f"{column.name!r} is read as values, not as {column.n_unique} classes: {wanted} judges values"
    columns = tuple(replace(c, given=True) if c is column else c for c in table.schema.columns)
    return replace(table, schema=Schema(columns, column.name), notes=(*table.notes, note))


def _measure(table: Table, wanted: str | None) -> Metric:
    task = table.task
    if task is None:
        raise DataError(f"{table.name!r} has no target to predict; its columns are {table.columns}")
    measure = metric(wanted, task)
    if measure.task != task:
        fitting = ", ".join(name for name, row in METRICS.items() if row.task == task)
        raise DataError(
            f"{measure.name} is a metric for {measure.task} but predicting {table.target!r} is "
            f"{task}; choose among {fitting}"
        )
    if len(np.unique(table.y)) < 2:
        raise DataError(
            f"every row has the same value of {table.target!r}, {table.y[0]!s}; there is nothing "
            "to learn"
        )
    return measure


def _numbers(
    folds: int,
    repeats: int | None,
    level: float,
    budget: float | None,
    seeds: int | None,
    bootstrap: int | None,
    cost_fp: float | None,
    cost_fn: float | None,
) -> None:
    if folds < 2 or (repeats is not None and repeats < 1):
        raise DataError(f"cross-validation needs 2 folds and 1 repeat, got {folds} and {repeats}")
    if not 0 < level < 1:
        raise DataError(f"level is a confidence between 0 and 1, such as 0.95, got {level}")
    if budget is not None and not budget > 0:
        raise DataError(f"budget is a positive number of seconds, got {budget}")
    for name, number in (("seeds", seeds), ("bootstrap", bootstrap)):
        if number is not None and number < 0:
            raise DataError(f"{name} is a number of fits, 0 or more, got {number}")
    for name, cost in (("cost_fp", cost_fp), ("cost_fn", cost_fn)):
        if cost is not None and not cost > 0:
            raise DataError(f"{name} is what a mistake costs, a positive number, got {cost}")


def _classes(table: Table) -> NDArray[Any] | None:
    return np.unique(table.y) if table.task == "classification" else None


def positive_of(
    y: NDArray[Any], classes: NDArray[Any] | None, wanted: Any = None, *costs: float | None
) -> int | None:
    """Number of the class that precision and costs are about: asked for, rare, or the second."""
    if classes is None or len(classes) != 2:
        if wanted is not None or any(cost is not None for cost in costs):
            kind = "numbers" if classes is None else f"{len(classes)} classes"
            raise DataError(f"positive and costs are for a target of two classes, not {kind}")
        return None
    if wanted is None:
        rare = rare_class(y, classes)
        return 1 if rare is None else rare
    for at, label in enumerate(classes):
        if str(label) == str(wanted):
            return at
    raise DataError(f"positive is one of the classes {classes.tolist()}, got {wanted!r}")
