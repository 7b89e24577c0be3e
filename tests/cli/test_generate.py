"""``generate``: texts of a saved language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundstate import LanguageModel


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = LanguageModel("gru", 32, dim=8, layers=1, lr=0.02, max_epochs=5, val_fraction=0.0)
    model.set_params(random_state=0).fit(["the cat sat on the mat."] * 4)
    return model.save(tmp_path_factory.mktemp("model") / "model.gs")


def test_a_text_begins_with_the_prompt(call: Any, saved: Path) -> None:
    done = call("generate", saved, "--prompt", "the c", "--tokens", 5, "--seed", 1)
    assert done.code == 0 and done.out.startswith("the c")
    again = call("generate", saved, "--prompt", "the c", "--tokens", 5, "--seed", 1)
    assert again.out == done.out
    some = call("generate", saved, "-n", 3, "--tokens", 5, "-T", 0.5, "--top-k", 9, "--json")
    assert len(some.json["texts"]) == 3 and some.json["prompt"] == ""
    greedy = call("generate", saved, "--method", "greedy", "--tokens", 5, "--json")
    assert greedy.json == call("generate", saved, "-T", 0, "--tokens", 5, "--json").json


def test_mistakes_are_one_sentence(call: Any, saved: Path, fitted: Path) -> None:
    done = call("generate", fitted / "model.gs")
    assert done.code == 2 and "generates no text" in done.error
    done = call("generate", saved, "--method", "best")
    assert done.code == 2 and "--method is sample, greedy or beam" in done.error
