"""A table without a target."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from groundstate import GaussianMixture, data
from groundstate.compute.random import Key
from groundstate.errors import DataError, Unsupported
from groundstate.models.tables.table import TablePredictor
from groundstate.report import write
from groundstate.store import RunDir
from groundstate.study import Survey, compare_densities, survey, survey_facts
from groundstate.study.unlabelled import filling
from groundstate.study.unlabelled.cells import Numbers
from groundstate.study.unlabelled.densities import DensitySearch, _simplest
from groundstate.study.unlabelled.described import fixed_columns
from groundstate.study.unlabelled.groups import _marks, group_facts
from groundstate.study.unlabelled.outliers import outlier_facts
from groundstate.study.unlabelled.survey import _about_groups, _about_odd, _verdict, reason_words


@pytest.fixture(scope="module")
def rings() -> Survey:
    return survey("rings", models="GaussianMixture")


def test_groups_of_a_ring_are_found(rings: Survey) -> None:
    assert rings.chosen == "GaussianMixture(8, diag)"  # its clouds are round
    sizes = [int("".join(filter(str.isdigit, name))) for name in rings.board.tied]
    assert min(sizes) == 8  # a ninth and a tenth, which are tried too, do no harm
    assert rings.groups is not None
    truth = data.load("rings").y
    for group in range(8):  # each group is one of the eight clouds
        assert np.bincount(truth[rings.groups == group]).max() >= 98


def test_scores_are_minus_the_mean_log_density(rings: Survey) -> None:
    rest = rings.table.take(rings.split.test_rows)
    expected = -float(np.mean(rings.model.score_samples(rest)))
    assert rings.scores["mean_nll"].estimate == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(rings.energies, rings.model.energy(rings.table), rtol=1e-8)


def test_what_is_tried_without_a_word() -> None:
    """Every registered density that is quick to fit, and no generator; those by their name."""
    table = data.load("iris").features
    found = DensitySearch("auto", table).start()
    assert {name.partition("(")[0] for name in found} == {
        "FactorAnalysis", "GaussianMixture", "ProbabilisticPCA",
    }  # fmt: skip
    named = DensitySearch("NormalizingFlow,GaussianMixture", table).start()
    assert "NormalizingFlow()" in named and "GaussianMixture(2)" in named


def test_few_different_rows() -> None:
    with pytest.raises(
        DataError, match="2 different training rows among 60 are too few for a density"
    ):
        survey({"a": [1.0, 2.0, 3.0] * 30, "b": [5.0, 1.0, 2.0] * 30}, models="ProbabilisticPCA")
    rng = np.random.default_rng(0)
    letters = {"a": rng.choice(["x", "y", "z"], 80), "b": rng.choice(["u", "v"], 80)}
    found = survey(letters, models="GaussianMixture")
    assert found.chosen.startswith("GaussianMixture") and np.isfinite(found.energies).all()


def test_target_of_a_table_is_left_out() -> None:
    found = survey("iris", models="GaussianMixture")
    assert "target" not in found.table.columns and found.table.n_rows == 150


def test_text_beside_other_columns_is_left_out() -> None:
    rng = np.random.default_rng(0)
    words = np.array(["red", "old", "fast", "small", "loud", "cheap", "rusty", "quiet"])
    names = [f"{' '.join(rng.choice(words, 5))} car number {i}" for i in range(90)]
    numbers = dict(zip("ab", rng.normal(size=(2, 90)), strict=True))
    found = survey({**numbers, "name": names}, models="ProbabilisticPCA")
    assert found.table.columns == ("a", "b")
    said = [f.sentence for f in found.findings if f.code == "text"]
    assert said and "'name' is text" in said[0]


def test_rivals_are_those_of_the_chosen_model() -> None:
    """Where another model sees the groups, it is not called its own rival; many sizes are a range."""
    facts = {
        "chosen": "ProbabilisticPCA(4)", "groups": [5] * 9 + [7], "candidates": {"entries": []},
        "scores": {"mean_nll": {"value": 1.0, "lo": 0.5, "hi": 1.5, "n": 50}},
        "comparison": {"tied": ["ProbabilisticPCA(4)", *(f"GaussianMixture({k})" for k in range(6))]},
        "grouping": {"model": "GaussianMixture(0)", "agreement": {"mean": 0.9}},
        "outliers": [{"row": 3, "energy": 9.0, "missing": [], "reasons": []}],
        "energy": {"median": 1.0},
    }  # fmt: skip
    first, second, _ = _verdict(facts)
    assert first.endswith("GaussianMixture(2) and 3 more cannot be told apart from it.")
    assert second.startswith(
        "GaussianMixture(0), the best with groups, sees 10 groups, of 5 to 7 rows"
    )
    assert "told apart" not in second


def test_an_odd_row_is_found() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 2))
    rows[37] = [9.0, -9.0]
    told = survey_facts(survey({"a": rows[:, 0], "b": rows[:, 1]}, models="ProbabilisticPCA"))
    assert told["outliers"][0]["row"] == 38 and "number 38" in told["verdict"][2]
    assert told["groups"] == [] and "not by groups" in told["verdict"][1]


def test_one_cloud_is_one_group() -> None:
    rng = np.random.default_rng(1)
    rows = {"a": rng.normal(size=150), "b": rng.normal(size=150)}
    told = survey_facts(survey(rows, models="GaussianMixture"))
    assert told["chosen"] == "GaussianMixture(1, diag)" and "one group" in told["verdict"][1]


def test_the_simplest_of_those_that_are_as_good_is_taken() -> None:
    """By one standard error of the differences, not by the best score."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=400)
    best = -0.5 * rows**2
    values = {
        "best": best + 1e-3,
        "near": best + 0.1 * rng.normal(size=400),
        "simple": best + 0.5 * rng.normal(size=400),
        "too simple": best - 0.2 + 0.5 * rng.normal(size=400),
    }
    sizes = {"best": 50.0, "near": 20.0, "simple": 5.0, "too simple": 1.0}
    values = {name: v - v.mean() + best.mean() for name, v in values.items()}
    values["best"] += 1e-3
    values["too simple"] -= 0.2
    assert _simplest(values, sizes) == "simple"
    assert _simplest({"best": values["best"], "too simple": values["too simple"]}, sizes) == "best"
    three = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 100, 0) + rng.normal(size=(300, 2))
    found = survey({"a": three[:, 0], "b": three[:, 1]}, models="GaussianMixture")
    assert found.chosen == "GaussianMixture(3, diag)"


