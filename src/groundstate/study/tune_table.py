"""``groundstate tune``: the search of an assessment alone, on the same rows and splits."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.errors import DataError, Unsupported
from groundstate.study.candidates import DUMMY, candidates_of, text_in
from groundstate.study.design import choose_design
from groundstate.study.facts import fingerprint
from groundstate.study.numbers import plain
from groundstate.study.question import ask
from groundstate.study.race.field import race_of
from groundstate.study.selection import Scorer
from groundstate.study.tuning import Search


def tune_table(
    source: Any,
    target: str | int | None = None,
    *,
    model: str,
    trials: int = 50,
    storage: str | None = None,
    metric: str | None = None,
    design: str = "auto",
    test: float | None = None,
    folds: int = 5,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Search the settings of one model on the rows and splits that ``assess`` would use.

    Returns
    -------
    dict with ``model``, ``params``, ``score`` (larger is better), ``metric``, ``trials``,
    ``importance``, ``seed`` and the ``hash`` of the table

    Examples
    --------
    >>> found = tune_table("iris", model="LogisticRegression", trials=4)
    >>> sorted(found["params"]), len(found["trials"]), found["score"] > 0.9
    (['C'], 4, True)
    """
    from threadpoolctl import threadpool_limits

    if importlib.util.find_spec("optuna") is None:
        raise Unsupported("tuning needs Optuna; install it with pip install 'groundstate[tune]'")
    question = ask(
        source, None, target=target, metric=metric, test=test, groups=groups, time=time,
        weights=sample_weight, positive=None, cost_fp=None, cost_fn=None, folds=folds, repeats=1,
        level=0.95, budget=None, seed=seed, device=device, design=design, seeds=None,
        bootstrap=None,
    )  # fmt: skip
    found = candidates_of(model, question.task, device, question.n, text_in(question.table))
    names = [name for name in found if name != DUMMY]
    if len(names) != 1:
        raise DataError(f"tune searches the settings of one model, got {', '.join(names) or model}")
    name = names[0]
    key = Key.of(seed)
    with threadpool_limits(1), threads(1):
        made = choose_design(
            question.features, question.y, task=question.task, kind=design, test=question.test,
            groups=question.groups, time=question.time, n_folds=folds, key=key.fold("design"),
        )  # fmt: skip
        rows = np.arange(question.n) if made.kind == "nested" else made.split[0]
        own = key.fold("race", 0)
        sides = made.sides if made.kind == "nested" else None
        race = race_of(question, rows, made.validation, own, question.measure, sides)
        X, y, weight, splits = race.X, race.y, race.weight, race.splits
        score = Scorer(question.measure.name, question.classes)
        search = Search(trials, storage, workers, exact=True)
        result = search(
            found[name], X, y, weight, splits, score, own.fold("tune"), "final", seconds
        )
    if isinstance(result, str):
        raise Unsupported(f"{name} cannot be tuned: {result}")
    facts: dict[str, Any] = plain(
        {
            "model": name,
            "metric": question.measure.name,
            "score": result.score,
            "params": {k.removeprefix("estimator__"): v for k, v in result.params.items()},
            "space": result.space,
            "trials": result.trials,
            "importance": result.importance,
            "seed": seed,
            "hash": fingerprint(question.table),
        }
    )
    # settings are given back as they were tried: rounded they would be other settings
    facts["params"] = {k.removeprefix("estimator__"): v for k, v in result.params.items()}
    return facts
