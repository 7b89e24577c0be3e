"""A study in Python: answers for new rows, what notebooks show, pages before the end, ticks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import groundstate
from groundstate import data
from groundstate.errors import DataError, Unsupported
from groundstate.report import page, report
from groundstate.study import held_out
from groundstate.study.facts import report_facts
from groundstate.study.rare import rare_class
from groundstate.study.verdict import three_sentences

QUICK: dict[str, Any] = {"tune": 0, "seeds": 0, "bootstrap": 0, "test": 0.3}


@pytest.fixture(scope="module")
def classes() -> Any:
    return groundstate.study("iris", model="GaussianNB", **QUICK)


def test_answers_for_new_rows(classes: Any) -> None:
    assert (classes.predict("iris") == classes.model.predict("iris")).all()
    assert classes.predict_proba("iris").shape == (150, 3)
    sets, wide = classes.interval("iris", level=0.8), classes.interval("iris", level=0.99)
    y = data.load("iris").y
    assert sets.coverage(y).estimate > 0.75 and (wide.member >= sets.member).all()
    with pytest.raises(DataError, match="between 0 and 1"):
        classes.interval("iris", level=90)
    numbers = groundstate.study("diabetes", model="Ridge", **QUICK)
    held = numbers.found.judged
    rows = data.load("diabetes").take(held)
    assert numbers.interval(rows, level=0.9).coverage(rows.y).estimate == pytest.approx(
        0.9, abs=0.02
    )
    with pytest.raises(Unsupported, match="gives no probabilities"):
        numbers.predict_proba("diabetes")


def test_a_study_explains_itself(classes: Any) -> None:
    columns = classes.explain(n_repeats=2)
    assert any("petal" in name for name in columns.groups[0])
    why = classes.explain(data.load("iris").take(np.array([0, 100])))
    assert {part["column"] for part in why.top(0)} <= set(data.load("iris").columns)


def test_notebooks_show_verdict_scores_and_a_picture(classes: Any) -> None:
    shown = classes._repr_html_()
    for text in (
        *classes.verdict.split("\n")[:1],
        "Log loss",
        "constant answer",
        "<svg",
        "GaussianNB",
    ):
        assert text.replace("'", "&#x27;") in shown or text in shown
    assert "<script" not in shown


def test_a_running_study_says_in_a_notebook_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    shown: list[str] = []
    line = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(
        HTML=str, display=lambda first, display_id: shown.append(first) or line
    )
    shell = SimpleNamespace(kernel=object())
    pretended = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", pretended)
    options: Any = {"tune": 0, "repeats": 1, "seeds": 0, "bootstrap": 0, "folds": 2}
    groundstate.study("iris", model="GaussianNB", ledger="none", **options)
    assert shown[0] == "starting"
    assert [text for text in shown if "comparing GaussianNB" in text and "left" in text]


def test_a_page_before_the_end_says_what_it_waits_for(classes: Any) -> None:
    found = replace(
        classes.found, calibration=None, variation=None, curve=None, diagnosis=None, bound=None,
        decision=None, stage="first answer", unfinished=("tuning", "the learning curve"),
    )  # fmt: skip
    facts, drawn = report(found)
    text = page(facts, drawn)
    assert "In progress: tuning; the learning curve." in text
    assert "Diagnosis" not in text and "Single answers" not in text
    late = replace(found, stage="done")
    assert "Left out for time: tuning" in page(*report(late))
    assert "In progress" not in page(*report(classes.found))


def test_labels_of_axes_do_not_touch(classes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    seen = []
    write = Figure.savefig

    def checked(figure: Figure, *args: Any, **options: Any) -> None:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                ticks = axis.get_ticklabels(which="both")
                boxes = [t.get_window_extent() for t in ticks if t.get_text() and t.get_visible()]
                at = 0 if axis is axes.xaxis else 1
                ends = sorted((b.intervalx, b.intervaly)[at].tolist() for b in boxes if b.width)
                seen.extend(a[1] <= b[0] + 0.5 for a, b in pairwise(ends))
                assert all(seen), (figure, axis, [t.get_text() for t in ticks])
        write(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", checked)
    report(classes.found)
    assert len(seen) > 10


def test_a_rare_class_is_what_precision_and_recall_are_about() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = np.where(x + 0.3 * rng.normal(size=300) > 1.3, "a fault", "fine")
    found = groundstate.study({"x": x, "y": y}, "y", model="LogisticRegression", **QUICK)
    facts = found.facts
    assert facts["design"]["positive"] == "a fault" and facts["rare"]["class"] == "a fault"
    assert "Class 'a fault' is rare" in found.verdict
    assert facts["scores"]["recall"]["value"] == facts["rare"]["recall"]["value"]
    assert rare_class(np.array(["b"] * 30 + ["c"] * 20), np.array(["b", "c"])) is None


def test_coverage_below_the_promise_is_commented() -> None:
    from groundstate.math.stats.interval import Interval

    words = held_out._coverage_words(Interval(0.885, 0.87, 0.899, 0.95, "wilson"), False)
    assert words.startswith("measurably below the 90% promised")
    assert (
        held_out._coverage_words(Interval(0.9, 0.88, 0.92, 0.95, "wilson"), False) == "as promised"
    )


def test_never_better_than_a_constant_without_evidence(classes: Any) -> None:
    from groundstate.math.stats.interval import Interval

    sure = Interval(0.5, 0.4, 0.6, 0.95, "bootstrap")
    unsure = [{"against": "dummy", "p_holm": 0.38}]
    assert held_out.beats_constant("A", "dummy", sure, [], 0.95)
    assert not held_out.beats_constant("A", "dummy", sure, unsure, 0.95)
    assert not held_out.beats_constant("dummy", "dummy", sure, [], 0.95)
    loss = (
        {"log_loss": Interval(0.9, 0.8, 1.0, 0.95, "bca")},
        {"log_loss": Interval(0.3, 0.2, 0.4, 0.95, "bca")},
    )
    assert held_out.worse_probabilities(*loss) == {"model": 0.9, "constant": 0.3}
    assert held_out.worse_probabilities(*loss[::-1]) is None
    facts = report_facts(classes.found)
    facts["baselines"]["worse_probabilities"] = {"model": 0.9, "constant": 0.3}
    said = three_sentences(facts)[1]
    assert "its probabilities are not (log loss 0.900 against 0.300)" in said


def test_the_recipe_is_credited_where_models_were_mixed(classes: Any) -> None:
    facts = {**report_facts(classes.found), "chosen_in_folds": {"GaussianNB": 2, "SVC": 13}}
    said = three_sentences(facts)[0]
    wanted = "The recipe, which takes its model or the constant answer in each fold, predicts"
    assert said.startswith(wanted)
    assert said.endswith("; the final choice, GaussianNB, was chosen in 2 of 15 folds.")
