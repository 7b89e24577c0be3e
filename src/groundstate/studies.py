"""``groundstate.study``: the main job in one call, and the object that holds what it found.

It stands above `report`, so that a finished study can draw itself; `groundstate fit` and `assess`
use it too.
"""

from __future__ import annotations

import os
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.compute.display import Displayed, text_table
from groundstate.compute.random import Key
from groundstate.compute.rows import describe
from groundstate.data.messages import count
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate import Interval, Intervals, Sets, Standings
from groundstate.evaluate.explain.importance import Importance, permutation_importance
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.shapley import ShapleyValues
from groundstate.models.tables.table import TablePredictor
from groundstate.registry import models
from groundstate.report.folder import write
from groundstate.report.notebook import Live, live, notebook
from groundstate.report.rows import write_rows
from groundstate.store import RunDir
from groundstate.study.assess import Assessment
from groundstate.study.facts import report_facts
from groundstate.study.job import run
from groundstate.study.rows.job import RowAssessment, study_rows
from groundstate.study.rows.source import RowSource, is_row_source, read_source, texts_of
from groundstate.study.single_rows import held_out_errors, intervals, sets
from groundstate.study.unlabelled.survey import Survey, survey_facts

_SHOWN = 5  # places of the leaderboard that are printed


@dataclass(frozen=True, eq=False)
class Study(Displayed):
    """What :func:`study` found.

    Attributes
    ----------
    found : Assessment or Survey
        Everything, row by row: predictions, folds, calibration, curves.
    source : str
        Path or name of the table, for ``reproduce.py``.
    """

    found: Assessment | Survey
    source: str

    @property
    def scores(self) -> dict[str, Interval]:
        """Scores of the chosen model on rows it never saw, by metric, with intervals."""
        return self.found.scores

    @property
    def model(self) -> TablePredictor:
        """The chosen model, fitted: it predicts from tables like the one it learned from."""
        model: TablePredictor = self.found.model
        return model

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""
        return self.found.chosen

    @property
    def leaderboard(self) -> Standings:
        """Candidates by validation score; the chosen one and the dummy with their test score."""
        return self.found.board

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What ``report.json`` holds, but for the data of its pictures."""
        found = self.found
        return survey_facts(found) if isinstance(found, Survey) else report_facts(found)

    @property
    def verdict(self) -> str:
        """How good, compared with what, and what to mind: one sentence each."""
        return "\n".join(self.facts["verdict"])

    @property
    def better_than_dummy(self) -> bool:
        """Whether the model is shown to be better than a constant answer."""
        return isinstance(self.found, Survey) or self.found.better_than_dummy

    def predict(self, X: Any) -> Any:
        """Predictions of the chosen model for new rows, ``(n,)``: a table, frame, path or arrays."""
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities of the chosen model for new rows, ``(n, K)``."""
        if not hasattr(self.model, "predict_proba"):
            raise Unsupported(
                f"{self.chosen} gives no probabilities; study with metric='log_loss', so that only "
                "models that do take part"
            )
        return self.model.predict_proba(X)

    def interval(self, X: Any, level: float = 0.9) -> Intervals | Sets:
        """For every new row what holds its truth in that share of cases: a conformal interval of a
        number, or a set of classes.

        Examples
        --------
        >>> import groundstate
        >>> found = groundstate.study("iris", model="GaussianNB", tune=0, repeats=1, seeds=0,
        ...                           bootstrap=0)
        >>> found.interval("iris", level=0.99)[0]
        ['setosa']
        """
        found = self._labelled("an interval")
        kept = held_out_errors(found)
        return (intervals if found.classes is None else sets)(self.model, kept, X, level)

    def explain(self, X: Any = None, **options: Any) -> ShapleyValues | Importance:
        """What the model looks at: columns by importance, or why it answers so for given rows.

        Parameters
        ----------
        X
            Rows to explain by Shapley values (:meth:`TablePredictor.explain`). Without any, columns
            are shuffled among held-out rows (:func:`groundstate.permutation_importance`).
        **options
            Of either.

        Examples
        --------
        >>> import groundstate
        >>> found = groundstate.study("iris", model="GaussianNB", tune=0, repeats=1, seeds=0,
        ...                           bootstrap=0)
        >>> "petal width (cm)" in found.explain(n_repeats=2).groups[0]
        True
        """
        found = self._labelled("an explanation")
        if X is not None:
            model = copy(self.model)
            if model.background_ is None:
                model.keep_background(found.table)
            return model.explain(X, **options)
        train, test = found.design.split
        model = self.model
        if found.design.kind == "nested":  # the model that is kept has seen every row
            rows = found.table.take(train)
            model = fit_clone(found.developed.recipe, rows, rows.y, np.ones(len(train)), Key.of(0))
        held = found.table.take(test)
        return permutation_importance(model, held, held.y, **options)

    def _labelled(self, what: str) -> Assessment:
        if isinstance(self.found, Survey):
            raise Unsupported(f"{what} is about a target, and this study has none")
        return self.found

    def report(self, path: str | Path = "groundstate-out", *, keep_model: bool = True) -> Path:
        """Write model.gs, report.html, report.json and reproduce.py into a folder.

        Returns
        -------
        Path of the page
        """
        with RunDir(path) as folder:
            self.write(folder, keep_model=keep_model)
        return Path(path) / "report.html"

    def write(self, folder: RunDir, *, keep_model: bool = True) -> dict[str, Any]:
        """The same into a folder that is open already; returns what ``report.json`` holds."""
        return write(self.found, folder, self.source, keep_model=keep_model, facts=self.facts)

    def _title(self) -> str:
        table = self.found.table
        what = "no target" if isinstance(self.found, Survey) else f"target {table.target!r}"
        size = f"{count(table.n_rows, 'row')}, {count(table.n_columns, 'column')}"
        return f"Study of {table.name}: {size}, {what}"

    def __str__(self) -> str:
        columns, rows = self.leaderboard._table()
        return "\n".join([self._title(), *text_table(columns, list(rows)[:_SHOWN]), self.verdict])

    def _repr_html_(self) -> str:
        return notebook(self.found, self.facts, self._title())


