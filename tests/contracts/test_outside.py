"""Estimators that stand outside the registry say why, and keep the promises that apply to them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import groundstate
from groundstate.data import make_relations
from groundstate.errors import DataError, ShapeError
from groundstate.models.physics import PINN, EquationFinder, NeuralODE
from groundstate.models.physics.library import PROBLEMS
from groundstate.models.text import WordVectors
from groundstate.models.vision import HOG
from groundstate.registry import models
from groundstate.store import load, save

TIMES = np.linspace(0, 2, 11)


def decays() -> list[Any]:
    return [(TIMES, np.exp(-TIMES)[:, None] * start) for start in (1.0, 2.0)]


@dataclass(frozen=True)
class Case:
    """An unfitted model, what it learns from, what it answers, and input that it refuses."""

    model: Any
    given: Callable[[], tuple[Any, ...]]
    answer: Callable[[Any], Any]
    bad: tuple[Any, ...]


CASES = {
    "HOG": Case(
        HOG(4, 4, 2),
        lambda: (np.random.default_rng(0).random((2, 16, 16)),),
        lambda m: m.transform(np.eye(16)[None]),
        (np.zeros((2, 3)),),
    ),
    "NeuralODE": Case(
        NeuralODE(hidden=(4,), method="rk4", max_iter=3, random_state=0),
        lambda: (decays(),),
        lambda m: m.predict([[1.0], [0.5]], TIMES[:3]),
        ([(TIMES, np.full((11, 1), np.nan))],),
    ),
    "PINN": Case(
        PINN(
            PROBLEMS["poisson2d"](),
            hidden=(4,),
            n_collocation=32,
            optimizer="lbfgs",
            lbfgs_steps=2,
            random_state=0,
        ),
        tuple,
        lambda m: m.predict(np.array([[0.2, 0.3], [0.5, 0.5]])),
        (np.zeros((3, 5)), np.zeros(3)),
    ),
    "EquationFinder": Case(
        EquationFinder(coordinates="t", order=0, random_state=0),
        lambda: (TIMES[:, None], np.exp(-2 * TIMES)),
        lambda m: m.coef_,
        (TIMES[:, None], np.full(11, np.nan)),
    ),
    "WordVectors": Case(
        WordVectors(dim=8, max_epochs=1, random_state=0),
        lambda: (make_relations(200),),
        lambda m: m.transform(["the king", "the queen"]),
        ([["a", "b"]],),
    ),
}


def outsiders() -> dict[str, str]:
    """Public estimators of the rooms of models that are not registered, with their reasons."""
    found: dict[str, str] = {}
    import groundstate.models as home

    for module in pkgutil.iter_modules(home.__path__):
        if not module.ispkg:
            continue
        room = importlib.import_module(f"groundstate.models.{module.name}")
        for name in getattr(room, "__all__", ()):
            cls = getattr(room, name)
            public = isinstance(cls, type) and issubclass(cls, BaseEstimator)
            if public and name not in models:
                found[name] = getattr(cls, "outside", "")
    return found


def test_whoever_stands_outside_says_why_and_has_a_case() -> None:
    found = outsiders()
    assert set(CASES) <= set(found)
    assert not [name for name, reason in found.items() if not reason]
    assert set(found) == set(CASES)


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_the_same_seed_the_same_numbers_and_a_file_gives_them_back(
    case: Case, tmp_path: Path
) -> None:
    one, two = (clone(case.model).fit(*case.given()) for _ in range(2))
    told = case.answer(one)
    np.testing.assert_array_equal(told, case.answer(two))
    path = save(one, tmp_path / "model.gs")
    again = load(path)
    assert type(again) is type(one)
    np.testing.assert_array_equal(case.answer(again), told)
    assert repr(again) == repr(one)
    if hasattr(one, "save") and not isinstance(one, WordVectors):  # which writes word2vec's text
        assert one.save(tmp_path / "own.gs").read_bytes() == path.read_bytes()
        np.testing.assert_array_equal(case.answer(groundstate.load(tmp_path / "own.gs")), told)


def test_input_is_left_alone(case: Case) -> None:
    given, before = case.given(), case.given()
    clone(case.model).fit(*given)
    np.testing.assert_equal(given, before)


def test_init_only_stores_and_parameters_are_checked_in_fit(case: Case) -> None:
    params = case.model.get_params(deep=False)
    assert all(getattr(case.model, name) is value for name, value in params.items())
    assert not [name for name in vars(case.model) if name.endswith("_") and name[0] != "_"]


def test_bad_input_gets_a_sentence(case: Case) -> None:
    with pytest.raises((DataError, ShapeError, ValueError)) as told:
        clone(case.model).fit(*case.bad)
    assert "\n" not in str(told.value) and len(str(told.value)) > 20


def test_a_weight_of_two_is_the_curve_twice() -> None:
    one, two = decays()
    model = CASES["NeuralODE"].model
    weighted = clone(model).fit([one, two], sample_weight=[1.0, 2.0])
    twice = clone(model).fit([one, two, two])
    told = [m.predict([[1.0]], TIMES) for m in (weighted, twice)]
    np.testing.assert_allclose(*told, rtol=1e-6)


def test_word2vec_text_keeps_the_vectors(tmp_path: Path) -> None:
    model = clone(CASES["WordVectors"].model).fit(*CASES["WordVectors"].given())
    again = WordVectors.load(model.save(tmp_path / "vectors.txt"))
    assert again.vocabulary_ == model.vocabulary_
    np.testing.assert_array_equal(again.vectors_, model.vectors_)