def test_candidates_fit_the_table() -> None:
    few = data.read(np.random.default_rng(0).normal(size=(12, 3)))
    names = "GaussianMixture,ProbabilisticPCA"
    assert list(DensitySearch(names, few).start()) == [
        "GaussianMixture(1)",
        "GaussianMixture(2)",
        "GaussianMixture(1, diag)",
        "GaussianMixture(2, diag)",
        "ProbabilisticPCA(1)",
        "ProbabilisticPCA(2)",
    ]
    with pytest.raises(Unsupported, match="KMeans is a clusterer without a density"):
        DensitySearch("KMeans", few)
    with pytest.raises(Unsupported, match="did you mean 'GaussianMixture'"):
        DensitySearch("GaussianMixtur", few)


def test_a_search_goes_past_its_edge_while_the_edge_is_best() -> None:
    rows = data.read(np.random.default_rng(0).normal(size=(200, 2)))
    search = DensitySearch("GaussianMixture", rows)
    full, diagonal = search.kinds
    names = [name for name in search.start() if "diag" not in name]
    assert names[-1] == "GaussianMixture(8)"
    falling = {name: -float(i) for i, name in enumerate(names)}
    assert list(search.more(falling)) == ["GaussianMixture(12)"]
    assert list(search.more({**falling, "GaussianMixture(12)": -99.0})) == ["GaussianMixture(18)"]
    passed = {**falling, "GaussianMixture(12)": 0.0}  # the edge is not the best: those next to 8
    assert list(search.more(passed)) == ["GaussianMixture(10)", "GaussianMixture(7)"]
    assert search.more({**passed, "GaussianMixture(10)": 0.0, "GaussianMixture(7)": 0.0}) != {}
    known = passed | {f"GaussianMixture({k})": 0.0 for k in (7, 9, 10)}
    assert search.more(known) == {}
    for name in ("GaussianMixture(18)", "GaussianMixture(27)"):
        falling[name] = -100.0 - len(falling)
        search.more(falling)
    assert search.tried[diagonal] == [1, 2, 3, 4, 6, 8], "of which nothing is known"
    assert max(search.tried[full]) <= 40, "at least five rows for each component"


