"""Which models take part: a short list by default, any by name, and a dummy to beat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from sklearn.base import clone

from groundstate.data.messages import did_you_mean
from groundstate.errors import DataError, Unsupported
from groundstate.models.tables.table import TablePredictor
from groundstate.models.traits import takes_sparse_rows, traits_of
from groundstate.models.words_read import reads_words
from groundstate.registry import ModelRow
from groundstate.registry import models as registered
from groundstate.study.race.names import OPTIONAL

DUMMY = "dummy"
LINEAR = {"classification": "LogisticRegression", "regression": "Ridge"}
Text = Literal["", "some", "only"]
ROLES = {
    "classification": "classifier", "regression": "regressor", "segmentation": "segmenter",
    "detection": "detector",
}  # fmt: skip


def shortlist(task: str, n_rows: int = 0, text: Text = "") -> list[str]:
    """What `fit` tries by default: one model of each kind, as they are registered.

    Where some columns are text, those that are registered for text; where only text is, those of
    them that learn from its terms or read its words.

    All its classifiers give probabilities, which calibration, sets of classes and costs need.

    >>> shortlist("regression", n_rows=50_000)
    ['Ridge', 'HistGradientBoostingRegressor', 'MLPRegressor', 'TabularMLPRegressor']
    """
    rows = _listed(task)
    fitting = [row for row in rows if row.role == ROLES[task] and row.rows == "table"]
    places = {r.name: r.shortlist_text if text else r.shortlist for r in fitting}
    rows = [row for row in fitting if places[row.name] is not None]
    if text == "only":
        rows = [row for row in rows if takes_sparse_rows(row.obj()) or reads_words(row.obj())]
    rows.sort(key=lambda row: (places[row.name], row.name))
    return [row.name for row in rows if n_rows <= (row.shortlist_rows or n_rows)]


def _listed(task: str) -> list[ModelRow]:
    """Models that may be on the short list of a task; others stay unread."""
    return registered.declaring("shortlist", f'role="{ROLES[task]}"')


def text_in(table: Any) -> Text:
    """Whether no, some or only features of a table are free text."""
    kinds = {column.kind for column in table.features.schema} - {"id", "constant"}
    return "" if "text" not in kinds else "only" if len(kinds) == 1 else "some"


def chosen_models(
    names: str, task: str, device: str | None = None, n_rows: int = 0, text: Text = ""
) -> dict[str, Any]:
    """Unfitted candidates by name; the dummy is always among them, last.

    Parameters
    ----------
    names : ``"auto"`` for one model of each kind, ``"all"`` for every registered model of the task
        that needs no settings, or names with commas; ``module:Class`` is any class with
        scikit-learn's contract
    task : ``"classification"`` or ``"regression"``
    device : given to every model that takes one
    n_rows : size of the table; models with a smaller limit are left out of auto and all
    text : ``"some"`` or ``"only"`` columns are text, which has a short list of its own

    Examples
    --------
    >>> list(chosen_models("Ridge", "regression"))
    ['Ridge', 'dummy']
    """
    listed = names.strip() == "auto"  # which needs no model but those of the list
    fitting = {
        row.name: row
        for row in (_listed(task) if listed else registered)
        if row.role == ROLES[task]
        and row.rows == "table"
        and ((text and row.shortlist_text is not None) or takes_any_number(row.obj))
    }
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise Unsupported(f"name at least one model, or auto; there are {', '.join(fitting)}")
    if wanted == ["auto"]:
        wanted = [name for name in shortlist(task, n_rows, text) if name in fitting]
    elif wanted == ["all"]:
        wanted = [
            row.name
            for row in fitting.values()
            if row.auto
            and (row.max_rows is None or n_rows <= row.max_rows)
            and (text or takes_any_number(row.obj))
        ]
    found: dict[str, Any] = {}
    for name in wanted:
        if name == DUMMY:
            continue
        if ":" in name:
            made = imported(name)
            found[type(made).__name__] = placed(made, device)
            continue
        if name not in fitting:
            row = registered[name]  # an unknown name raises, with the nearest known one
            reason = f"{name} is a {row.role} and the task is {task}"
            if row.rows != "table":
                reason = f"{name} takes {row.rows} rows and this is a table"
            elif row.role == ROLES[task]:
                reason = f"{name} needs counts or codes, and prepared columns are centred numbers"
            elif (row.role, task) == ("regressor", "classification"):
                reason += " (a target of whole numbers is one of values by a metric such as r2)"
            raise Unsupported(f"{reason}; choose among {', '.join(fitting)}")
        found[name] = placed(_made(fitting[name].obj, listed), device)
    return {**found, DUMMY: dummy(task)}


def _made(model: Any, unasked: bool) -> Any:
    """An instance; of a model that nobody named with the settings that it declares for that."""
    preset = traits_of(model).preset if unasked else None
    return model(**{name: clone(value, safe=False) for name, value in (preset or {}).items()})


def candidates_of(
    models: Any, task: str, device: str | None = None, n_rows: int = 0, text: Text = ""
) -> dict[str, Any]:
    """Candidates that take a table: names, an estimator, several, or estimators by name.

    A pipeline brings its own preparation and is left as it is; everything else gets one that each
    fold learns from its own training rows.
    """
    if isinstance(models, str):
        found = chosen_models(models, task, device, n_rows, text)
    else:
        if isinstance(models, Mapping):
            found = {str(name): model for name, model in models.items()}
        else:
            several = models if isinstance(models, (list, tuple)) else [models]
            found = {}
            for model in several:
                name = type(inner_of(model)).__name__
                found[name if name not in found else f"{name} {len(found) + 1}"] = model
        for name, model in found.items():
            if not hasattr(model, "fit") or isinstance(model, type):
                raise DataError(
                    f"{name} is not an estimator; pass instances with fit and predict, such as "
                    "groundstate.Ridge()"
                )
        found = {**found, DUMMY: dummy(task)}
    return {name: prepared(model) for name, model in found.items()}


def prepared(model: Any) -> Any:
    """The model behind a preparation of columns, unless it brings its own."""
    if isinstance(model, TablePredictor) or hasattr(model, "steps"):
        return model
    return TablePredictor(model)


def inner_of(model: Any) -> Any:
    """The estimator without its preparation."""
    if isinstance(model, TablePredictor):
        return getattr(model, "estimator_", model.estimator)
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def imported(path: str) -> Any:
    """An instance of ``module:Class``."""
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
        return found()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"{path!r} cannot be used as a model: {error}; write module:Class, such as "
            "sklearn.ensemble:RandomForestClassifier"
        ) from error


def takes_any_number(model: Any) -> bool:
    """Whether a model class takes negative numbers, which prepared columns hold; by its own tag."""
    from sklearn.utils import get_tags

    return not get_tags(model()).input_tags.positive_only


def placed(model: Any, device: str | None) -> Any:
    """The model with its ``device`` set, where it has one."""
    if device is not None and "device" in model.get_params(deep=False):
        model.set_params(device=device)
    return model


def dummy(task: str) -> Any:
    """What every model has to beat: the shares of the classes, or the mean; None for what is drawn into
    pictures, whose constant answer no estimator gives."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if task in ("segmentation", "detection"):
        return None
    return DummyClassifier() if task == "classification" else DummyRegressor()


