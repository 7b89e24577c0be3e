"""Every row judged again: the same race on other folds, as often as there is time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groundstate.study.candidates import DUMMY
from groundstate.study.progress import Watch
from groundstate.study.race import names
from groundstate.study.race.blend import ENSEMBLE
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.field import Race


def lap_seconds(race: Race, twins: Mapping[str, str]) -> float:
    """What judging every row once more takes in one process."""
    entries = race.entries.items()
    fits = (e.fit_seconds for n, e in entries if n != ENSEMBLE and n not in twins)
    return sum(fits) * len(race.splits)


def all_laps(
    first: Race,
    make: Callable[[int], Race],
    wanted: int,
    twins: Mapping[str, str],
    eligible: set[str],
    clock: Clock,
    watch: Watch,
    workers: int,
) -> list[Race]:
    """The first race and further ones of the same configurations, up to as many as wanted.

    Parameters
    ----------
    make : the race of a lap, without configurations
    twins : names under which configurations stand a second time
    eligible : configurations that may be chosen
    workers : processes
    """
    known = first.entrants.items()
    single = {name: one for name, one in known if name != ENSEMBLE and name not in twins}
    laps, seconds = [first], lap_seconds(first, twins) / workers
    each = clock.took["intervals"]  # of one lap
    for lap in range(1, wanted):
        race = make(lap)
        clock.keep("intervals", (lap + 1) * each)
        try:
            if not clock.allows(seconds):
                raise OutOfTime
            words, share = f"judging every row again, {lap + 1}", 1 / (wanted - lap)
            with clock.limit(), watch(words, names.REPEATS, share):
                race.run(single, workers)
                race.name_twins(twins)
                if ENSEMBLE in eligible:
                    race.blend(sorted(eligible - {DUMMY, ENSEMBLE}))
        except OutOfTime:
            break
        laps.append(race)
    return laps