def test_many_clouds_are_found_past_the_first_sizes() -> None:
    rng = np.random.default_rng(0)
    at = np.array([[i, j] for i in range(4) for j in range(3)]) * 12.0  # twelve clouds
    rows = np.repeat(at, 60, 0) + rng.normal(size=(720, 2))
    found = survey({"a": rows[:, 0], "b": rows[:, 1]}, models="GaussianMixture")
    assert found.chosen == "GaussianMixture(12, diag)"


@pytest.mark.parametrize("seed", range(3))
def test_steps_and_copies_do_not_make_densities_infinite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300
    table = {
        "whole": rng.integers(0, 4, n), "zeros": np.where(rng.random(n) < 0.7, 0.0, rng.random(n)),
        "colour": rng.choice(["red", "green"], n), "real": rng.normal(size=n),
    }  # fmt: skip
    table["copy"] = table["real"]
    found = survey(table, models="GaussianMixture", seed=seed)
    assert all(-20 < entry.score < 60 for entry in found.board if not entry.failed)
    assert np.abs(found.energies).max() < 200
    assert found.scores["mean_nll"].estimate > -20


def test_columns_that_others_fix_are_left_out() -> None:
    """A ring and a multiple of one of its sides: the thinnest plane won, and the ring was not seen."""
    angle = np.linspace(0, 2 * np.pi, 240, endpoint=False)
    ring = {"x": np.cos(angle), "y": np.sin(angle), "twice": 2 * np.cos(angle)}
    found = survey(ring, models="GaussianMixture,ProbabilisticPCA")
    assert found.chosen.startswith("GaussianMixture") and found.table.columns == ("x", "y")
    finding = next(f for f in found.findings if f.code == "fixed_columns")
    assert finding.columns == ("twice", "x") and "linear function of 'x'" in finding.sentence


def test_which_columns_are_fixed() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(1e6, 1.0, 50), rng.normal(0.0, 1e-6, 50)
    rows = {
        "a": a,
        "b": b,
        "sum": a + 1e6 * b,
        "near": a + 1e-5 * rng.normal(size=50),
        "kilo": a / 1e3,
    }
    assert fixed_columns(data.read(rows)) == {"sum": ("a", "b"), "kilo": ("a",)}
    holes = np.where(np.arange(50) < 5, np.nan, a / 1e3)
    assert fixed_columns(data.read({**rows, "kilo": holes})) == {"sum": ("a", "b")}
    few = {name: rng.normal(size=4) for name in "pqrs"}
    assert fixed_columns(data.read(few)) == {} == fixed_columns(data.read({"a": a}))


def test_sizes_between_are_tried_around_the_best() -> None:
    rng = np.random.default_rng(0)
    codes, loadings = rng.normal(size=(400, 5)), rng.normal(size=(5, 12))
    rows = codes @ loadings + 0.5 * rng.normal(size=(400, 12))
    found = survey(dict(zip("abcdefghijkl", rows.T, strict=True)), models="FactorAnalysis")
    assert found.chosen == "FactorAnalysis(5)"  # of 1, 2, 3, 4, 6 and 8 it was 6