@dataclass(frozen=True, eq=False)
class RowStudy(Displayed):
    """What :func:`study` found about rows that are no table.

    Attributes
    ----------
    found : RowAssessment
        Everything, row by row.
    """

    found: RowAssessment

    @property
    def scores(self) -> dict[str, Interval]:
        """Scores of the chosen model on rows it never saw, by metric, with intervals."""
        return self.found.scores

    @property
    def model(self) -> Any:
        """The chosen model, fitted."""
        return self.found.model

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""
        return self.found.chosen

    @property
    def leaderboard(self) -> Standings:
        """Candidates by validation score; the chosen one and the dummy with their test score."""
        return self.found.board

    @property
    def facts(self) -> dict[str, Any]:
        """What ``report.json`` holds, but for the data of its pictures."""
        return self.found.facts

    @property
    def verdict(self) -> str:
        """How good, and compared with what: one sentence each."""
        return "\n".join(self.facts["verdict"])

    @property
    def better_than_dummy(self) -> bool:
        """Whether the model is shown to be better than a constant answer."""
        return self.found.better_than_dummy

    def report(self, path: str | Path = "groundstate-out", *, keep_model: bool = True) -> Path:
        """Write model.gs, report.html, report.json and reproduce.py into a folder."""
        with RunDir(path) as folder:
            self.write(folder, keep_model=keep_model)
        return Path(path) / "report.html"

    def write(self, folder: RunDir, *, keep_model: bool = True) -> dict[str, Any]:
        """The same into a folder that is open already; returns what ``report.json`` holds."""
        return write_rows(self.found, folder, keep_model=keep_model)

    def __str__(self) -> str:
        columns, rows = self.leaderboard._table()
        source = self.found.source
        title = f"Study of {source.name}: {describe(source.rows)}, target {source.target!r}"
        return "\n".join([title, *text_table(columns, list(rows)[:_SHOWN]), self.verdict])


_OF_ROWS = ("model", "metric", "test", "folds", "level", "seed", "device", "params", "ledger",
            "progress")  # fmt: skip
_OF_TABLES = ("design", "groups", "time", "weights", "positive", "cost_fp", "cost_fn", "tune",
              "seeds", "bootstrap", "repeats", "budget", "quick", "thorough", "without", "workers",
              "seen", "begun")  # fmt: skip
_TABLE = {"design": "auto", "tune": 10}  # usual values of what only tables have


def study_of_rows(source: Any, target: Any = None, edges: Any = None, **options: Any) -> RowStudy:
    """:func:`study` of a folder of pictures or graphs, of nodes with a file of edges, or of texts."""
    other = _only_tables(options)
    if other:
        raise DataError(
            f"only tables take {', '.join(other)}; the rows of {str(source)!r} take "
            f"{', '.join(_OF_ROWS)}"
        )
    mine = {k: v for k, v in options.items() if k in _OF_ROWS and (v is not None or k == "ledger")}
    if "test" in mine:
        mine["test"] = float(mine["test"])
    if "metric" in mine:
        mine["metric_name"] = mine.pop("metric")
    rows = source if isinstance(source, RowSource) else read_source(source, target, edges)
    return RowStudy(study_rows(rows, **mine))


