"""The stages of a study: a first answer, a chosen model, tuned settings, then the evidence.

After each stage there is a whole `Assessment`; later ones are better founded, never of another kind.
A time budget decides how many stages there are, never a number inside one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data import Finding
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.rows import take
from groundstate.study.assess import Assessment
from groundstate.study.audit import audit_after, audit_before, ordered
from groundstate.study.candidates import DUMMY
from groundstate.study.design import (
    REPEATS,
    Size,
    choose_design,
    first_candidate,
    usual_repeats,
    usual_workers,
)
from groundstate.study.progress import Watch
from groundstate.study.question import Question, Settings
from groundstate.study.race import names
from groundstate.study.race.blend import ENSEMBLE
from groundstate.study.race.chosen import fit_chosen
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.ensemble import REFIT, enter_ensemble
from groundstate.study.race.evidence import explained, refitted, with_curves
from groundstate.study.race.field import Entrant, Race, race_of
from groundstate.study.race.held_rows import on_folds, on_test_rows
from groundstate.study.race.judged import Judged, assessed
from groundstate.study.race.laps import all_laps, lap_seconds
from groundstate.study.race.plan import PART, Pace, nominal_parts
from groundstate.study.race.settings import NO_TIME, planned, tune
from groundstate.study.race.simple import enter_constant, enter_simple, twins_of
from groundstate.study.selection import Developed, Tuned
from groundstate.study.tuning import Search

_ONE, _CANDIDATE = 0.5, 0.4  # of the time left, for a part, a candidate
_KEPT = 0.3  # of the time left, for a candidate's fit to all rows: the ensemble has others too
_INTERIM = 0.15  # of the time left, for an answer while the choice is open
_FIRST_SECONDS = 10.0  # the least of the first candidate
_ANSWER = 5.0  # seconds that an answer takes before one was timed: a fit, intervals, the report
_FOR_TIME = names.FOR_TIME


@dataclass
class Stages:
    """Runs a study stage by stage.

    Parameters
    ----------
    question, candidates : what is asked, and the unfitted models by name
    search : settings to try, or None
    measure : what configurations are chosen by
    n_jobs : processes, None for as many as pay
    ledger : where looks are counted
    watch, clock : who logs the stages, and the time there is
    quick : end with the first choice among all candidates
    heard : what is known is reported while the choice is open, which takes time
    """

    question: Question
    candidates: dict[str, Any]
    search: Search | None
    measure: Metric
    n_jobs: int | None
    ledger: str | Path | None
    watch: Watch
    clock: Clock
    quick: bool = False
    heard: bool = True
    skipped: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    models: dict[str, Any] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    def __iter__(self) -> Iterator[Assessment]:
        question, settings = self.question, self.question.settings
        self.key = key = Key.of(settings.seed)
        with self.watch("auditing the table"):
            self.findings: tuple[Finding, ...] = audit_before(question)
            tune = 0 if self.search is None else self.search.n_trials
            self.size = Size.of_table(question.table, question.classes)
            few = usual_repeats(self.candidates, self.size, settings.folds, tune)
            wanted = settings.repeats or (few if self.clock.budget is None else REPEATS)
            self.whole = choose_design(
                question.features, question.y, task=question.task, kind=settings.design,
                test=question.test, groups=question.groups, time=question.time,
                n_folds=settings.folds, repeats=wanted, key=key.fold("design"),
            )  # fmt: skip
            self.nested = self.whole.kind == "nested"
            k = self.whole.n_folds
            self.design = replace(self.whole, sides=self.whole.sides[:k], repeats=1)
            self.rows = np.arange(question.n) if self.nested else self.whole.split[0]
            self.race = self._race(0)
            again = self.whole.repeats if self.nested else 1
            folds = len(self.race.splits)
            parts = nominal_parts(self.candidates, self.size, folds, tune, again, self.quick)
            self.watch.plan(parts, self.clock)
        self.tuned: Tuned | None = None
        self.untuned = "not asked for" if self.search is None else ""
        yield from self._select()
        found = yield from self._settle()
        yield from self._evidence(found)

    # --- selection ---------------------------------------------------------------------------

    def _workers(self, seconds: float) -> int:
        return self.n_jobs or usual_workers(seconds, self.whole)

    def _race(self, lap: int) -> Race:
        key = self.key.fold("race", lap)
        if not self.nested:
            return race_of(self.question, self.rows, self.whole.validation, key, self.measure)
        k = self.whole.n_folds
        sides = self.whole.sides[lap * k : (lap + 1) * k]
        return race_of(self.question, self.rows, None, key, self.measure, sides)

    def _select(self) -> Iterator[Assessment]:
        """The first answer, a model chosen soon, all candidates, tuned settings, an ensemble of them."""
        everyone = [name for name in self.candidates if name != DUMMY]
        first = first_candidate(self.candidates, self.size)
        self.eligible = {DUMMY}
        self.twins = twins_of(self.question.task, self.candidates, [first] if first else [])
        enter_constant(self.race, self.candidates[DUMMY])
        if first is not None:
            self._enter(first, first=True)
        self.race.name_twins(self.twins)
        rest = [name for name in everyone if name != first]
        more = rest or (self.search is not None and not self.quick)
        if self.heard and more and self.clock.allows(_ANSWER):  # else the first answer is the last
            yield self._interim(names.FIRST)
        late = enter_simple(self.race, self.twins, self.clock, self.watch)
        if late:
            self.skipped.append(f"simple models, for time: {', '.join(late)} ({_FOR_TIME})")
        later, soon = [], self.heard and not self.quick
        for name in rest:  # in the order of the list, which begins with what pays most often
            until = self.clock.until_soon() - self._answer() if soon else math.inf
            if self._expected(name) > until or not self._enter(name, until=until):
                later.append(name)
        if self.heard and 0 < len(later) < len(rest):
            yield self._interim(names.CANDIDATES, *names.AFTER[names.FIRST][:1])
        for name in later:
            self._enter(name)
        if self.late:
            self.skipped.append(f"candidates, for time: {', '.join(self.late)} ({_FOR_TIME})")
        self._blend()
        if self.quick:
            self.untuned = "not asked for (--quick)"
            self.skipped.append("refits, curves and the diagnosis: not asked for (--quick)")
            return
        real = self.eligible - {DUMMY, ENSEMBLE}
        self.plans = planned(self.race, self.candidates, real, self.search, self.key)
        answer = sum(self.clock.took.values())
        news = set(later or rest) - set(self.late)  # who came after the last answer
        asked = self.heard and isinstance(self.plans, list) and news
        if asked and self.clock.allows(answer, _INTERIM):
            yield self._interim(names.CANDIDATES)
        self._tune()
        self._blend()

    def _expected(self, name: str, *, kept: bool = False) -> float:
        """Seconds in which a candidate is compared, and fitted to all rows where it is kept."""
        fits = len(self.race.splits) + (REFIT if kept else 0.0)
        prepared = self.race.entries[DUMMY].fit_seconds
        return fits * (prepared + self.pace.of(self.size.of(self.candidates[name])))

    def _answer(self) -> float:
        """Seconds that an answer takes: what may be chosen fitted to all rows, intervals, the report."""
        took = self.clock.took
        fits = [self.race.entries[name].fit_seconds for name in self.eligible]
        return sum(took.values()) + max(REFIT * max(fits) - took.get("refit", 0.0), 0.0)

    def _enter(self, name: str, *, first: bool = False, until: float = math.inf) -> bool:
        """Compare a candidate, unless it would take more than its share of the time.

        The first candidate is compared in any case, for otherwise there is no answer. False where
        that was not done after so many seconds, and there is time for it later.
        """
        model = self.candidates[name]
        nominal, prepared = self.size.of(model), self.race.entries[DUMMY].fit_seconds
        folds = len(self.race.splits)
        least = _FIRST_SECONDS if first else 0.0
        try:
            if not first and not self.clock.allows(self._expected(name, kept=True), _CANDIDATE):
                raise OutOfTime
            share = 1.0 if first else _ONE
            with self.clock.limit(share, least, until), self.watch(f"comparing {name}", name):
                self.race.run({name: Entrant(model, name)}, self._workers(folds * nominal))
        except OutOfTime:
            if until < math.inf and self.clock.until_soon() < self.clock.left():
                self.watch.expect(name, self._expected(name))
                return False
            self.watch.expect(name, 0.0)
            self._leave(name)
            return True
        seconds = self.race.entries[name].fit_seconds
        self.pace.saw(nominal, seconds - prepared)
        if name not in self.race.losses:
            return True
        if first or self.clock.allows(REFIT * seconds, _KEPT):
            self.eligible.add(name)
        else:  # there is no time to fit it to all rows
            self.race.drop(name)
            self._leave(name)
        return True

    def _ran(self, found: Assessment) -> Settings:
        left = [*self.clock.left_out, *([ENSEMBLE] if ENSEMBLE in self.late else [])]
        return self.question.settings.again(left, found.design.repeats if self.nested else None)

    def _leave(self, name: str) -> None:
        self.late.append(name)
        self.clock.leave(name)

    def _blend(self) -> None:
        """An ensemble of what is in the race, where candidates were not named one by one."""
        self.models.pop(ENSEMBLE, None)
        if self.question.settings.spec in ("auto", "all"):
            enter_ensemble(
                self.race, self.eligible, self.clock, self.watch, self.late, self.skipped
            )

    def _tune(self) -> None:
        """Settings of the best candidates as further configurations of the race."""
        if isinstance(self.plans, str):
            self.watch.expect(names.TUNING, 0.0)
            self.untuned = self.plans
            return
        self.tuned, self.untuned = tune(
            self.plans, self.race, self.eligible, self.clock, self.watch, self.late, self.skipped,
            lambda recipe: self._workers(self.size.of(recipe) * len(self.race.splits)),
        )  # fmt: skip

    # --- judging -----------------------------------------------------------------------------

    def _developed(self) -> Developed:
        """The configuration to take from what is in the race now, fitted to all its rows."""
        race = self.race
        features = take(self.question.table.features, self.rows)
        name = fit_chosen(
            race, self.eligible, self.models, features, self.key, self.clock, self.watch,
            self.late, self.skipped,
        )  # fmt: skip
        one = race.entrants[name]
        shown = [n for n in race.entries if n in self.candidates or n == ENSEMBLE]
        return Developed(
            race.ranked(name, shown), one.candidate, one.recipe, one.params, self.tuned,
            self.untuned, self.models[name], race.predictions[name],
        )  # fmt: skip

    def _interim(self, stage: str, *missing: str) -> Assessment:
        """What is known while the choice is open; rows set aside stay closed."""
        found = self._assessed(self._judged([self.race]), self._developed(), stage)
        return replace(found, unfinished=(*missing, *names.AFTER[stage]))

    def _judged(self, laps: list[Race]) -> Judged:
        return on_folds(self.question, laps, self.eligible, self.whole, self.rows)

    def _assessed(self, judged: Judged, developed: Developed, stage: str) -> Assessment:
        start = self.clock.now()
        with self.watch("intervals, baselines and comparison"):
            if judged.final:
                more = audit_after(self.question, judged.design, self.key.fold("audit"))
                findings = ordered([*self.findings, *more])
            else:
                findings = self.findings
            found = assessed(
                self.question, self.measure, developed, judged, self.key,
                self.ledger if stage not in (names.FIRST, names.CANDIDATES) else None,
            )  # fmt: skip
        self.clock.keep("intervals", self.clock.now() - start)
        return replace(
            found, findings=findings, stage=stage, skipped=(*self.skipped, *found.skipped),
            seconds=dict(self.watch.seconds),
        )  # fmt: skip

    def _settle(self) -> Generator[Assessment, None, Assessment]:
        """The choice is made: fit it, and open what was set aside."""
        question = self.question
        developed = self._developed()
        noted = self.quick or developed.untuned == NO_TIME  # that tuning is missing
        if developed.tuned is None and developed.chosen != DUMMY and not noted:
            self.skipped.append(f"tuning: {developed.untuned}")
        if self.nested:
            judged = self._judged([self.race])
        else:
            with self.watch(f"looking at {self.whole.judged:,} test rows, once"):
                judged = on_test_rows(question, developed, self.race, self.whole, self.key)
        found = self._assessed(judged, developed, names.TUNED)
        found = replace(found, ran=self._ran(found))
        if self.quick or developed.chosen == DUMMY:
            yield replace(found, stage=names.DONE, unfinished=tuple(self.late))
        elif self.clock.allows(self.clock.took.get("report", 0.0)):  # else written once, below
            yield replace(found, unfinished=(*self.late, *names.AFTER[names.TUNED]))
        return found

    # --- evidence ----------------------------------------------------------------------------

    def _evidence(self, found: Assessment) -> Iterator[Assessment]:
        """Refits, curves and repeats; each is there whole or not at all."""
        if self.quick or found.chosen == DUMMY:
            return
        given = (self.question, self.key, self.clock, self.watch)
        parts: dict[str, Callable[[Assessment], Assessment]] = {
            names.WHY: lambda found: explained(found, self.clock, self.watch),
            names.REFITS: lambda found: refitted(found, self.design.split, *given),
            names.CURVE: lambda found: with_curves(found, *given),
            names.DONE: self._repeats,
        }
        for stage in names.EVIDENCE:
            self.watch.expect(stage, PART * found.board[found.chosen].fit_seconds)
        lap = lap_seconds(self.race, self.twins)
        again = self.whole.repeats - 1 if self.nested and self.clock.allows(lap) else 0
        self.watch.expect(names.REPEATS, again * lap)
        for stage, part in parts.items():
            try:
                found = part(found)
            except OutOfTime:
                words = names.PARTS[len(names.PARTS) - len(names.AFTER[stage]) - 1]
                self.late.append(words)
                self.clock.leave(*names.INSIDE.get(stage, ()))
                found = replace(found, skipped=(*found.skipped, f"{words} ({_FOR_TIME})"))
            self.watch.expect(stage if stage != names.DONE else names.REPEATS, 0.0)
            yield replace(
                found, stage=stage, unfinished=(*self.late, *names.AFTER[stage]),
                seconds=dict(self.watch.seconds), ran=self._ran(found),
            )  # fmt: skip

    def _repeats(self, found: Assessment) -> Assessment:
        """Every row judged again by the same race on other folds."""
        wanted = self.whole.repeats if self.nested else 1
        workers = self._workers(lap_seconds(self.race, self.twins))
        laps = all_laps(
            self.race, self._race, wanted, self.twins, self.eligible, self.clock, self.watch, workers
        )  # fmt: skip
        if len(laps) < wanted:
            self.late.append("repeats")
            words = f"repeats of the judging: {len(laps)} of {wanted} done"
            found = replace(found, skipped=(*found.skipped, f"{words} ({_FOR_TIME})"))
        elif self.nested and (self.question.settings.repeats or REPEATS) > wanted:
            words = f"repeats of the judging: {wanted} of {REPEATS} done (--repeats {REPEATS})"
            found = replace(found, skipped=(*found.skipped, words))
        if len(laps) == 1:
            return found
        again = self._assessed(self._judged(laps), found.developed, names.DONE)
        return replace(
            again, variation=found.variation, curve=found.curve, diagnosis=found.diagnosis,
            explained=found.explained, columns=found.columns,
            skipped=found.skipped, ledger=again.ledger,
        )  # fmt: skip
