"""The stages of a study: a first answer, all candidates, tuned settings, then the evidence.

After each stage there is a whole `Assessment`; later ones are better founded, never of another kind.
A time budget decides how many stages there are, never a number inside one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data import Finding
from groundstate.errors import DataError
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import take
from groundstate.study.assess import Assessment
from groundstate.study.audit import audit_after, audit_before, ordered
from groundstate.study.candidates import DUMMY, baselines
from groundstate.study.confidence import spread
from groundstate.study.design import (
    REPEATS,
    Design,
    HeldRows,
    choose_design,
    first_candidates,
    nominal,
    usual_repeats,
    usual_workers,
)
from groundstate.study.progress import Watch
from groundstate.study.question import Question
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.evidence import explained, refitted, with_curves
from groundstate.study.race.field import Entrant, Race, race_of
from groundstate.study.race.judged import Judged, told
from groundstate.study.selection import Developed, Tuned
from groundstate.study.tuning import Search, tuned_by

FIRST, CANDIDATES, TUNED, WHY, REFITS, CURVE, DONE = (
    "first answer", "all candidates", "tuned", "explained", "refits", "learning curve", "done",
)  # fmt: skip
_PARTS = (
    "the other candidates", "tuning", "the explanation", "refits", "the learning curve", "repeats",
)  # fmt: skip
_AFTER = {
    stage: _PARTS[i:]
    for i, stage in enumerate((FIRST, CANDIDATES, TUNED, WHY, REFITS, CURVE, DONE))
}
_ONE = 0.5  # share of the time left that one candidate may take
_FIRST_SECONDS = 10.0  # that each candidate of the first answer has at least
_FOR_TIME = "a longer --budget, or --thorough"


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
    watch, clock : who is told, and the time there is
    quick : end with the first choice among all candidates
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
    skipped: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    models: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Assessment]:
        question, settings = self.question, self.question.settings
        self.key = key = Key.of(settings.seed)
        with self.watch("auditing the table"):
            self.findings: tuple[Finding, ...] = audit_before(question)
            tune = 0 if self.search is None else self.search.n_trials
            wanted = settings.repeats or usual_repeats(
                self.candidates, question.n, settings.folds, tune
            )
            self.whole = choose_design(
                question.features, question.y, task=question.task, kind=settings.design,
                test=question.test, groups=question.groups, time=question.time,
                n_folds=settings.folds, repeats=wanted, key=key.fold("design"),
            )  # fmt: skip
            self.nested = self.whole.kind == "nested"
            k = self.whole.n_folds
            self.design = replace(self.whole, sides=self.whole.sides[:k], repeats=1)
            if self.n_jobs is None:
                self.n_jobs = usual_workers(self.candidates, question.n, self.whole, tune)
            self.rows = np.arange(question.n) if self.nested else self.whole.split[0]
            self.race = self._race(0)
            self._plan(tune)
        self.tuned: Tuned | None = None
        self.untuned = "not asked for" if self.search is None else ""
        yield from self._select()
        found = yield from self._settle()
        yield from self._evidence(found)

    # --- selection ---------------------------------------------------------------------------

    def _race(self, lap: int) -> Race:
        key = self.key.fold("race", lap)
        if not self.nested:
            return race_of(self.question, self.rows, self.whole.validation, key, self.measure)
        k = self.whole.n_folds
        sides = self.whole.sides[lap * k : (lap + 1) * k]
        return race_of(self.question, self.rows, None, key, self.measure, sides)

    def _plan(self, tune: int) -> None:
        n, folds = self.question.n, len(self.race.splits)
        each = [nominal(model, n) for model in self.candidates.values()]
        search = 0 if self.quick else tune * sum(each) / max(len(each), 1)
        lap = folds * (sum(each) + search)
        rest = 0.0 if self.quick else lap * (self.whole.repeats - 1) + 60 * sum(each) / len(each)
        self.watch.plan(lap + rest, self.clock)

    def _select(self) -> Iterator[Assessment]:
        """The first answer, all candidates, tuned settings."""
        everyone = [name for name in self.candidates if name != DUMMY]
        first = first_candidates(self.candidates)
        with self.watch("a constant answer and simple models"):
            self._baselines(first)
        for name in first:
            self._enter(name, _FIRST_SECONDS)
        rest = [name for name in everyone if name not in first]
        if rest or (self.search is not None and not self.quick):
            yield self._interim(FIRST)
        cost = {name: nominal(self.candidates[name], self.question.n) for name in rest}
        for name in sorted(rest, key=lambda name: cost[name]):
            self._enter(name)
        if self.late:
            self.skipped.append(f"candidates, for time: {', '.join(self.late)} ({_FOR_TIME})")
        if self.quick:
            self.untuned = "not asked for (--quick)"
            self.skipped.append("refits, curves and the diagnosis: not asked for (--quick)")
            return
        self._propose()
        if isinstance(self.trials, list) and rest:
            yield self._interim(CANDIDATES)
        self._tune()

    def _baselines(self, first: list[str]) -> None:
        """The dummy, and simple models that are no candidates unless they are named."""
        simple = {who: base for who, base in baselines(self.question.task).items() if who != DUMMY}
        own = {DUMMY: Entrant(self.candidates[DUMMY], DUMMY)}
        self.race.run(own | {who: Entrant(base, who) for who, base in simple.items()})
        if DUMMY not in self.race.losses:
            notes = self.race.entries[DUMMY].notes
            raise DataError(f"not even a constant answer could be judged; {notes[0]}")
        self.eligible = set(own)

    def _enter(self, name: str, least: float = 0.0) -> None:
        entrant = {name: Entrant(self.candidates[name], name)}
        cost = nominal(self.candidates[name], self.question.n) * len(self.race.splits)
        try:
            with self.clock.limit(_ONE, least), self.watch(f"comparing {name}", cost):
                self.race.run(entrant, self.n_jobs or 1)
            if name in self.race.losses:
                self.eligible.add(name)
        except OutOfTime:
            self.late.append(name)

    def _propose(self) -> None:
        """Settings to try of the best candidate, or why there are none."""
        self.trials: list[dict[str, Any]] | str = "not asked for"
        real = self.eligible - {DUMMY}
        if not real:
            self.trials = "the dummy has nothing to tune"
        elif self.search is not None:
            name = self.to_tune = self.race.choose(among=real)
            recipe = self.candidates[name]
            self.trials = self.search.proposals(recipe, self.key.fold("tune", name))

    def _tune(self) -> None:
        """Settings of the best candidate as further configurations of the race."""
        from sklearn.base import clone

        if isinstance(self.trials, str):
            self.untuned = self.trials
            return
        name, race = self.to_tune, self.race
        recipe = self.candidates[name]
        sign = 1.0 if self.measure.greater_is_better else -1.0
        tried: list[tuple[dict[str, Any], float]] = []
        cost = nominal(recipe, self.question.n) * len(race.splits)
        for i, params in enumerate(self.trials):
            label = f"{name} #{i + 1}"
            entrant = Entrant(clone(recipe).set_params(**params), name, params, earns=True)
            try:
                with self.clock.limit(_ONE), self.watch(f"tuning {name}", cost):
                    race.run({label: entrant}, self.n_jobs or 1)
            except OutOfTime:
                left = len(self.trials) - i
                self.late.append("tuning")
                self.skipped.append(f"tuning: {left} of {len(self.trials)} settings ({_FOR_TIME})")
                break
            if label in race.losses:
                self.eligible.add(label)
            each = np.asarray(race.entries[label].cv_scores or [np.nan])
            tried.append((params, sign * float(each.mean())))
        known = [f"{name} #{i + 1}" for i in range(len(tried))]
        known = [label for label in known if label in race.losses]
        if not known:
            self.untuned = "there was no time for it" if self.late else "no setting could be fitted"
            return
        best = min(known, key=lambda label: race.risk(label, race.judged))
        with self.watch("what the settings explain"):
            self.tuned = tuned_by(recipe, tried, race.entrants[best].params)
        gain, error = race.gain(best, name, race.judged)
        if race.choose(among=self.eligible) != best:
            self.untuned = (
                "the best setting tried gains no more over the usual ones than one standard error "
                f"of that gain ({gain:.3g}, error {error:.3g}), so the usual ones stay"
            )

    # --- judging -----------------------------------------------------------------------------

    def _developed(self) -> Developed:
        """The configuration to take from what is in the race now, fitted to all its rows."""
        race = self.race
        name = race.choose(among=self.eligible)
        one = race.entrants[name]
        if name not in self.models:
            with self.watch(f"fitting {one.candidate} to all rows"):
                self.models[name] = fit_clone(
                    one.recipe, race.X, race.y, race.weight, self.key.fold("refit", name)
                )
        shown = [n for n in race.entries if n in self.candidates]
        return Developed(
            race.ranked(name, shown), one.candidate, one.recipe, one.params, self.tuned,
            self.untuned, self.models[name], race.predictions[name],
        )  # fmt: skip

    def _interim(self, stage: str) -> Assessment:
        """What is known while the choice is open; rows set aside stay closed."""
        found = self._told(self._on_folds([self.race]), self._developed(), stage)
        return replace(found, unfinished=_AFTER[stage])

    def _on_folds(self, laps: list[Race]) -> Judged:
        """Rows of the races, each answered by what was chosen without its fold."""
        race = laps[0]
        names: Counter[str] = Counter()
        repeats = []
        for lap in laps:
            answers, chosen = lap.answers(self.eligible)
            names += chosen
            bases = {who: lap.predictions[who] for who in baselines(self.question.task)
                     if who in lap.predictions}  # fmt: skip
            repeats.append((bases, answers))
        k = len(race.parts)
        if self.nested:
            design = replace(self.whole, sides=self.whole.sides[: k * len(laps)], repeats=len(laps))
        else:
            splits = [race.splits[min(i, len(race.splits) - 1)] for i in range(k)]
            sides = [(self.rows[s.train_rows], self.rows[p]) for s, p in zip(splits, race.parts)]
            why = "the test rows stay closed until the choice is made"
            design = Design("nested", sides, None, 1, why)
        looks = [
            f"outer fold {i + 1}" + (f", repeat {lap + 1}" if lap else "")
            for lap in range(len(laps))
            for i in range(k)
        ]

        def told(predicted: Prediction) -> Prediction:
            return spread(predicted.take(race.judged), self.question.classes)

        taken = [
            ({who: told(p) for who, p in bases.items()}, told(answers))
            for bases, answers in repeats
        ]
        return Judged(design, self.rows[race.judged], taken, dict(names), looks, self.nested)

    def _on_test_rows(self, developed: Developed) -> Judged:
        """The rows set aside, opened once for the model that was chosen."""
        question = self.question
        train, rest = self.whole.split
        held = HeldRows(question.X, question.y, rest)
        X, y, weight = take(question.X, train), question.y[train], question.weight[train]
        bases = {
            who: fit_clone(base, X, y, weight, self.key.fold("base", who))
            for who, base in baselines(question.task).items()
        }
        rows, _ = held.look("report")
        said = {who: Prediction.of(m, rows, question.classes) for who, m in bases.items()}
        answers = Prediction.of(developed.model, rows, question.classes)
        names = {developed.chosen: 1}
        return Judged(self.whole, rest, [(said, answers)], names, list(held.looks), True)

    def _told(self, judged: Judged, developed: Developed, stage: str) -> Assessment:
        with self.watch("intervals, baselines and comparison"):
            if judged.final:
                more = audit_after(self.question, judged.design, self.key.fold("audit"))
                findings = ordered([*self.findings, *more])
            else:
                findings = self.findings
            found = told(
                self.question, self.measure, developed, judged, self.key,
                self.ledger if stage not in (FIRST, CANDIDATES) else None,
            )  # fmt: skip
        return replace(
            found, findings=findings, stage=stage, skipped=(*self.skipped, *found.skipped),
            seconds=dict(self.watch.seconds),
        )  # fmt: skip

    def _settle(self) -> Generator[Assessment, None, Assessment]:
        """The choice is made: fit it, and open what was set aside."""
        developed = self._developed()
        if developed.tuned is None and developed.chosen != DUMMY and not self.quick:
            self.skipped.append(f"tuning: {developed.untuned}")
        if self.nested:
            judged = self._on_folds([self.race])
        else:
            with self.watch(f"looking at {self.whole.judged:,} test rows, once"):
                judged = self._on_test_rows(developed)
        found = self._told(judged, developed, TUNED)
        if self.quick or developed.chosen == DUMMY:
            yield replace(found, stage=DONE, unfinished=tuple(self.late))
        else:
            yield replace(found, unfinished=(*self.late, *_AFTER[TUNED]))
        return found

    # --- evidence ----------------------------------------------------------------------------

    def _evidence(self, found: Assessment) -> Iterator[Assessment]:
        """Refits, curves and repeats; each is there whole or not at all."""
        if self.quick or found.chosen == DUMMY:
            return
        given = (self.question, self.key, self.clock, self.watch)
        parts: dict[str, Callable[[Assessment], Assessment]] = {
            WHY: lambda found: explained(found, self.clock, self.watch),
            REFITS: lambda found: refitted(found, self.design.split, *given),
            CURVE: lambda found: with_curves(found, *given),
            DONE: self._repeats,
        }
        for stage, part in parts.items():
            try:
                found = part(found)
            except OutOfTime:
                words = _PARTS[len(_PARTS) - len(_AFTER[stage]) - 1]
                self.late.append(words)
                found = replace(found, skipped=(*found.skipped, f"{words} ({_FOR_TIME})"))
            yield replace(
                found, stage=stage, unfinished=(*self.late, *_AFTER[stage]),
                seconds=dict(self.watch.seconds),
            )  # fmt: skip

    def _repeats(self, found: Assessment) -> Assessment:
        """Every row judged again by the same race on other folds."""
        wanted = self.whole.repeats
        laps, late = [self.race], False
        seconds = sum(e.fit_seconds for e in self.race.entries.values()) * len(self.race.splits)
        for lap in range(1, wanted if self.nested else 1):
            race = self._race(lap)
            try:
                if not self.clock.allows(seconds / (self.n_jobs or 1)):
                    raise OutOfTime
                with self.clock.limit(), self.watch(f"judging every row again, {lap + 1}"):
                    race.run(self.race.entrants, self.n_jobs or 1)
            except OutOfTime:
                late = True
                break
            laps.append(race)
        if late:
            self.late.append("repeats")
            words = f"repeats of the judging: {len(laps)} of {wanted} done"
            found = replace(found, skipped=(*found.skipped, f"{words} ({_FOR_TIME})"))
        elif self.nested and (self.question.settings.repeats or REPEATS) > wanted:
            words = f"repeats of the judging: {wanted} of {REPEATS} done (--repeats {REPEATS})"
            found = replace(found, skipped=(*found.skipped, words))
        if len(laps) == 1:
            return found
        again = self._told(self._on_folds(laps), found.developed, DONE)
        return replace(
            again, variation=found.variation, curve=found.curve, diagnosis=found.diagnosis,
            explained=found.explained, columns=found.columns,
            skipped=found.skipped, ledger=again.ledger,
        )  # fmt: skip
