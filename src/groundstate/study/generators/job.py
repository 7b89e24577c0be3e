"""The study of generators: rows set aside twice, candidates judged on the first part, one on the second."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.data import Table, read
from groundstate.errors import DataError, GroundstateError
from groundstate.evaluate.generators.report import GeneratorAssessment, assess_generator
from groundstate.evaluate.generators.usefulness import MOST, ColumnLearned, Lesson, kept
from groundstate.models.generative.tables.table_generator import TableGenerator
from groundstate.study.generators.candidates import IndependentColumns, candidates
from groundstate.study.generators.pictures import read_pictures
from groundstate.study.numbers import show, show_interval

LEAST = 100  # rows that a study needs
MOST_JUDGED = 2000  # rows of each part that judge
SHARES = (0.6, 0.2, 0.2)  # of the rows that are learned from, that choose and that judge
REPEATED = (
    "{n} rows repeat another one; equal rows were kept on one side, so that no row that judges is a copy of "
    "a training row. Cut at random, {share:.1%} would be: as many copies are taken to be chance"
)
MOSTLY = (
    "{n} of {all} rows repeat another one, as rows of few values do: they were cut at random, and rows that "
    "judge may equal training rows"
)
KINDS = {"exact": "exact", "bound": "a lower bound", "estimate": "an estimate"}


@dataclass(frozen=True)
class Candidate:
    """One generator on the rows that choose.

    Attributes
    ----------
    name : of its class
    assessment : on the validation rows
    seconds : of learning
    kept : share of what real rows teach about their columns that its rows teach too, on the validation
        rows; None of pictures, and where there is nothing to learn
    """

    name: str
    assessment: GeneratorAssessment
    seconds: float
    kept: float | None = None


@dataclass(frozen=True, repr=False)
class GeneratorStudy:
    """Which generator makes rows like the real ones, and how faithful and private it is.

    Attributes
    ----------
    name : of the data
    kind : "table" or "image"
    candidates : those that do not repeat training rows before others; first those that are as hard to
        distinguish from real rows as the hardest, in the order of what is learned from them
    chosen : name of the first
    model : the chosen one, fitted to the training rows
    assessment : of the chosen one on rows that chose nothing
    baseline : of independent columns on the same rows
    train, test : the rows
    failed : candidates that could not learn these rows, and why
    lessons : of a table, what a model learns about each column from new rows and from real ones
    """

    name: str
    kind: str
    candidates: list[Candidate]
    chosen: str
    model: Any
    assessment: GeneratorAssessment
    baseline: GeneratorAssessment
    train: Any
    test: Any
    notes: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    lessons: list[ColumnLearned] = field(default_factory=list)

    @property
    def better_than_baseline(self) -> bool:
        """Whether its rows are clearly harder to tell from real ones than those of independent columns."""
        return self.assessment.c2st.high < self.baseline.c2st.low

    @property
    def cells(self) -> str:
        """What rows are made of."""
        return "columns" if self.kind == "table" else "pixels"

    @property
    def verdict(self) -> list[str]:
        """What to know, in sentences."""
        a, b = self.assessment, self.baseline
        found = [
            f"{self.chosen} makes rows that a classifier tells from real ones with accuracy "
            f"{a.c2st.estimate:.1%} ({a.c2st.low:.1%} to {a.c2st.high:.1%}; 50% is perfect, {self.cells} drawn "
            f"independently give {b.c2st.estimate:.1%})."
        ]
        if a.verdict == "memorises":
            found.append(f"It repeats training rows: {a.why}. Do not share its rows.")
        elif a.memorisation is not None:
            m = a.memorisation
            sign = "Its" if m.z < -3 else "No sign that it repeats training rows: its"
            found.append(
                f"{sign} rows are {m.nearness} (z {show(m.z)}); {m.copies:.1%} are near copies, of unseen "
                f"real rows {m.expected:.1%}."
            )
        if a.likelihood is not None:
            kind, gap = KINDS[a.likelihood.kind], a.likelihood.overfit
            found.append(
                f"Held-out log-likelihood {show_interval(a.likelihood.log_likelihood)} nats a row ({kind})."
            )
            if gap is not None and gap.low > 0:
                found.append(
                    f"It fits training rows better than new ones, by {show_interval(gap)} nats a row."
                )
        if self.lessons:
            worst = min(self.lessons, key=lambda c: c.kept)
            found.append(
                f"Models of one column given the others learn {kept(self.lessons):.0%} from its rows of what "
                f"they learn from real ones; least of {worst.name}, {worst.score} "
                f"{show(worst.generated.estimate)} instead of {show(worst.real)}."
            )
        if not self.better_than_baseline:
            found.append(f"It was not shown to be better than {self.cells} drawn independently.")
        return found

    def numbers(self) -> list[tuple[str, str]]:
        """Every number of the chosen generator with its interval, for reading."""
        return self.assessment.table(show)

    def facts(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "name": self.name, "kind": self.kind, "chosen": self.chosen, "verdict": self.verdict,
            "rows": self.assessment.rows, "notes": self.notes, "failed": self.failed,
            "better_than_independent_columns": self.better_than_baseline,
            "candidates": [
                {"name": c.name, "verdict": c.assessment.verdict, "seconds": round(c.seconds, 2),
                 "learned_of_real": c.kept, **_numbers(c.assessment)}
                for c in self.candidates
            ],
            "learned_of_real": kept(self.lessons),
            "columns_learned": {
                c.name: {"score": c.score, "from_new_rows": _plain_interval(c.generated),
                         "from_real_rows": c.real, "constant": c.constant}
                for c in self.lessons
            },
            "held_out": {"verdict": self.assessment.verdict, **_numbers(self.assessment)},
            "independent_columns": _numbers(self.baseline),
        }  # fmt: skip


def _plain_interval(interval: Any) -> list[float]:
    return [float(interval.estimate), float(interval.low), float(interval.high)]


def _numbers(a: GeneratorAssessment) -> dict[str, Any]:
    plain = _plain_interval
    found: dict[str, Any] = {
        "accuracy_of_telling_apart": plain(a.c2st),
        "frechet": plain(a.frechet),
        "frechet_of_real_rows": a.frechet_floor,
        "mmd": plain(a.mmd),
        "mmd_p": a.mmd_test.pvalue,
        **{name: plain(v) for name, v in a.precision_recall.intervals.items()},
    }
    if a.likelihood is not None:
        found["log_likelihood"] = plain(a.likelihood.log_likelihood)
        found["log_likelihood_kind"] = a.likelihood.kind
        if a.likelihood.overfit is not None:
            found["training_minus_held_out"] = plain(a.likelihood.overfit)
    if a.memorisation is not None:
        found["memorisation_z"] = a.memorisation.z
        found["near_copies"] = [a.memorisation.copies, a.memorisation.expected]
    return found


def study_generators(
    source: Any,
    *,
    model: str = "auto",
    seed: int = 0,
    device: Any = None,
    level: float = 0.95,
    progress: Callable[[str], Any] = lambda _: None,
) -> GeneratorStudy:
    """Compare generators on rows they have not seen, and judge the chosen one on others.

    A fifth of the rows chooses between the candidates, another fifth judges the chosen one, once.

    Parameters
    ----------
    source : a table (path, frame, mapping) or a folder of pictures
    model : "auto", "all", or names with commas
    seed, device : of the networks and of the cuts
    level : of the intervals
    progress : called with what is being done
    """
    progress("reading")
    rows, name, kind, notes = _read(source)
    n = len(rows)
    if n < LEAST:
        raise DataError(f"a study of generators needs at least {LEAST} rows, {name} has {n}")
    train, choose, judge, repeats, more = _parts(rows, Key.of(seed).fold("parts"), kind == "table")
    notes = [*notes, *more]
    lesson: Lesson | None = None
    found: list[tuple[Candidate, Any]] = []
    failed: dict[str, str] = {}
    for label, make in candidates(model, kind == "image", seed, device).items():
        progress(f"fitting {label}")
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what training has to say is for those who train
            try:
                fitted = make().fit(train)
            except (GroundstateError, ValueError) as error:  # a model that does not take such rows
                failed[label] = str(error)
                continue
        seconds = time.perf_counter() - start
        progress(f"judging {label}")
        judged = _judged(fitted, choose, train, level, seed, repeats)
        if kind == "table" and lesson is None:
            lesson = Lesson.of(*(_some(_shown(fitted, part)) for part in (train, choose)))
        taught = _taught(lesson, fitted, len(train), level, seed)
        found.append((Candidate(label, judged, seconds, kept(taught)), fitted))
    if not found:
        raise DataError(
            f"no generator could learn {name}: " + "; ".join(f"{k}: {v}" for k, v in failed.items())
        )
    found = _ordered(found)
    best, fitted = found[0]
    progress(f"judging {best.name} on the rows that chose nothing")
    final = _judged(fitted, judge, train, level, seed, repeats)
    known, new = _shown(fitted, train), _shown(fitted, judge)
    baseline = _judged(IndependentColumns(known), new, known, level, seed, repeats)
    last = Lesson.of(_some(known), _some(new)) if kind == "table" else None
    return GeneratorStudy(
        name, kind, [c for c, _ in found], best.name, fitted, final, baseline, known, new,
        [*notes, *getattr(fitted, "notes_", [])], failed, _taught(last, fitted, len(train), level, seed),
    )  # fmt: skip


def _ordered(found: list[tuple[Candidate, Any]]) -> list[tuple[Candidate, Any]]:
    """First those that do not repeat rows; of them those that are not clearly easier to distinguish from
    real rows than the hardest, in the order of what is learned from them; then the others."""

    def apart(candidate: Candidate) -> float:
        return max(candidate.assessment.c2st.estimate, 0.5)

    def repeats(candidate: Candidate) -> bool:
        return candidate.assessment.verdict == "memorises"

    hardest = min((c for c, _ in found), key=lambda c: (repeats(c), apart(c)))
    border = hardest.assessment.c2st.high

    def rank(pair: tuple[Candidate, Any]) -> tuple[bool, bool, float, float]:
        c = pair[0]
        tied = apart(c) <= border
        return repeats(c), not tied, -(c.kept or 0.0) if tied else 0.0, apart(c)

    return sorted(found, key=rank)


def _taught(
    lesson: Lesson | None, model: Any, n: int, level: float, seed: int
) -> list[ColumnLearned]:
    """What new rows of a model teach, of as many as there are training rows."""
    if lesson is None or not lesson.names:
        return []
    return lesson.of_generated(model.sample(min(n, MOST), random_state=seed), level)


def _judged(
    model: Any, rows: Any, train: Any, level: float, seed: int, repeats: float
) -> GeneratorAssessment:
    real, known = (_some(_shown(model, part)) for part in (rows, train))
    likelihood = getattr(model, "log_prob_kind_", "none") not in ("none", "unnormalised")
    generated = model if likelihood else model.sample(len(real), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return assess_generator(
            generated, real, known, level=level, repeats=repeats, random_state=seed
        )


def _shown(model: Any, part: Any) -> Any:
    """Rows with the columns that the model learned; ids, which are counted anew, judge nothing."""
    frame = _plain(part)
    if not isinstance(model, TableGenerator) or not isinstance(frame, pl.DataFrame):
        return frame
    return frame.select([name for name in frame.columns if name in model.learned_names_])


def _plain(part: Any) -> Any:
    return part.frame if isinstance(part, Table) else part


def _some(rows: Any) -> Any:
    """Rows enough to judge by: the first of a part, which stand in random order."""
    return rows[:MOST_JUDGED]


def _read(source: Any) -> tuple[Any, str, str, list[str]]:
    if isinstance(source, str | Path) and Path(source).is_dir():
        pictures, notes = read_pictures(Path(source))
        return pictures, Path(source).name, "image", notes
    if isinstance(source, np.ndarray) and source.ndim > 2:
        return source, "pictures", "image", []
    table = read(source)
    return table, table.name, "table", []


def _contents(rows: Any) -> Any:
    """What rows hold, ids aside, so that equal ones are known."""
    if not isinstance(rows, Table):
        return rows.reshape(len(rows), -1)
    kept = [name for name in rows.columns if rows.column(name).kind != "id"]
    frame = rows.frame.select(kept or rows.columns)
    return np.array([str(row) for row in frame.iter_rows()], dtype=object)


def _parts(rows: Any, key: Key, table: bool) -> tuple[Any, Any, Any, float, list[str]]:
    """Rows to learn from, to choose and to judge, each in random order, the share of new rows that would
    equal a training row, and notes.

    The order of a file says something, such as prices that rise: rows that judge must not be its first.
    """
    contents = _contents(rows)
    line = WeightLine.of(contents)
    repeated, repeats, notes = line.n_rows - line.n_distinct, 0.0, []
    if 2 * line.n_distinct < line.n_rows:  # what is common is seen on both sides
        line = WeightLine.of(contents, np.arange(len(contents)))
        notes = [MOSTLY.format(n=repeated, all=line.n_rows)]
    elif repeated:
        _, at, times = np.unique(contents, axis=0, return_inverse=True, return_counts=True)
        repeats = float((1 - (1 - SHARES[0]) ** (times[at] - 1.0)).mean())
        notes = [REPEATED.format(n=repeated, share=repeats)]
    order, shares = line.order(key), line.cut(key, SHARES)
    take = rows.take if isinstance(rows, Table) else rows.__getitem__
    first, second, third = (take(order[share[order] > 0]) for share in shares)
    return first, second, third, repeats, notes if table else []
