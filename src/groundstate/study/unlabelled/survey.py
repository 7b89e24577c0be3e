"""A table without a target: which density describes its rows, its groups and its odd ones out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.compute.device import resolve_device, threads
from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.data import Finding, Table, audit, read
from groundstate.errors import DataError
from groundstate.evaluate import METRICS, Interval, Prediction, Split, Standings, train_test
from groundstate.evaluate import interval as interval_of
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.tables.dequantise import held_out_log_density, mean_log_density
from groundstate.models.tables.table import TablePredictor
from groundstate.study.facts import (
    FORMAT,
    LIBRARIES,
    command,
    model_facts,
    settings_facts,
    table_facts,
)
from groundstate.study.numbers import plain, show, show_range, span
from groundstate.study.progress import Progress, Watch
from groundstate.study.question import Settings
from groundstate.study.unlabelled.densities import METRIC, DensitySearch, choose_density
from groundstate.study.unlabelled.described import described
from groundstate.study.unlabelled.filling import filled_cells, filling_facts
from groundstate.study.unlabelled.groups import group_facts
from groundstate.study.unlabelled.maps import Map, map_of
from groundstate.study.unlabelled.outliers import outlier_facts


@dataclass(frozen=True)
class Survey(Displayed):
    """What :func:`survey` found.

    Attributes
    ----------
    board : Standings
        Densities by the mean negative log density of held-out rows.
    chosen : str
    model : TablePredictor
        The best one, fitted to all training rows.
    scores : dict of Interval
        Its score on the test rows.
    energies : (n_rows,)
        Minus the log density of every row, of which the score is a mean: high is unusual.
    groups : (n_rows,) or None
        The group of every row, by the best model that has groups.
    grouping : dict
        Sizes, stability and marks of the groups, and the model that sees them.
    outliers : list of dict
        The rows of highest energy with the cells that cause it.
    filling : list of dict
        How well a hidden cell of each column is filled from the rest of its row.
    filled : polars.DataFrame or None
        The missing cells, filled, with how sure that is.
    map : Map
        Rows in two dimensions.
    """

    table: Table
    settings: Settings
    findings: tuple[Finding, ...]
    split: Split
    board: Standings
    chosen: str
    model: TablePredictor
    scores: dict[str, Interval]
    energies: NDArray[np.float64]
    groups: NDArray[np.int64] | None
    grouping: dict[str, Any]
    outliers: list[dict[str, Any]]
    filling: list[dict[str, Any]]
    filled: pl.DataFrame | None
    map: Map
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        groups = "" if self.groups is None else f", {len(np.unique(self.groups))} groups"
        return (
            f"{self.chosen}: {METRIC} {self.scores[METRIC]} of {self.table.n_rows:,} rows{groups}"
        )


def survey(
    source: Any,
    *,
    models: str = "auto",
    test: float = 0.25,
    seed: int = 0,
    cv: int = 5,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Describe the rows of a table by a density chosen on held-out rows.

    Parameters
    ----------
    source : a `Table` or anything `data.read` takes; a target it names is left out
    models, test, seed, cv, workers, device, progress : as in `study`

    Examples
    --------
    >>> found = survey("rings", models="GaussianMixture")
    >>> found.chosen, np.bincount(found.groups).tolist()
    ('GaussianMixture(8, diag)', [100, 100, 100, 100, 100, 100, 100, 100])
    """
    from threadpoolctl import threadpool_limits

    watch = Watch(progress)
    with watch("reading the table"):
        table, left_out = described(read(source).features)
        if cv < 2 or workers == 0:
            raise DataError(f"cross-validation needs 2 folds and 1 worker, got {cv} and {workers}")
        if device is not None:
            resolve_device(device)
        split = train_test(table, test=test, key=seed)
        train, rest = table.take(split.train_rows), table.take(split.test_rows)
        search = DensitySearch(models, train, device)
        candidates = search.start()
    with threadpool_limits(1), threads(1):
        with watch("auditing the table"):
            findings = (*left_out, *audit(table))
        with watch(f"comparing {len(candidates)} densities on {train.n_rows:,} training rows"):

            def more(scores: Mapping[str, float]) -> dict[str, TablePredictor]:
                larger = search.more(scores)
                candidates.update(larger)
                return larger

            board, chosen = choose_density(
                candidates, train, more=more, cv=cv, key=seed, n_jobs=workers
            )
            model = _refit(candidates, chosen, train, seed)
        with watch(f"looking at {rest.n_rows:,} test rows, once"):
            judged = held_out_log_density(model, rest, Key.of(seed).fold("cells"))
            seen = interval_of(METRICS[METRIC], judged, Prediction(judged), key=seed)
        key = Key.of(seed)
        with watch("naming the odd rows and why they are odd"):
            energies = -mean_log_density(model, table, Key.of(seed).fold("energies"))
            outliers = outlier_facts(model, table, energies, key.fold("outliers"))
        with watch("judging how stable the groups are"):
            groups, grouping = _groups(candidates, board, chosen, model, table, train, seed)
        with watch("filling cells from the rest of their rows"):
            filling = filling_facts(model, train, rest, key.fold("filling"))
            filled = filled_cells(model, table, key.fold("filled"))
        with watch("drawing a map of the rows"):
            drawn = map_of(model, table, key.fold("map"))
    names = dict.fromkeys(name.partition("(")[0] for name in candidates)
    settings = Settings(
        seed, test, cv, 0.95, METRIC, tuple(candidates), device, spec=",".join(names)
    )
    board = board.with_entry(
        chosen, test_score=seen.estimate, test_low=seen.low, test_high=seen.high
    )
    return Survey(
        table=table,
        settings=settings,
        findings=findings,
        split=split,
        board=board,
        chosen=chosen,
        model=model,
        scores={METRIC: seen},
        energies=energies,
        groups=groups,
        grouping=grouping,
        outliers=outliers,
        filling=filling,
        filled=filled,
        map=drawn,
        seconds=watch.seconds,
    )


