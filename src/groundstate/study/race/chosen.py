"""The configuration to take from a race, fitted to all its rows."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from groundstate.compute.random import Key
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.tables.table import TablePredictor
from groundstate.study.candidates import DUMMY
from groundstate.study.progress import Watch
from groundstate.study.race.blend import ENSEMBLE
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.ensemble import leave_ensemble
from groundstate.study.race.field import Race
from groundstate.study.race.names import FOR_TIME

_ONE = 0.5  # share of the time left that one fit may take


def fit_chosen(
    race: Race,
    eligible: set[str],
    models: dict[str, Any],
    features: Any,
    key: Key,
    clock: Clock,
    watch: Watch,
    late: list[str],
    skipped: list[str],
) -> str:
    """The configuration to take; one whose fit to all rows takes too long is left out.

    Parameters
    ----------
    eligible : configurations that may be chosen, of which those left out are dropped
    models : fitted models by configuration, to which the chosen one is added
    features : the table's columns of the rows of the race
    late, skipped : what was left out, and in words why
    """
    while True:
        name = race.choose(among=eligible)
        if name in models:
            return name
        one = race.entrants[name]
        last, start = len(eligible) < 3, clock.now()
        try:
            with (
                nullcontext() if last else clock.limit(_ONE, clock.spare),
                watch(f"fitting {one.candidate} to all rows"),
            ):
                models[name] = made = fit_clone(
                    one.recipe, race.X, race.y, race.weight, key.fold("refit", name)
                )
                if isinstance(made, TablePredictor) and name != DUMMY:
                    made.keep_background(features)
            clock.keep("refit", clock.now() - start)
        except OutOfTime:
            if name == ENSEMBLE:
                leave_ensemble(race, eligible, late, skipped)
                continue
            eligible.discard(name)
            late.append(name)
            skipped.append(f"{name}: its fit to all rows takes too long ({FOR_TIME})")
