"""Studies of generators: which rows judge, what repeats by chance, who copies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundstate
from groundstate.compute.random import Key
from groundstate.data import read
from groundstate.errors import DataError
from groundstate.evaluate import assess_generator
from groundstate.evaluate.generators.usefulness import Lesson, kept
from groundstate.math.stats.interval import Interval
from groundstate.study.generators import job, study_generators


def rising(n: int = 3000) -> pl.DataFrame:
    """A file in the order of its price."""
    rng = np.random.default_rng(0)
    price = np.sort(rng.exponential(1000, n)).round(2)
    return pl.DataFrame({"price": price, "size": np.log(price + 1) + 0.1 * rng.normal(size=n)})


def parts(rows: Any, table: bool = True) -> Any:
    return job._parts(read(rows) if table else rows, Key.of(0).fold("parts"), table)


def test_rows_that_judge_are_not_the_first_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_JUDGED", 200)
    table = rising()
    learn, choose, judge, repeats, notes = parts(table)
    assert [len(p) for p in (learn, choose, judge)] == [1800, 600, 600]
    assert repeats == 0.0 and not notes
    for part in (learn, choose, judge):
        some = job._some(part.frame)["price"].to_numpy()
        assert len(some) == 200
        half = (some > table["price"].median()).mean()
        assert half == pytest.approx(0.5, abs=0.13)


def test_equal_rows_are_on_one_side_and_what_chance_repeats_is_counted() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2)).round(3)
    table = pl.DataFrame(np.concatenate([rows, rows[:60]]), schema=["a", "b"])
    learn, choose, judge, repeats, notes = parts(table)
    contents = [set(p.frame.rows()) for p in (learn, choose, judge)]
    assert not contents[0] & contents[1] and not contents[1] & contents[2]
    assert not contents[0] & contents[2] and sum(map(len, contents)) == 300
    assert repeats == pytest.approx(0.6 * 120 / 360) and "20.0% would be" in notes[0]


def test_rows_of_few_values_are_cut_at_random() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({k: rng.choice(list(v), 500) for k, v in (("a", "pqr"), ("b", "xyz"))})
    learn, choose, judge, repeats, notes = parts(table)
    assert [len(p) for p in (learn, choose, judge)] == [300, 100, 100] and repeats == 0.0
    assert set(judge.frame.rows()) <= set(learn.frame.rows()) and "491 of 500" in notes[0]
    found = study_generators(table, model="TableMixture")
    assert found.assessment.verdict == "good" and found.assessment.memorisation is not None
    assert not found.assessment.memorisation.memorises  # rows equal others by chance


def test_pictures_are_cut_too() -> None:
    pictures = np.random.default_rng(0).random((120, 1, 4, 4)).astype(np.float32)
    learn, choose, judge, _, notes = parts(pictures, table=False)
    assert learn.shape == (72, 1, 4, 4) and len(choose) == len(judge) == 24 and not notes


class Copier:
    """Repeats some training rows among new ones."""

    def __init__(self, rows: pl.DataFrame, new: pl.DataFrame, share: float) -> None:
        self.rows, self.new, self.share = rows, new, share

    def sample(self, n: int, random_state: Any = None) -> pl.DataFrame:
        copied = int(self.share * n)
        return pl.concat([self.rows.sample(copied, seed=0), self.new.head(n - copied)])


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_a_generator_that_copies_some_rows_is_caught(share: float) -> None:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 1200)
    amount = np.exp(rng.normal(size=1200) + (kind == "a")).round(2)
    table = pl.DataFrame({"kind": kind, "amount": amount, "age": rng.integers(18, 90, 1200)})
    train, test, new = table[:600], table[600:900], table[900:]
    found = assess_generator(Copier(train, new, share), test, train)
    assert (found.verdict == "memorises") == (share > 0), str(found)
    if 0 < share < 1:
        assert "some generated rows are copies" in found.why


def test_levels_that_learning_did_not_see() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "kind": [*rng.choice(["a", "b"], 395), "rare", "seldom", "odd", "lone", "once"],
            "size": rng.normal(size=400),
        }
    )
    found = study_generators(table, model="AutoregressiveDensity,TableMixture", seed=1)
    assert not found.failed and found.assessment.likelihood is not None
    shares = [
        c.assessment.likelihood.impossible for c in found.candidates if c.assessment.likelihood
    ]
    assert shares == [0.025, 0.025]  # two of eighty, for both
    assert np.isfinite(found.assessment.likelihood.log_likelihood.estimate)
    assert dict(found.numbers())["rows held impossible"] == "1.25%"
    odd = pl.DataFrame({"kind": ["a", "never"], "size": [0.0, 0.0]})
    for name in ("AutoregressiveDensity", "TableMixture"):
        model = groundstate.TableGenerator(getattr(groundstate, name)(random_state=0)).fit(table)
        assert np.isneginf(model.score_samples(odd)).tolist() == [False, True]


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="at least 100 rows"):
        study_generators(rising(60))


def linked(n: int = 600) -> pl.DataFrame:
    """A label that two numbers decide together, and a number that says nothing."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n))
    noise = rng.normal(size=n)
    return pl.DataFrame({"a": a, "b": b, "same": np.where(a * b > 0, "yes", "no"), "noise": noise})


def test_what_is_learned_from_rows() -> None:
    table = linked()
    train, test = table[:400], table[400:]
    lesson = Lesson.of(train, test)
    assert "same" in lesson.names and "noise" not in lesson.names
    own = lesson.of_generated(train)
    assert kept(own) == 1.0 and [c.generated.estimate for c in own] == [c.real for c in own]
    rng = np.random.default_rng(1)
    apart = train.select(pl.Series(c.name, c.to_numpy()[rng.permutation(400)]) for c in train)
    nothing = lesson.of_generated(apart)
    assert kept(nothing) < 0.2
    label = {c.name: c for c in own}["same"]
    assert label.score == "accuracy" and label.real > 0.9 and label.constant < 0.6
    assert label.generated.low < label.generated.estimate < label.generated.high
    assert kept([]) is None
    gone = train.with_columns(pl.lit("yes").alias("same"))  # a generator that forgot a level
    assert {c.name: c.kept for c in lesson.of_generated(gone)}["same"] < 0.2


def test_of_candidates_that_look_alike_the_one_that_teaches_most_is_chosen() -> None:
    def candidate(name: str, apart: float, taught: float | None, verdict: str = "good") -> Any:
        c2st = Interval(apart, apart - 0.04, apart + 0.04, 0.95, "wilson")
        made: Any = SimpleNamespace(c2st=c2st, verdict=verdict)
        return job.Candidate(name, made, 0.0, taught), None

    given = [
        candidate("clear", 0.70, 1.0),
        candidate("hardest", 0.53, 0.5),
        candidate("tied", 0.56, 0.9),
        candidate("copier", 0.50, 1.0, "memorises"),
    ]
    assert [c.name for c, _ in job._ordered(given)] == ["tied", "hardest", "clear", "copier"]
    pictures = [candidate("b", 0.6, None), candidate("a", 0.55, None)]
    assert [c.name for c, _ in job._ordered(pictures)] == ["a", "b"]
