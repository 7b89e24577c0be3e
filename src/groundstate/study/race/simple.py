"""What every candidate is seen beside: a constant answer, one question, a straight line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundstate.errors import DataError
from groundstate.study.candidates import DUMMY, baselines
from groundstate.study.progress import Watch
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.field import Entrant, Race

_SHARE = 0.2  # of the time left, for a simple model


def twins_of(task: str, candidates: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Simple models that are candidates as well, which are fitted once: name to candidate.

    >>> from groundstate.study.candidates import candidates_of
    >>> twins_of("regression", candidates_of("Ridge", "regression"), ["Ridge"])
    {'linear': 'Ridge'}
    """
    made = {repr(candidates[name]): name for name in names}
    return {who: made[repr(m)] for who, m in baselines(task).items() if repr(m) in made}


def enter_constant(race: Race, dummy: Any) -> None:
    """Enter the answer that every model has to beat."""
    race.run({DUMMY: Entrant(dummy, DUMMY)})
    if DUMMY not in race.losses:
        notes = race.entries[DUMMY].notes
        raise DataError(f"not even a constant answer could be judged; {notes[0]}")


def enter_simple(race: Race, twins: Mapping[str, str], clock: Clock, watch: Watch) -> list[str]:
    """Enter the simple models that are no candidates; those that took too long."""
    late = []
    for who, base in baselines(race.question.task).items():
        if who == DUMMY or who in twins:
            continue
        if who in clock.without:
            continue
        try:
            with clock.limit(_SHARE), watch("simple models to compare with"):
                race.run({who: Entrant(base, who)})
        except OutOfTime:
            clock.leave(who)
            late.append(who)
    return late