def test_mixtures_of_many_columns_do_not_explode() -> None:
    """Components of 19 rows in 40 columns had 1e5 nats: what is added is chosen by held-out rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 40)) + rng.normal(size=(150, 40))
    table = data.read({f"x{i}": column for i, column in enumerate(rows.T)})
    search = DensitySearch("GaussianMixture", table)
    start = search.start()
    known = {name: model.estimator.reg_covar for name, model in start.items()}
    assert known["GaussianMixture(8)"] == "auto" and known["GaussianMixture(1, diag)"] == 1e-6
    board = compare_densities({name: start[name] for name in list(start)[:5:2]}, table, cv=3)
    assert all(entry.score < 150 for entry in board)


def test_one_group_that_rivals_would_divide() -> None:
    facts = {"groups": [30], "chosen": "GaussianMixture(1)",
             "grouping": {"model": "GaussianMixture(1)", "several": []}}  # fmt: skip
    assert "nothing here suggests several" in _about_groups(facts)
    facts["grouping"]["several"] = ["GaussianMixture(2, diag)", "GaussianMixture(3)"]
    assert (
        "but GaussianMixture(2, diag) and 1 more, made of several, cannot be told"
        in _about_groups(facts)
    )
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 2)) + 4 * (np.arange(20) > 9)[:, None]
    found = survey(dict(zip("ab", rows.T, strict=True)), models="GaussianMixture")
    several = found.grouping["several"]
    assert set(several) <= set(found.board.tied) and "GaussianMixture(1)" not in several


def test_odd_cells_are_named_with_what_was_expected() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(size=400)
    kind = np.where(size > 0, "large", "small")
    rows = {"size": size, "weight": 2 * size + 0.1 * rng.normal(size=400), "kind": kind}
    rows["weight"][7] = 6.0
    rows["size"][7] = 0.0
    table = data.read(rows)
    model = TablePredictor(GaussianMixture(2, random_state=0), dequantise=True).fit(table)
    first = outlier_facts(model, table, -model.score_samples(table), Key.of(0))[0]
    assert first["row"] == 8 and {r["column"] for r in first["reasons"]} >= {"weight", "size"}
    weight = next(r for r in first["reasons"] if r["column"] == "weight")
    assert weight["value"] == 6.0 and weight["expected"][1] < 3.0
    assert reason_words(weight).startswith("weight is 6, where ")


def test_odd_cells_of_a_column_and_its_copy_are_named() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(size=300)
    size[7] = 30.0
    colour = np.where(np.arange(300) == 7, "purple", rng.choice(["red", "blue"], 300))
    table = data.read({
        "size": size, "copy": size, "other": rng.normal(size=300), "colour": colour, "farbe": colour
    })  # fmt: skip
    model = TablePredictor(GaussianMixture(1, random_state=0), dequantise=True).fit(table)
    first = outlier_facts(model, table, -model.score_samples(table), Key.of(0))[0]
    assert first["row"] == 8
    size_of = first["reasons"][0]
    assert (
        size_of["column"] in ("size", "copy")
        and size_of["value"] == 30.0
        and size_of["expected"][1] < 2.5
    )
    facts = {"outliers": [first | {"missing": ["other"]}], "energy": {"median": 1.0}}
    assert _about_odd(facts).endswith("; other is missing.")
    assert "is usual" in _about_odd(facts)


def test_energies_are_in_the_units_of_the_score_and_odd_rows_name_what_they_miss() -> None:
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 300)
    rows = {
        "count": 3 * side + rng.integers(0, 3, 300),
        "side": np.where(side, "left", "right"),
        "seite": np.where(side, "links", "rechts"),
        "shade": [None if i in (5, 9) else "dark" if v else "light" for i, v in enumerate(side)],
        "often": [None if i % 3 else v for i, v in enumerate(rng.normal(size=300).tolist())],
    }
    found = survey(rows, models="GaussianMixture")
    rest = found.energies[found.split.test_rows]
    assert rest.mean() == pytest.approx(found.scores["mean_nll"].estimate, abs=0.5)
    odd = {row["row"]: row for row in found.outliers}
    assert odd[6]["missing"] == odd[10]["missing"] == ["shade"]
    assert "often" not in {name for row in found.outliers for name in row["missing"]}
    for row in found.outliers:
        for reason in row["reasons"]:
            if reason["column"] == "count":
                assert all(float(end).is_integer() for end in reason["expected"])
    assert found.filled is not None
    for group in found.grouping["each"]:
        assert len({"side", "seite"} & {mark["column"] for mark in group["marks"]}) <= 1
    facts = survey_facts(found)
    facts["outliers"] = [odd[6]]
    assert _verdict(facts)[2].endswith("shade is missing.")


def test_reasons_in_words() -> None:
    reason = {"column": "class", "value": 2.0, "expected": [3.0, 3.0]}
    assert reason_words(reason) == "class is 2, where 3 is expected"
    assert (
        reason_words({**reason, "expected": [0.0, 1.0]}) == "class is 2, where 0 to 1 is expected"
    )
    below = {**reason, "value": -60.0, "expected": [-1.5, 1e-5], "alone": True}
    assert reason_words(below) == "class is −60, where −1.5 to 1e-05 is usual"
    drawn = Numbers(np.array([[-0.2, 0.1, 1.4]] * 2), whole=True)
    np.testing.assert_array_equal(drawn.interval(), [[-0.0, 1.0]] * 2)
    between = Numbers(np.array([[2.3, 2.4, 2.2]]), whole=True).interval(within=(0.0, 9.0))
    np.testing.assert_array_equal(between, [[2.0, 2.0]])  # no whole number is inside
    assert not np.signbit(drawn.best()).any() and (drawn.best() == 0.0).all()


def test_a_group_is_named_by_what_it_has() -> None:
    side = ["a"] * 30 + ["b"] * 30
    table = data.read({"x": np.arange(60.0), "side": side, "deck": ["C"] * 30 + [None] * 30})
    mine = np.arange(60) >= 30
    marks = {mark["column"]: mark for mark in _marks(table, mine)}
    assert marks["side"]["level"] == "b" and marks["side"]["here"] == 1.0
    assert "deck" not in marks  # the same in other words
    only = data.read({"x": np.arange(60.0), "deck": ["C", "D"] * 15 + [None] * 30})
    assert _marks(only, mine)[-1]["level"] == "missing"


def test_groups_are_described_and_their_stability_is_measured() -> None:
    rng = np.random.default_rng(0)
    left = rng.random(300) < 0.5
    x = np.where(left, -6.0, 6.0) + rng.normal(size=300)
    side = np.where(left, "left", "right")
    table = data.read({"x": x, "noise": rng.normal(size=300), "side": side})
    candidate = TablePredictor(GaussianMixture(2), dequantise=True)
    groups = np.asarray(candidate.fit(table).predict(table))
    found = group_facts(candidate, table, groups, Key.of(0))
    assert len(found["each"]) == 2 and found["agreement"]["mean"] > 0.95
    for group in found["each"]:
        assert group["stability"] > 0.95
        assert {mark["column"] for mark in group["marks"]} == {"x", "side"}


def test_the_verdict_says_how_stable_groups_are(rings: Survey) -> None:
    assert "8 groups" in survey_facts(rings)["verdict"][1]
    assert ", stable" in survey_facts(rings)["verdict"][1]


def test_one_cloud_cut_in_three_is_called_unstable() -> None:
    rng = np.random.default_rng(0)
    table = data.read({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    model = TablePredictor(GaussianMixture(4, random_state=0))
    groups = np.asarray(model.fit(table).predict(table))
    facts = group_facts(model, table, np.unique(groups, return_inverse=True)[1], Key.of(0))
    assert facts["agreement"]["mean"] < 0.6


def test_missing_cells_are_filled_with_how_sure_that_is() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    b = [None if i < 20 else v for i, v in enumerate((3 * a + 0.1 * rng.normal(size=400)).tolist())]
    table = {"a": a, "b": b, "noise": rng.normal(size=400)}
    found = survey(table, models="GaussianMixture")
    skill = {fact["column"]: fact for fact in found.filling}
    assert skill["b"]["skill"] > 0.95 and skill["noise"]["skill"] < 0.2
    assert skill["b"]["lo"] <= skill["b"]["skill"] <= skill["b"]["hi"]
    assert 0.75 < skill["b"]["covered"] <= 1.0
    filled = found.filled
    assert filled is not None and filled["row"].to_list() == list(range(1, 21))
    values = filled["value"].cast(float).to_numpy()
    assert np.abs(values - 3 * a[:20]).max() < 1.0
    inside = (filled["low"].to_numpy() <= 3 * a[:20]) & (filled["high"].to_numpy() >= 3 * a[:20])
    assert inside.mean() > 0.7


def test_every_missing_cell_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a column only the first 5,000 were, and the report called them all."""
    monkeypatch.setattr(filling, "_CELLS", 7)
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    holes = rng.random(80) < 0.3
    kind = [None if u < 0.2 else "low" if v < 0 else "high" for u, v in zip(rng.random(80), a)]
    table = data.read(
        {"a": a, "b": np.where(holes, np.nan, 2 * a + 0.1 * rng.normal(size=80)), "kind": kind}
    )
    model = TablePredictor(GaussianMixture(1, random_state=0), dequantise=True).fit(table)
    filled = filling.filled_cells(model, table, Key.of(0))
    assert filled is not None
    for column, gone in (("b", holes), ("kind", np.array([k is None for k in kind]))):
        mine = filled.filter(filled["column"] == column)
        assert (mine["row"].to_numpy() - 1).tolist() == np.flatnonzero(gone).tolist()
    b = filled.filter(filled["column"] == "b")
    assert np.corrcoef(b["value"].cast(float).to_numpy(), a[holes])[0, 1] > 0.99