def _refit(candidates: Mapping[str, Any], name: str, train: Table, seed: int) -> TablePredictor:
    """One candidate, fitted to all training rows."""
    key = Key.of(seed).fold("refit", name)
    found: TablePredictor = fit_clone(candidates[name], train, None, np.ones(train.n_rows), key)  # type: ignore[arg-type]
    return found


def _groups(
    candidates: Mapping[str, Any],
    board: Standings,
    chosen: str,
    model: TablePredictor,
    table: Table,
    train: Table,
    seed: int,
) -> tuple[NDArray[np.int64] | None, dict[str, Any]]:
    """Groups of all rows by the chosen candidate, or the best that has any, with what is known."""
    ranked = [e.name for e in board if not e.failed and hasattr(candidates[e.name], "predict")]
    if not ranked:
        return None, {}
    best = chosen if chosen in ranked else ranked[0]
    if best != chosen:
        model = _refit(candidates, best, train, seed)
    _, groups = np.unique(np.asarray(model.predict(table)), return_inverse=True)
    found = group_facts(candidates[best], table, groups, Key.of(seed).fold("groups"))
    several = [
        name for name in board.tied
        if name in ranked and candidates[name].estimator.get_params().get("n_components", 1) > 1
    ]  # fmt: skip
    return groups, {"model": best, "several": several, **found}


def survey_facts(found: Survey) -> dict[str, Any]:
    """Everything a reader or a program needs to know, a function of the table and the settings."""
    settings = found.settings
    groups = [] if found.groups is None else np.bincount(found.groups).tolist()
    n = len(found.split.test_rows)
    facts = plain(
        {
            "groundstate_report": FORMAT,
            "task": "density",
            "data": {**table_facts(found.table), "findings": [f.to_dict() for f in found.findings]},
            "design": {
                "kind": "holdout",
                "reason": "rows set aside once",
                "development": len(found.split.train_rows),
                "judged": n,
                "outer_folds": None,
                "repeats": 1,
                "candidates_compared_on": "folds",
                **settings_facts(settings),
            },
            "chosen": found.chosen,
            "candidates": found.board.to_dict(times=False),
            "scores": {name: span(value, n) for name, value in found.scores.items()},
            "comparison": {
                "metric": METRIC,
                "chosen": found.chosen,
                "tied": list(found.board.tied),
                "test": [],
            },
            "ledger": {"looks": 1, "clean": True, "recorded": False, "log": ["report"]},
            "groups": groups,
            "energy": {"median": float(np.median(found.energies))},
            "outliers": found.outliers,
            "grouping": found.grouping,
            "filling": {
                "columns": found.filling,
                "missing": 0 if found.filled is None else len(found.filled),
            },
            "map": {"name": found.map.name, "trust": found.map.trust, "rows": len(found.map.rows)},
            "model": model_facts(found.model),
            "skipped": [],
            "reproduce": {
                "command": command(found.table, settings),
                "seed": settings.seed,
                "versions": {name: version(name) for name in LIBRARIES},
            },
        }
    )
    return {"verdict": _verdict(facts), **facts}


