"""Candidates for a table without a target, compared by the energy they give to held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import Preparation, Table
from groundstate.data.messages import count
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate import (
    METRICS,
    Entry,
    Prediction,
    Split,
    Standings,
    folds,
    interval,
    tied_with_best,
)
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.splits.folds import different_rows
from groundstate.models.explain import explain
from groundstate.models.settings import Choice
from groundstate.models.tables.dequantise import held_out_log_density
from groundstate.models.tables.table import TablePredictor
from groundstate.models.traits import traits_of
from groundstate.registry import ModelRow
from groundstate.registry import models as registered
from groundstate.study.candidates import placed

METRIC = "mean_nll"
_START = (1, 2, 3, 4, 6, 8)  # sizes that are always tried
_GROWTH = 1.5  # from the largest size tried, while it is the best
_FINEST = 0.12  # of the best size: a size nearer than this says the same
_ROWS_PER_COMPONENT = 5
_LEAST = 4  # different rows of which one may be held out
_ROWS_PER_COLUMN = 10  # of a component, with which its covariance is known well
_MOST = 64  # components; more than these are no description of a table


class DensitySearch:
    """Densities of several sizes, such as ``GaussianMixture(3)``: first a few, then larger ones.

    They are the registered models that judge and draw rows of real numbers; a code has fewer
    directions than there are numbers, a mixture at least five rows per component. While the largest
    size of a model is its best, larger ones are tried; around the best of all, those in between.
    Covariances of components with few rows are regularised by held-out likelihood.

    Parameters
    ----------
    names : model names, separated by commas, or ``"auto"``, all but the generators
    train : training rows
    device : where to compute
    """

    def __init__(self, names: str, train: Table, device: str | None = None) -> None:
        fitting = {row.name: row for row in registered if _is_density(row)}
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        if wanted == ["auto"]:  # generators are trained for minutes each: only where they are named
            wanted = [n for n, row in fitting.items() if row.auto and row.role != "generator"]
        for name in wanted:
            if name not in fitting:
                role = registered[name].role  # an unknown name raises, with the nearest known one
                raise Unsupported(
                    f"{name} is a {role} without a density of real rows; without a target choose "
                    f"among {', '.join(fitting)}, or say what to predict with target"
                )
        d = len(Preparation().fit(train).feature_names_out())
        mixture = min(_MOST, max(1, train.n_rows // _ROWS_PER_COMPONENT))
        self.device, self.rows, self.columns = device, train.n_rows, d
        self.kinds = [kind for name in wanted for kind in _forms(fitting[name], columns=d)]
        self.limit = {
            kind: (d - 1 if fitting[kind.name].role == "transformer" else mixture)
            if kind.sized
            else 1
            for kind in self.kinds
        }
        self.tried: dict[_Kind, list[int]] = {kind: [] for kind in self.kinds}

    def start(self) -> dict[str, TablePredictor]:
        """The first candidates by name, unfitted."""
        found = {
            name: model
            for kind in self.kinds
            for k in _START
            if k <= self.limit[kind]
            for name, model in self._candidate(kind, k).items()
        }
        if not found:
            raise DataError("no model fits a table this small; bring more rows or columns")
        return found

    def more(self, scores: Mapping[str, float]) -> dict[str, TablePredictor]:
        """Larger sizes of the models whose largest size has the lowest score so far, and sizes next
        to the best of all."""
        found: dict[str, TablePredictor] = {}
        lowest = min(scores, key=lambda name: scores[name], default="")
        for kind, sizes in self.tried.items():
            known = {k: scores[kind.title(k)] for k in sizes if kind.title(k) in scores}
            best = min(known, key=lambda k: known[k], default=None)
            if best is None:
                continue
            larger = min(math.ceil(best * _GROWTH), self.limit[kind])
            if best == max(sizes) and larger > best:
                more = [larger]
            elif kind.title(best) == lowest:
                above, below = [k for k in sizes if k > best], [k for k in sizes if k < best]
                more = [
                    (best + min(above, default=best)) // 2,
                    (best + max(below, default=best) + 1) // 2,
                ]
            else:
                more = []
            for k in more:
                if k not in self.tried[kind] and abs(k - best) >= _FINEST * best:
                    found |= self._candidate(kind, k)
        return found

    def _candidate(self, kind: _Kind, k: int) -> dict[str, TablePredictor]:
        self.tried[kind].append(k)
        size: dict[str, Any] = {"n_components": k} if kind.sized else {}
        if kind.regularised and self.rows < k * _ROWS_PER_COLUMN * (
            1 if kind.settings else self.columns
        ):
            size["reg_covar"] = "auto"
        model = placed(kind.make(**size, **dict(kind.settings)), self.device)
        return {kind.title(k): TablePredictor(model, dequantise=True)}


@dataclass(frozen=True)
class _Kind:
    """A model in one of the forms that it is tried in."""

    name: str
    make: Any
    settings: tuple[tuple[str, str], ...] = ()
    sized: bool = True  # whether it has a number of components
    regularised: bool = False  # whether it can choose what to add to covariances

    def title(self, k: int) -> str:
        shown = [*([str(k)] if self.sized else []), *(value for _, value in self.settings)]
        return f"{self.name}({', '.join(shown)})"


def _forms(row: ModelRow, columns: int) -> list[_Kind]:
    """A mixture with free covariances and, where its search space has them, with diagonal ones; of
    one column these are the same."""
    shape = (traits_of(row.obj).space or {}).get("covariance_type")
    sized, chosen = _has_size(row), _regularises(row)
    plain = [_Kind(row.name, row.obj, (), sized, chosen)]
    if columns > 1 and isinstance(shape, Choice) and "diag" in shape.choices:
        plain.append(_Kind(row.name, row.obj, (("covariance_type", "diag"),), sized, chosen))
    return plain


def _has_size(row: ModelRow) -> bool:
    """Whether a model has a number of components to choose."""
    return "n_components" in row.obj._get_param_names()


def _regularises(row: ModelRow) -> bool:
    """Whether a model declares ``reg_covar="auto"``."""
    allowed = row.obj._parameter_constraints.get("reg_covar", [])
    return any("auto" in getattr(one, "options", ()) for one in allowed)


def _is_density(row: ModelRow) -> bool:
    able = hasattr(row.obj, "score_samples") and hasattr(row.obj, "sample")
    return able and explain(row.name).spaces["x"].startswith("Real")


def compare_densities(
    candidates: Mapping[str, Any],
    train: Table,
    *,
    more: Callable[[Mapping[str, float]], Mapping[str, Any]] | None = None,
    cv: int = 5,
    key: int = 0,
    n_jobs: int = 1,
    level: float = 0.95,
) -> Standings:
    """Rank densities by the mean negative log density of held-out rows, in nats.

    Parameters
    ----------
    candidates : unfitted `TablePredictor` around densities, by name
    train : training rows
    more : asked with the scores so far for further candidates, until it has none
    cv, key, n_jobs : folds, seed, worker processes
    level : confidence of the intervals

    Examples
    --------
    >>> from groundstate.data import load
    >>> from groundstate import GaussianMixture
    >>> ring = load("rings").features
    >>> sizes = {str(k): TablePredictor(GaussianMixture(k)) for k in (1, 8)}
    >>> compare_densities(sizes, ring).best.name
    '8'
    """
    return choose_density(candidates, train, more=more, cv=cv, key=key, n_jobs=n_jobs, level=level)[
        0
    ]


def choose_density(
    candidates: Mapping[str, Any],
    train: Table,
    *,
    more: Callable[[Mapping[str, float]], Mapping[str, Any]] | None = None,
    cv: int = 5,
    key: int = 0,
    n_jobs: int = 1,
    level: float = 0.95,
) -> tuple[Standings, str]:
    """The ranking of `compare_densities`, and the name of the density to take.

    It is the one with the fewest parameters among those within one standard error of the best: of the
    mean difference of their log densities of held-out rows.
    """
    from joblib import Parallel, delayed

    different = different_rows(train)
    if different < _LEAST:
        raise DataError(
            f"{count(different, 'different training row')} among {train.n_rows:,} "
            f"{'is' if different == 1 else 'are'} too few for a density that is judged on rows it never saw "
            f"(copies of a row are never on both sides): {_LEAST} are needed; to describe so few kinds of "
            "rows, count them"
        )
    parts = folds(train, k=min(cv, different), key=Key.of(key).fold("folds"))
    predicted: dict[str, Prediction] = {}
    entries: dict[str, Entry] = {}
    sizes: dict[str, float] = {}
    while candidates:
        jobs = [(name, i) for name in candidates for i in range(len(parts))]
        found = Parallel(n_jobs=n_jobs)(
            delayed(_fold)(candidates[name], train, parts[i], Key.of(key).fold("fit", name, i))
            for name, i in jobs
        )
        by = dict(zip(jobs, found, strict=True))
        for name in candidates:
            mine = [by[name, i] for i in range(len(parts))]
            failed = [note for note in mine if isinstance(note, str)]
            if failed:
                entries[name] = Entry(name, math.nan, math.nan, math.nan, notes=(failed[0],))
                continue
            values = np.zeros(train.n_rows)
            for part, (judged, _) in zip(parts, mine, strict=True):
                values[part.test_rows] = judged
            sizes[name] = max(size for _, size in mine)
            predicted[name] = Prediction(values)
            seen = interval(METRICS[METRIC], values, predicted[name], level=level, key=key)
            each = tuple(-float(judged.mean()) for judged, _ in mine)
            entries[name] = Entry(name, seen.estimate, seen.low, seen.high, each)
        scores = {name: entry.score for name, entry in entries.items() if not entry.failed}
        candidates = {} if more is None else more(scores)
    if not predicted:
        raise DataError(f"no candidate could be fitted; {next(iter(entries.values())).notes[0]}")
    board = Standings(tuple(entries.values()), METRIC, False, level)
    zeros = np.zeros(train.n_rows)
    for name in tied_with_best(METRICS[METRIC], zeros, predicted, key=Key.of(key).fold("tied")):
        board = board.with_entry(name, tied_with_best=True)
    return board, _simplest({name: one.values for name, one in predicted.items()}, sizes)


def _simplest(values: Mapping[str, NDArray[Any]], sizes: Mapping[str, float]) -> str:
    """The fewest parameters within one standard error of the best mean log density."""
    best = max(values, key=lambda name: float(values[name].mean()))
    near = []
    for name, found in values.items():
        behind = values[best] - found
        error = behind.std(ddof=1) / math.sqrt(len(behind)) if len(behind) > 1 else 0.0
        if behind.mean() <= error:
            near.append(name)
    return min(near, key=lambda name: (sizes[name], -float(values[name].mean())))


def _fold(
    estimator: Any, train: Table, part: Split, key: Key
) -> tuple[NDArray[np.float64], float] | str:
    """Log densities of the held-out rows and the number of parameters, or why there are none."""
    import warnings

    from threadpoolctl import threadpool_limits

    from groundstate.compute.device import threads

    with warnings.catch_warnings(), threadpool_limits(1), threads(1):
        warnings.simplefilter("ignore")
        try:
            rows = train.take(part.train_rows)
            model = fit_clone(estimator, rows, None, np.ones(rows.n_rows), key)  # type: ignore[arg-type]
            judged = held_out_log_density(model, train.take(part.test_rows), key.fold("cells"))
        except Exception as error:  # any estimator may fail in any way; the others go on
            return f"failed: {type(error).__name__}: {' '.join(str(error).split())}"[:300]
    if not np.isfinite(judged).all():
        return "failed: some held-out rows have no finite density"
    energy = model.estimator_.energy_
    return judged, float(sum(p.numel() for p in energy.parameters()))
