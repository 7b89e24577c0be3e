"""``fit`` on a table with a column of texts, and what the chosen network answers afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

QUICK = ("--folds", "3", "--repeats", "1", "--tune", "0", "--seeds", "0", "--bootstrap", "0")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Opinions that "not" turns around, which single words cannot tell."""
    rng = np.random.default_rng(0)
    n = 330
    y, turned = rng.integers(2, size=n), rng.integers(2, size=n)
    good, bad = ["good", "fine", "great", "lovely"], ["bad", "poor", "dull", "weak"]
    said = [rng.choice(good if a != b else bad) for a, b in zip(y, turned)]
    rest = [
        " ".join(rng.choice(["the", "film", "food", "we", "saw", "it", "was", "then", "day"], 5))
        for _ in said
    ]
    texts = [f"{r} {'not ' if t else ''}really {s}" for r, t, s in zip(rest, turned, said)]
    file = tmp_path_factory.mktemp("texts") / "reviews.csv"
    labels = np.where(y == 1, "pos", "neg").tolist()
    pl.DataFrame({"text": texts, "stars": rng.normal(size=n), "label": labels}).write_csv(file)
    return file


@pytest.fixture(scope="module")
def chosen(call: Any, reviews: Path) -> Path:
    out = reviews.parent / "out"
    done = call(
        "fit", reviews, "--target", "label", "--out", out, *QUICK, "--thorough", "--json", "--without",
        "ensemble,HistGradientBoostingClassifier,explanation,refits,learning curve,diagnosis",
    )  # fmt: skip
    assert done.code == 0, done.error
    names = {entry["name"] for entry in done.json["candidates"]["entries"]}
    assert names >= {"TextCNNClassifier", "LogisticRegression", "MultinomialNB", "dummy"}
    assert done.json["chosen"] == "TextCNNClassifier"
    return out


def test_a_short_budget_leaves_the_network_out_and_says_so(call: Any, reviews: Path) -> None:
    out = reviews.parent / "short"
    done = call("fit", reviews, "--target", "label", "--out", out, "--budget", "1s", "--json")
    assert done.code in (0, 3), done.error
    assert "TextCNNClassifier" in str(done.json["skipped"])


def test_answers_of_the_network(call: Any, chosen: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("text,stars\nwe saw it not really good,0.1\nwe saw it really good,0.1\n,\n")
    labels = call("predict", chosen, new)
    assert labels.code == 0 and labels.out.split()[:3] == ["label", "neg", "pos"]
    why = call("predict", chosen, new, "--why")
    assert why.code == 0 and "text = we saw it not really good" in why.out
    assert call("predict", chosen, new, "--proba").out.startswith("label,p(neg),p(pos)")
    script = call("export", chosen)
    assert script.code == 0 and "groundstate.study(source, 'label'" in script.out