def _only_tables(options: dict[str, Any]) -> list[str]:
    """Options that were given and that only studies of tables have."""
    other = [k for k, v in options.items() if k not in _OF_ROWS and v not in (None, _TABLE.get(k))]
    return [k for k in other if k not in ("workers", "seen", "begun", "quick", "thorough")]


def _texts(table: Any, target: Any, options: dict[str, Any]) -> RowSource | None:
    """The texts of a table that has nothing else to learn from, where models of texts are named."""
    names = options.get("model", "auto")
    if _only_tables(options) or not isinstance(names, str) or names in ("auto", "all"):
        return None
    if not any(models[n].rows == "text" for n in names.split(",") if n in models):
        return None
    return texts_of(table, target)


def _shown(
    shown: Live, table: Any, target: str | int | None, options: dict[str, Any]
) -> Assessment | Survey:
    """A study under the running cell of a notebook; stopping it keeps what is there."""
    heard = options.get("seen")

    def seen(found: Assessment) -> None:
        shown.seen(found)
        if heard is not None:
            heard(found)

    try:
        return run(table, target, **{**options, "progress": shown, "seen": seen})
    except KeyboardInterrupt:
        if shown.latest is None:
            raise
        return shown.latest
    finally:
        shown.close()


def study(table: Any, target: str | int | None = None, **options: Any) -> Study | RowStudy:
    """Which model predicts the target best, how good it is on rows it never saw, how sure that is.

    The Python form of ``groundstate fit``, with its options: the table is audited, rows are set
    aside (or each judged in turn when there are few), candidates are compared and the best is
    tuned, refitted and looked at once on the held-out rows. Without a target it says which density
    describes the rows.

    Parameters
    ----------
    table
        A path, a built-in name, a frame, a `Table`, or anything else that `data.read` takes; a
        folder of pictures in class folders, with masks (``images`` and ``masks``) or with boxes (COCO,
        CSV, Pascal VOC, YOLO), or of graphs in the format of the TU collection. A file
        with one column of texts beside the target can also be studied by models that read texts,
        by their names.
    target
        Column to predict: its name or position; ``"none"`` for none.
    **options
        ``edges``: a file of edges, which makes the rows of the table nodes of a graph. Others are those
        of the command, with underscores: ``model``, ``metric``, ``design``, ``test``, ``groups``,
        ``time``, ``weights``, ``positive``, ``cost_fp``, ``cost_fn``, ``tune``, ``params``,
        ``seeds``, ``bootstrap``, ``folds``, ``repeats``, ``level``, ``budget``, ``ledger``,
        ``quick``, ``thorough``, ``without``, ``workers``, ``seed``, ``device``; ``seen`` is called with
        the `Assessment` of every stage, ``progress`` with what runs now (a notebook shows it); see
        ``groundstate fit --help``.

    Examples
    --------
    >>> import groundstate
    >>> found = groundstate.study("iris", model="LogisticRegression", tune=0, repeats=1,
    ...                           seeds=0, bootstrap=0)
    >>> found.chosen, found.leaderboard.metric, found.scores["accuracy"].low > 0.85
    ('LogisticRegression', 'brier', True)
    >>> found.model.predict("iris")[:2].tolist()
    ['setosa', 'setosa']
    """
    for name in options.keys() - {"edges", *_OF_ROWS, *_OF_TABLES}:
        near = get_close_matches(name, (*_OF_ROWS, *_OF_TABLES), 1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"there are {', '.join(_OF_ROWS + _OF_TABLES)}"
        )
        raise TypeError(f"study has no option {name!r}; {hint}")
    if is_row_source(table, options.get("edges")):
        return study_of_rows(table, target, **options)
    options.pop("edges", None)
    if options.get("folds", 0) is None:
        del options["folds"]  # the usual number
    texts = _texts(table, target, options)
    if texts is not None:
        return study_of_rows(texts, **options)
    shown = live() if options.get("progress") is None else None
    found = (
        run(table, target, **options) if shown is None else _shown(shown, table, target, options)
    )
    named = os.fspath(table) if isinstance(table, (str, os.PathLike)) else found.table.name
    return Study(found, str(named))
