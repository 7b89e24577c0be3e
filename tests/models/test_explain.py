"""``explain``: what a model is made of, from its own declarations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sklearn.dummy import DummyClassifier

from groundstate import LanguageModel, LogisticRegression, Perceptron, Ridge, data, explain
from groundstate.errors import Unsupported
from groundstate.models.base import Plan
from groundstate.models.physics.pinn import PINN
from groundstate.models.tables.table import TablePredictor
from groundstate.models.words import formula, plain, sentences
from groundstate.registry import models


@pytest.mark.parametrize("name", models.names())
def test_every_registered_model_is_told_in_words_and_formulas(name: str) -> None:
    told = explain(name)
    for part in (told.energy, told.rule, told.solver):
        assert part.name and part.words
    assert told.formula and told.energy.formula and told.rule.formula
    assert told.task == models[name].task and told.inference
    text = str(told)
    assert "\\" not in text and ":math:" not in text and "``" not in text


def test_logistic_regression() -> None:
    told = explain(LogisticRegression)
    assert (told.energy.name, told.rule.name, told.solver.name) == (
        "LinearEnergy",
        "SoftMin",
        "Newton",
    )
    assert told.penalty is not None and told.penalty.name == "L2"
    assert told.spaces == {"x": "Real(3)", "y": "Finite(n=3)"}
    by = {(a.operation, a.free): (a.method, a.exact) for a in told.inference}
    assert by[("minimise", "y")] == ("Enumerate", True)
    assert ("sample", "x") not in by  # a distribution of y given x says nothing about x


def test_parameters_change_the_parts() -> None:
    assert explain(LogisticRegression(solver="lbfgs")).solver.name == "LBFGS"
    assert explain(LogisticRegression(C=float("inf"))).penalty is None
    assert explain(Ridge(alpha=0.0)).penalty is None
    assert explain(Perceptron()).rule.name == "Perceptron"


def test_a_fitted_model_tells_what_was_learned() -> None:
    table = data.load("iris")
    model = TablePredictor(LogisticRegression()).fit(table)
    before = model.estimator_.coef_.copy()
    told = explain(model)
    assert told.spaces["x"] == "Real(4)" and told.learned["converged"] is True
    assert told.preparation == "4 columns of the table become 4 numbers"
    assert (model.estimator_.coef_ == before).all()
    assert "Learned: steps" in str(told) and told.to_dict()["energy"]["name"] == "LinearEnergy"


def test_a_users_own_parts_are_told_too() -> None:
    from groundstate.energy import Energy, Finite, Real

    class Wells(Energy):
        r"""Wells in the plane.

        .. math:: e(x, y) = \|x - \mu_y\|^2
        """

        def __init__(self) -> None:
            super().__init__(x=Real(3), y=Finite(3))
            self.mu = torch.nn.Parameter(torch.eye(3))

        def forward(self, x: Any, y: Any) -> Any:
            return (x - self.mu[y]).square().sum(-1)

    class Mine(LogisticRegression):
        """My own."""

        def _build(self, X: Any, y: Any, weight: Any) -> Plan:
            plan = super()._build(X, y, weight)
            return Plan(Wells(), plan.rule)

    told = explain(Mine())
    assert told.energy.name == "Wells" and plain(told.energy.formula) == "e(x, y) = ‖x - μ_y‖²"
    assert told.energy.words == "Wells in the plane." and told.solver.name


def test_a_fitted_model_of_texts_is_explained() -> None:
    texts = [f"the cat number {k} sat on mat {k % 7}" for k in range(30)]
    model = LanguageModel(max_epochs=1, random_state=0).fit(texts)
    facts = explain(model)
    assert facts.spaces.keys() == {"y"} and facts.learned["steps"] == 1
    assert "minimise" in {a.operation for a in facts.inference}


def test_a_model_that_is_not_fitted_to_rows_is_refused() -> None:
    with pytest.raises(Unsupported, match="PINN is fitted to something else"):
        explain(PINN("burgers"))


def test_models_of_others_are_refused() -> None:
    with pytest.raises(Unsupported, match="DummyClassifier has no energy; there are .*Ridge"):
        explain(DummyClassifier())
    with pytest.raises(Unsupported, match="did you mean 'Ridge'"):
        explain("Rigde")


def test_formulas_in_plain_text() -> None:
    assert plain(r"\frac{1}{2C}\|\theta\|^2") == "1/(2C) ‖θ‖²"
    assert plain(r"T\log\sum_{y'} e^{-e_{y'}/T}") == "T log Σ_{y'} e^{-e_{y'}/T}"
    assert plain(r"\hat y \ne y") == "y\u0302 ≠ y"
    assert formula(Ridge).startswith(r"e(x, y) = \tfrac12") and formula(object()) == ""
    assert sentences(Ridge).startswith("Squared distance to a linear prediction")