def test_few_rows_get_the_linear_map() -> None:
    rows = np.random.default_rng(0).normal(size=(25, 4))
    found = survey(dict(zip("abcd", rows.T)), models="GaussianMixture")
    assert list(found.map.trust) == ["two widest directions"] and found.map.at.shape == (25, 2)


def test_failures_become_notes_and_all_failing_is_an_error() -> None:
    rows = data.load("rings").features.head(60)
    sizes = {k: TablePredictor(GaussianMixture(int(k))) for k in ("1", "500")}
    board = compare_densities(sizes, rows)
    assert board.best.name == "1" and board["500"].notes[0].startswith("failed: ")
    with pytest.raises(DataError, match="no candidate could be fitted; failed: "):
        compare_densities({"500": sizes["500"]}, rows)


@pytest.mark.slow
def test_folder_page_and_script(rings: Survey, tmp_path: Path) -> None:
    with RunDir(tmp_path / "out") as run:
        told = write(rings, run, "rings")
    assert told == json.loads((tmp_path / "out" / "report.json").read_text())
    again = survey_facts(survey("rings", models="GaussianMixture"))
    assert json.dumps({**again, "pictures": told["pictures"]}) == json.dumps(told)
    text = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"https?:|<script|<img", text) and "The least typical rows" in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    script = tmp_path / "out" / "reproduce.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    again = json.loads(done.stdout)
    assert all(again[name] == told[name] for name in ("chosen", "candidates", "scores"))