def _verdict(facts: dict[str, Any]) -> list[str]:
    score = facts["scores"][METRIC]
    between = show_range(score["lo"], score["hi"])
    entries = facts["candidates"]["entries"]
    best = entries[0]["name"] if entries else facts["chosen"]
    how = "best" if best == facts["chosen"] else f"as well as {best}, with fewer parameters"
    first = (
        f"{facts['chosen']} describes the rows {how}: {show(score['value'])} nats per row on "
        f"{score['n']:,} rows it had never seen (95% interval {between}; lower is better)."
    )
    others = [name for name in facts["comparison"]["tied"] if name not in (facts["chosen"], best)]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        first += f" {', '.join(others[:3])}{more} cannot be told apart from it."
    return [first, _about_groups(facts), _about_odd(facts)]


def _about_groups(facts: dict[str, Any]) -> str:
    sizes, grouping = facts["groups"], facts["grouping"]
    if not sizes:
        return "It describes a row by a code of fewer numbers, not by groups."
    who = (
        "It"
        if grouping["model"] == facts["chosen"]
        else f"{grouping['model']}, the best with groups,"
    )
    if len(sizes) == 1:
        several = [name for name in grouping["several"] if name != grouping["model"]]
        if not several:
            return f"{who} sees one group: nothing here suggests several."
        more = f" and {len(several) - 1} more" if len(several) > 1 else ""
        return (
            f"{who} sees one group; but {several[0]}{more}, made of several, cannot be told apart from the "
            "best: more rows would tell."
        )
    if len(sizes) <= 8:
        listed = f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]} rows"
    else:
        listed = f"{min(sizes)} to {max(sizes)} rows"
    agree = grouping["agreement"]["mean"]
    firm = "stable" if agree >= 0.8 else "partly stable" if agree >= 0.5 else "not stable"
    return (
        f"{who} sees {len(sizes)} groups, of {listed}, {firm} when half of the rows are left out "
        f"(agreement {show(agree)}, 1 is perfect)."
    )


def _about_odd(facts: dict[str, Any]) -> str:
    odd = facts["outliers"][0]
    third = (
        f"The least typical row is number {odd['row']}, with an energy of {show(odd['energy'])} "
        f"where the median is {show(facts['energy']['median'])}"
    )
    why = [reason_words(reason) for reason in odd["reasons"][:1]]
    why += [missing_words(odd["missing"])] if odd["missing"] else []
    return f"{third}: {'; '.join(why)}." if why else f"{third}."


def missing_words(columns: Sequence[str]) -> str:
    """Which cells of a row are missing, in words.

    >>> missing_words(["age"]), missing_words(list("abcdef"))
    ('age is missing', 'a, b, c and 3 more are missing')
    """
    if len(columns) == 1:
        return f"{columns[0]} is missing"
    if len(columns) > 4:
        return f"{', '.join(columns[:3])} and {len(columns) - 3} more are missing"
    return f"{', '.join(columns[:-1])} and {columns[-1]} are missing"


def reason_words(reason: dict[str, Any]) -> str:
    """Why a cell is odd, in words."""
    name, value, expected = reason["column"], reason["value"], reason["expected"]
    word = "usual" if reason.get("alone") else "expected"
    if isinstance(value, str):
        return f"{name} is {value}, where {expected} is {word}"
    here, low, high = (f"{v:.4g}".replace("-", "−", 1 if v < 0 else 0) for v in (value, *expected))
    return f"{name} is {here}, where {low if low == high else f'{low} to {high}'} is {word}"
