"""Settings of a candidate as further configurations of the race."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.study.progress import Watch
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.field import Entrant, Race
from groundstate.study.race.names import TUNING

_ONE = 0.5  # share of the time left that one setting may take
_SLOW, _MORE = 5.0, 1.0  # times as long as the usual settings, and seconds more, at most


def try_settings(
    race: Race,
    recipe: Any,
    name: str,
    trials: list[dict[str, Any]],
    clock: Clock,
    watch: Watch,
    n_jobs: int,
) -> list[tuple[dict[str, Any], float]]:
    """As many settings as there is time for, entered as ``name #1``, ``name #2``, ...

    One that takes much longer than the usual settings is left out, and the next one tried.

    Parameters
    ----------
    n_jobs : processes

    Returns
    -------
    Settings with their mean score over the splits, larger is better
    """
    from sklearn.base import clone

    sign = 1.0 if race.measure.greater_is_better else -1.0
    tried: list[tuple[dict[str, Any], float]] = []
    expected = race.entries[name].fit_seconds * len(race.splits) / n_jobs
    watch.expect(TUNING, expected * len(trials))
    for i, params in enumerate(trials):
        label = f"{name} #{i + 1}"
        entrant = Entrant(clone(recipe).set_params(**params), name, params, earns=True)
        number = f"#{i + 1}"
        if number in clock.without:
            continue
        if not clock.allows(expected, _ONE):
            clock.leave(*(f"#{j + 1}" for j in range(i, len(trials))))
            break
        try:
            with (
                clock.limit(_ONE, most=_SLOW * expected + _MORE),
                watch(f"tuning {name}", TUNING, 1 / (len(trials) - i)),
            ):
                race.run({label: entrant}, n_jobs)
        except OutOfTime:
            clock.leave(number)
            continue
        each = np.asarray(race.entries[label].cv_scores or [np.nan])
        tried.append((params, sign * float(each.mean())))
    watch.expect(TUNING, 0.0)
    return tried