def baselines(task: str) -> dict[str, Any]:
    """The dummy, one question about one column, and a straight line, each behind a preparation.

    >>> list(baselines("regression"))
    ['dummy', 'stump', 'linear']
    """
    stump = "DecisionTreeClassifier" if task == "classification" else "DecisionTreeRegressor"
    return {
        DUMMY: TablePredictor(dummy(task)),
        "stump": TablePredictor(registered[stump].obj(max_depth=1)),
        "linear": TablePredictor(registered[LINEAR[task]].obj()),
    }


def with_params(model: Any, params: dict[str, Any] | None) -> Any:
    """The candidate with those settings that it has; names may leave out the preparation's part."""
    if not params:
        return model
    own = model.get_params(deep=True)
    mine = {}
    for name, value in params.items():
        for full in (name, f"estimator__{name}"):
            if full in own:
                mine[full] = tuple(value) if isinstance(value, list) else value
                break
    return model.set_params(**mine) if mine else model


def parts_without(
    given: Sequence[str] | str | None, models: Mapping[str, Any], task: str
) -> tuple[str, ...]:
    """Candidates and parts to leave out, whose names are known.

    >>> parts_without("Ridge, ensemble", {"Ridge": None, "dummy": None}, "regression")
    ('Ridge', 'ensemble')
    """
    listed = given.split(",") if isinstance(given, str) else given or ()
    wanted = [name.strip() for name in listed if name.strip()]
    known = [*models, "ensemble", *baselines(task), *OPTIONAL]
    known = [name for name in dict.fromkeys(known) if name != DUMMY]
    for name in wanted:
        if name not in known and not re.fullmatch(r"#[1-9]\d*", name):
            raise DataError(
                f"there is no {name!r} to leave out{did_you_mean(name, known)}; there are {', '.join(known)}"
            )
    return tuple(dict.fromkeys(wanted))


def check_params(models: Mapping[str, Any], params: dict[str, Any] | None) -> None:
    """Raise for a setting that no candidate has: it would be ignored without a word."""
    for name in params or ():
        own = [model.get_params(deep=True) for model in models.values()]
        if not any(name in each or f"estimator__{name}" in each for each in own):
            raise DataError(f"no candidate ({', '.join(models)}) has a setting {name!r}")
