"""A table without a target: which density describes its rows, its groups and its odd ones out."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.device import resolve_device, threads
from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.data import Finding, Table, audit, read
from groundstate.errors import DataError
from groundstate.evaluate import METRICS, Interval, Prediction, Split, Standings, train_test
from groundstate.evaluate import interval as interval_of
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.tables.table import TablePredictor
from groundstate.study.densities import METRIC, compare_densities, density_models
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

_OUTLIERS = 10


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
        Free energy of every row: high is unusual.
    groups : (n_rows,) or None
        The group of every row, for models that have groups.
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
    ('GaussianMixture(8)', [100, 100, 100, 100, 100, 100, 100, 100])
    """
    from threadpoolctl import threadpool_limits

    watch = Watch(progress)
    with watch("reading the table"):
        table = read(source).features
        if cv < 2 or workers == 0:
            raise DataError(f"cross-validation needs 2 folds and 1 worker, got {cv} and {workers}")
        if device is not None:
            resolve_device(device)
        split = train_test(table, test=test, key=seed)
        train, rest = table.take(split.train_rows), table.take(split.test_rows)
        candidates = density_models(models, train, device)
        names = dict.fromkeys(name.partition("(")[0] for name in candidates)
        settings = Settings(
            seed, test, cv, 0.95, METRIC, tuple(candidates), device, spec=",".join(names)
        )
    with threadpool_limits(1), threads(1):
        with watch("auditing the table"):
            findings = tuple(audit(table))
        with watch(f"comparing {len(candidates)} densities on {train.n_rows:,} training rows"):
            board = compare_densities(candidates, train, cv=cv, key=seed, n_jobs=workers)
            chosen = board.best.name
            key = Key.of(seed).fold("refit", chosen)
            model = fit_clone(candidates[chosen], train, None, np.ones(train.n_rows), key)  # type: ignore[arg-type]
        with watch(f"looking at {rest.n_rows:,} test rows, once"):
            judged = np.asarray(model.score_samples(rest), np.float64)
            seen = interval_of(METRICS[METRIC], judged, Prediction(judged), key=seed)
        energies = -np.asarray(model.score_samples(table), np.float64)
        groups = np.asarray(model.predict(table)) if hasattr(model, "predict") else None
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
        seconds=watch.seconds,
    )


def survey_facts(found: Survey) -> dict[str, Any]:
    """Everything a reader or a program needs to know, a function of the table and the settings."""
    settings = found.settings
    odd = np.argsort(-found.energies, kind="stable")[:_OUTLIERS]
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
            "outliers": [{"row": int(i) + 1, "energy": float(found.energies[i])} for i in odd],
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
    first = (
        f"{facts['chosen']} describes the rows best: {show(score['value'])} nats per row on "
        f"{score['n']:,} rows it had never seen (95% interval {between}; lower is better)."
    )
    others = [name for name in facts["comparison"]["tied"] if name != facts["chosen"]]
    rivals = f"; {', '.join(others)} cannot be told apart from it" if others else ""
    sizes = [n for n in facts["groups"] if n]
    if len(sizes) > 1:
        listed = f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]} rows"
        second = f"It sees {len(sizes)} groups, of {listed}{rivals}."
    elif sizes:
        second = f"It sees one group: nothing here suggests several{rivals}."
    else:
        second = f"It describes a row by a code of fewer numbers, not by groups{rivals}."
    odd = facts["outliers"][0]
    third = (
        f"The least typical row is number {odd['row']}, with an energy of {show(odd['energy'])} "
        f"where the median is {show(facts['energy']['median'])}."
    )
    return [first, second, third]
