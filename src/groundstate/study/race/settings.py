"""Settings of the best candidates as further configurations of the race.

The best candidate's come first and take as much of the time as there is; those of the next ones follow, as
many as fit into a share of what is left. Only the gain over the best candidate as it comes decides whether
any is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.study.numbers import show_beside
from groundstate.study.progress import Watch
from groundstate.study.race.blend import ENSEMBLE
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.field import Entrant, Race
from groundstate.study.race.names import FOR_TIME, TUNING
from groundstate.study.selection import Tuned
from groundstate.study.tuning import Search, tuned_by

NO_TIME = "there was no time for it"
_ONE = 0.5  # share of the time left that one setting may take
_SLOW, _MORE = 5.0, 1.0  # times as long as the usual settings, and seconds more, at most
_NEXT = 2  # candidates after the best whose settings are tried
_ALL = 0.4  # share of the time left that the settings of one of them may take
_FEWEST = 3  # settings, below which none of them are tried

Tried = list[tuple[dict[str, Any], float]]


@dataclass(frozen=True)
class Plan:
    """Settings to try of a candidate, as ``name #1``, ``name #2``, ... counted from ``before``."""

    name: str
    recipe: Any
    trials: list[dict[str, Any]]
    before: int = 0

    @property
    def numbers(self) -> list[str]:
        """Their numbers."""
        return [f"#{self.before + i + 1}" for i in range(len(self.trials))]

    @property
    def labels(self) -> list[str]:
        """Their names in the race."""
        return [f"{self.name} {number}" for number in self.numbers]


def planned(
    race: Race, candidates: Mapping[str, Any], real: set[str], search: Search | None, key: Key
) -> list[Plan] | str:
    """Settings to try, those of the best candidate first, or why there are none.

    Parameters
    ----------
    real : candidates that have settings and may be chosen
    """
    if not real:
        return "the dummy has nothing to tune"
    if search is None:
        return "not asked for"
    best = race.choose(among=real)
    rest = [name for name in real if name != best and name in race.losses]
    rest.sort(key=lambda name: (race.risk(name, race.judged), name))
    plans: list[Plan] = []
    for name in (best, *rest):
        trials = search.proposals(candidates[name], key.fold("tune", name))
        if not isinstance(trials, str):
            before = search.n_trials * len(plans)
            plans.append(Plan(name, candidates[name], trials, before))
        elif name == best:
            return trials
        if len(plans) > _NEXT:
            break
    return plans


def tune(
    plans: list[Plan],
    race: Race,
    eligible: set[str],
    clock: Clock,
    watch: Watch,
    late: list[str],
    skipped: list[str],
    workers: Callable[[Any], int],
) -> tuple[Tuned | None, str]:
    """Try the settings; what was found of the candidate that they helped most, and why it is not taken.

    Parameters
    ----------
    eligible : configurations that may be chosen, to which those that could be fitted are added
    late, skipped : names and words of what was left out for time, changed in place
    workers : processes for the fits of a candidate
    """
    found: dict[str, Tried] = {}
    for plan in plans:
        first, jobs = plan is plans[0], workers(plan.recipe)
        if not first:
            _shorten(plan, race, clock, jobs)
        found[plan.name] = _try(plan, race, clock, watch, jobs)
        wanted = sum(number not in clock.without for number in plan.numbers)
        tried = len(found[plan.name])
        if tried < wanted:
            late += [TUNING] if first else []
            words = f"{tried} of {wanted} settings tried" if tried else "no setting tried"
            whose = TUNING if first else f"settings of {plan.name}"
            skipped.append(f"{whose}: {words} ({FOR_TIME})")
    watch.expect(TUNING, 0.0)
    owner = {label: plan for plan in plans for label in plan.labels if label in race.losses}
    eligible |= set(owner)
    if not owner:
        return None, NO_TIME if TUNING in late else "no setting could be fitted"
    best = min(owner, key=lambda label: race.risk(label, race.judged))
    plan, params = owner[best], race.entrants[best].params
    with watch("what the settings explain"):
        tuned = replace(tuned_by(plan.recipe, found[plan.name], params), name=plan.name)
    chosen = race.choose(among=eligible - {ENSEMBLE})
    if chosen == best:
        return tuned, ""
    gain, error = race.gain(best, chosen, race.judged)
    both = [show_beside(v, max(abs(gain), error, 1e-3)) for v in (gain, error)]
    return tuned, (
        "the best setting tried gains no more over the usual ones than one standard error "
        f"of that gain ({both[0]}, error {both[1]}), so the usual ones stay"
    )


def _shorten(plan: Plan, race: Race, clock: Clock, n_jobs: int) -> None:
    """Leave out settings at the end that do not fit into the share of the time left."""
    each = race.entries[plan.name].fit_seconds * len(race.splits) / n_jobs
    wanted = [number for number in plan.numbers if number not in clock.without]
    fitting = next((k for k in range(len(wanted), 0, -1) if clock.allows(k * each, _ALL)), 0)
    if fitting < min(_FEWEST, len(wanted)):
        fitting = 0
    clock.leave(*wanted[fitting:])


def _try(plan: Plan, race: Race, clock: Clock, watch: Watch, n_jobs: int) -> Tried:
    """As many settings as there is time for, with their mean score over the splits, larger is better.

    One that takes much longer than the usual settings is left out, and the next one tried.
    """
    from sklearn.base import clone

    sign = 1.0 if race.measure.greater_is_better else -1.0
    tried: Tried = []
    expected = race.entries[plan.name].fit_seconds * len(race.splits) / n_jobs
    watch.expect(TUNING, expected * len(plan.trials))
    for i, (params, number, label) in enumerate(zip(plan.trials, plan.numbers, plan.labels)):
        if number in clock.without or number in clock.left_out:
            continue
        if not clock.allows(expected, _ONE):
            clock.leave(*plan.numbers[i:])
            break
        entrant = Entrant(clone(plan.recipe).set_params(**params), plan.name, params, earns=True)
        try:
            with (
                clock.limit(_ONE, most=_SLOW * expected + _MORE),
                watch(f"tuning {plan.name}", TUNING, 1 / (len(plan.trials) - i)),
            ):
                race.run({label: entrant}, n_jobs)
        except OutOfTime:
            clock.leave(number)
            continue
        each = np.asarray(race.entries[label].cv_scores or [np.nan])
        tried.append((params, sign * float(each.mean())))
    return tried
