"""What a search found, as arrays and in two lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from groundstate.tune.samplers.rounds import slot_of
from groundstate.tune.space import Space


def finished(study: Any) -> list[Any]:
    """Trials that have ended, by their places; those that died with a process were done again."""
    trials = study.get_trials(deepcopy=False)
    ended = (t for t in trials if t.state.is_finished() and not t.user_attrs.get("lost"))
    return sorted(ended, key=slot_of)


def cv_results(trials: list[Any], space: Space) -> dict[str, Any]:
    """One entry for each finished trial, with the names of scikit-learn's searches."""
    params = [space.decode(trial.params) if trial.params else {} for trial in trials]
    tables = [np.asarray(t.user_attrs.get("risks", [[np.nan]]), float) for t in trials]
    splits = max((len(table) for table in tables), default=1)
    scores = np.full((len(trials), splits), np.nan)
    for i, table in enumerate(tables):
        scores[i, : len(table)] = -table.mean(1)
    complete = np.array([trial.state.name == "COMPLETE" for trial in trials], bool)
    mean = np.array([-t.value if t.state.name == "COMPLETE" else np.nan for t in trials], float)
    rank = np.full(len(trials), complete.sum() + 1, int)
    good = np.flatnonzero(complete)
    rank[good] = [int((mean[good] > mean[i]).sum()) + 1 for i in good]
    found: dict[str, Any] = {
        "params": params,
        "mean_test_score": mean,
        "std_test_score": np.where(complete, scores.std(1), np.nan),
        "rank_test_score": rank,
        "mean_fit_time": np.array([t.user_attrs.get("seconds", np.nan) for t in trials], float),
        "rows": np.array([t.user_attrs.get("rows", 0.0) for t in trials], float),
        "state": np.array([trial.state.name.lower() for trial in trials]),
        "error": [trial.user_attrs.get("error") for trial in trials],
    }
    for k in range(splits):
        found[f"split{k}_test_score"] = scores[:, k]
    for name in sorted({name for row in params for name in row}):
        column = np.ma.masked_all(len(trials), dtype=object)
        for i, row in enumerate(params):
            if name in row:
                column[i] = row[name]
        found[f"param_{name}"] = column
    return found


def summary(params: Mapping[str, Any], score: float, k: int, n: int, best: Any) -> str:
    r"""Two lines: the winner, and how optimistic its score is as the best of k.

    The guide is :math:`s\sqrt{2\log k/n}`, with :math:`s = \sqrt{p(1-p)}` for a share p and the
    spread over the folds otherwise.
    """
    text = ", ".join(f"{name}={_short(value)}" for name, value in params.items())
    first = f"best of {k} settings: {text} with a score of {score:.4g}"
    if 0.0 <= score <= 1.0:
        guide = math.sqrt(2.0 * math.log(max(k, 1)) * score * (1.0 - score) / n)
    else:
        table = np.asarray(best.user_attrs.get("risks", [[0.0]]), float).mean(1)
        guide = float(table.std()) * math.sqrt(2.0 * math.log(max(k, 1)) / len(table))
    second = (
        f"as the best of {k} on {n} rows it is up to about {guide:.2g} too high; "
        "only rows that took no part in the search tell"
    )
    return f"{first}\n{second}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
