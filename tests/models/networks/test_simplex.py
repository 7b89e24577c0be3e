"""Classification as regression onto the simplex: one network, four losses, one decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import scale
from torch import nn

from groundstate import MLPClassifier, NeuralClassifier
from groundstate.errors import Unsupported
from groundstate.learn import losses
from groundstate.learn.rules.score_loss import ScoreLoss

X, Y = load_iris(return_X_y=True)
X = scale(X)
LOSSES = ("cross_entropy", "brier", "squared_onehot", "hinge")


def fitted(loss: Any, x: Any = X, y: Any = Y, hidden: Any = (10,), **more: Any) -> MLPClassifier:
    settings: dict[str, Any] = {
        "learning_rate_init": 0.02, "max_iter": 60, "n_iter_no_change": np.inf, "alpha": 0.0,
    }  # fmt: skip
    return MLPClassifier(hidden, loss=loss, random_state=0, **settings | more).fit(x, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_decision_is_the_largest_score_and_probabilities_are_on_the_simplex(loss: str) -> None:
    model = fitted(loss)
    assert model.score(X, Y) > 0.95
    p = model.predict_proba(X)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(1))
    np.testing.assert_array_equal(model.predict(X), model.energy_.table("y", x=torch.tensor(X))
                                  .argmin(1).numpy())  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes(loss: str) -> None:
    x, y = make_moons(200, noise=0.2, random_state=0)
    model = fitted(loss, x, y, (20,), batch_size=40, learning_rate_init=0.05, max_iter=100)
    assert model.score(x, y) > 0.93
    assert model.n_outputs_ == (2 if loss == "squared_onehot" else 1)
    one = model.predict_proba(x)[:, 1]
    np.testing.assert_allclose(one, 1 / (1 + np.exp(-model.decision_function(x))), atol=1e-12)


@pytest.mark.parametrize("loss", ["brier", "squared_onehot", "hinge"])
def test_the_rule_is_the_loss_of_the_scores(loss: str) -> None:
    model = fitted(loss, max_iter=5)
    rows = {"x": torch.tensor(X), "y": torch.tensor(Y)}
    theirs = {"brier": losses.brier, "squared_onehot": losses.squared_onehot,
              "hinge": losses.multiclass_margin}[loss]  # fmt: skip
    scores = -model.energy_.table("y", x=rows["x"])
    terms = ScoreLoss(loss)(model.energy_, rows)
    torch.testing.assert_close(terms.loss.mean(), theirs(scores, rows["y"]))
    torch.testing.assert_close(terms.positive - terms.contrast, terms.loss)


def test_squares_onto_the_corners_are_the_ridge_classifier() -> None:
    model = fitted("squared_onehot", hidden=(), alpha=1.0, solver="lbfgs", max_iter=500, tol=1e-9)
    ridge = RidgeClassifier(alpha=0.5).fit(X, Y)  # its targets are −1 and 1, ours 0 and 1
    assert (model.predict(X) == ridge.predict(X)).mean() == 1.0
    np.testing.assert_allclose(2 * model.decision_function(X) - 1, ridge.decision_function(X),
                               atol=1e-4)  # fmt: skip


def test_errors_teach() -> None:
    several = np.column_stack([Y == 0, Y > 0]).astype(int)
    with pytest.raises(ValueError, match="loss='brier' is not known for several labels per row"):
        fitted("brier", y=several)
    with pytest.raises(ValueError, match="a loss of scores is one of .*brier.*, got 'nothing'"):
        ScoreLoss("nothing")
    with pytest.raises(ValueError, match="'brier' has no setting 'gamma'; it has none"):
        ScoreLoss("brier", gamma=1.0)
    with pytest.raises(Unsupported, match="give the network 2 outputs"):
        NeuralClassifier(lambda d, k: nn.Linear(d, 1), loss="squared_onehot").fit(X, Y > 0)
