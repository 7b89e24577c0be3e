"""The ensemble as a configuration of the race, as far as there is time to fit it to all rows."""

from __future__ import annotations

from groundstate.study.candidates import DUMMY
from groundstate.study.progress import Watch
from groundstate.study.race.blend import ENSEMBLE
from groundstate.study.race.clock import Clock
from groundstate.study.race.field import Race
from groundstate.study.race.names import FOR_TIME

REFIT = 1.5  # a fit to all rows takes that many times one to a fold's
_SHARE = 0.5  # of the time left, for fitting its members to all rows
_WORDS = f"the ensemble: its members take long to fit ({FOR_TIME})"


def enter_ensemble(
    race: Race, eligible: set[str], clock: Clock, watch: Watch, late: list[str], skipped: list[str]
) -> None:
    """Enter the ensemble of what may be chosen, anew where there was one before.

    Parameters
    ----------
    eligible : configurations that may be chosen, changed in place
    late, skipped : names and words of what was left out for time, changed in place
    """
    race.drop(ENSEMBLE)
    eligible.discard(ENSEMBLE)
    real = sorted(eligible - {DUMMY})
    if len(real) < 2 or ENSEMBLE in clock.without:
        return
    with watch("an ensemble of them"):
        members = race.blend(real)
    if ENSEMBLE in late:  # of fewer configurations, before
        late.remove(ENSEMBLE)
        skipped.remove(_WORDS)
    if not members:
        return
    seconds, before = REFIT * race.entries[ENSEMBLE].fit_seconds, clock.took.get("refit", 0.0)
    if clock.allows(seconds - before, _SHARE):
        eligible.add(ENSEMBLE)
        clock.keep("refit", max(seconds, before))  # tuning leaves it there
    else:
        leave_ensemble(race, eligible, late, skipped)


def leave_ensemble(race: Race, eligible: set[str], late: list[str], skipped: list[str]) -> None:
    """Take it out again: there is no time to fit its members to all rows."""
    race.drop(ENSEMBLE)
    eligible.discard(ENSEMBLE)
    late.append(ENSEMBLE)
    skipped.append(_WORDS)
