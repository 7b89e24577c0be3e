"""Folds and grids of networks fitted at once equal the fits one after the other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from torch import nn

from groundstate.errors import NotApplicable, ShapeError
from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.networks import population
from groundstate.models.networks.mlp_classifier import MLPClassifier
from groundstate.models.networks.mlp_regressor import MLPRegressor
from groundstate.models.networks.neural_classifier import NeuralClassifier
from groundstate.models.population.many import fit_many, fit_together

pytestmark = pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
PARAMS = [
    {"alpha": 1e-4, "learning_rate_init": 1e-3, "random_state": 0},
    {"alpha": 1.0, "learning_rate_init": 1e-2, "random_state": 1},
    {"alpha": 0.0, "learning_rate_init": 3e-3, "random_state": 2, "hidden_layer_sizes": (5,)},
]


def case(name: str) -> tuple[Any, Any, Any]:
    if name == "values":
        X, y = load_diabetes(return_X_y=True)
        y = (y - y.mean()) / y.std()
        return X * 20, y, MLPRegressor(solver="sgd", hidden_layer_sizes=(6,), max_iter=6)
    if name in ("two targets", "counts"):
        X, y = load_iris(return_X_y=True)
        X = (X - X.mean(0)) / X.std(0)
        if name == "counts":
            return X, y, MLPRegressor("poisson", (6,), max_iter=6, batch_size=50)
        return X[:, :2], X[:, 2:], MLPRegressor(hidden_layer_sizes=(6,), max_iter=6, batch_size=50)
    load = load_iris if name == "classes" else load_breast_cancer
    X, y = load(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    return X, y, MLPClassifier((6,), max_iter=6, activation="tanh", batch_size=50)


def folds(n: int) -> np.ndarray[Any, Any]:
    weights = np.ones((3, n))
    for f in range(3):
        weights[f, f::3] = 0
    return weights


@pytest.mark.parametrize("name", ["classes", "two classes", "values", "two targets", "counts"])
def test_members_equal_single_fits(name: str) -> None:
    X, y, base = case(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few epochs
        models = fit_together(base, X, y, folds(len(X)), PARAMS)
        for model, weight, params in zip(models, folds(len(X)), PARAMS, strict=True):
            alone = base.__class__(**{**base.get_params(), **params}).fit(
                X, y, sample_weight=weight
            )
            for a, b in zip(model.coefs_, alone.coefs_, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
            np.testing.assert_allclose(model.loss_curve_, alone.loss_curve_, rtol=1e-9)
            assert (model.n_iter_, model.t_) == (alone.n_iter_, alone.t_)
            assert model.score(X, y) == pytest.approx(alone.score(X, y), abs=1e-9)


def test_each_rests_by_itself() -> None:
    X, y, base = case("classes")
    base.set_params(max_iter=400, n_iter_no_change=2, tol=1e-3)
    params = [{"learning_rate_init": v, "random_state": 0} for v in (0.3, 0.01)]
    models = fit_together(base, X, y, None, params)
    alone = [base.__class__(**{**base.get_params(), **p}).fit(X, y) for p in params]
    assert [m.n_iter_ for m in models] == [m.n_iter_ for m in alone]
    assert models[0].n_iter_ != models[1].n_iter_ < 400


def test_what_cannot_go_side_by_side_goes_one_after_the_other() -> None:
    X, y, base = case("classes")
    base.set_params(solver="lbfgs", random_state=0, max_iter=200)
    with pytest.raises(NotApplicable, match="L-BFGS"):
        fit_together(base, X, y, None, [{}, {}])
    model, other = fit_many(base, X, y, settings=[{}, {}])
    assert model.score(X, y) == other.score(X, y) > 0.9
    ridges = fit_many(Ridge(), X, y, settings=[{"alpha": 1.0}, {"alpha": 1e6}])
    assert abs(ridges[0].coef_).max() > 100 * abs(ridges[1].coef_).max()
    with pytest.raises(ShapeError, match=r"weights must be \(P, 150\) or \(150,\)"):
        fit_many(base, X, y, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="2 settings for 3 rows of weights"):
        fit_many(base, X, y, folds(150), [{}, {}])


@pytest.mark.parametrize("bagged", [False, True])
def test_committees_of_networks_are_one_program(
    bagged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate import BaggingClassifier, SeedEnsembleClassifier

    X, y, base = case("two classes")
    base.set_params(n_iter_no_change=np.inf)
    kind = BaggingClassifier if bagged else SeedEnsembleClassifier
    counted: list[int] = []
    once = population.fit_members

    def spy(base: Any, X: Any, y: Any, weights: Any, params: Any) -> Any:
        counted.append(len(params))
        return once(base, X, y, weights, params)

    monkeypatch.setattr(population, "fit_members", spy)
    together = kind(base, 4, random_state=0).fit(X, y)
    assert counted == [4]

    def refuse(*given: Any) -> Any:
        raise NotApplicable("each alone")

    monkeypatch.setattr(population, "fit_members", refuse)
    alone = kind(base, 4, random_state=0).fit(X, y)
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", ["two classes", "values"])
def test_early_stopping_goes_by_each_ones_held_out_rows(name: str, whole: bool) -> None:
    X, y, base = case(name)
    base.set_params(
        early_stopping=True, max_iter=40, n_iter_no_change=2, tol=1e-3,
        batch_size=len(X) if whole else 40,
    )  # fmt: skip
    own = [{k: v for k, v in p.items() if k != "hidden_layer_sizes"} for p in PARAMS]
    models = fit_together(base, X, y, folds(len(X)), own)
    assert len({m.n_iter_ for m in models}) > 1
    for model, weight, params in zip(models, folds(len(X)), own, strict=True):
        alone = base.__class__(**{**base.get_params(), **params}).fit(X, y, sample_weight=weight)
        assert (model.n_iter_, model.t_) == (alone.n_iter_, alone.t_)
        assert model.history_.stop == alone.history_.stop
        np.testing.assert_allclose(model.validation_scores_, alone.validation_scores_, atol=1e-9)
        assert model.best_validation_score_ == pytest.approx(alone.best_validation_score_)
        for a, b in zip(model.coefs_, alone.coefs_, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


def test_values_have_their_widths() -> None:
    X, y, base = case("values")
    models = fit_together(base, X, y, folds(len(X)), PARAMS)
    for model, weight, params in zip(models, folds(len(X)), PARAMS, strict=True):
        alone = base.__class__(**{**base.get_params(), **params}).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.scale_, alone.scale_, rtol=1e-9)
        np.testing.assert_allclose(
            model.predict_interval(X[:3]), alone.predict_interval(X[:3]), rtol=1e-9
        )


def test_settings_of_the_trainer_are_each_members_own() -> None:
    from groundstate.learn.train.schedules import Cosine

    X, y, _ = case("classes")
    base = NeuralClassifier(
        nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 3)),
        max_iter=5, batch_size=40, schedule=Cosine(),
    )  # fmt: skip
    params = [{"clip_norm": c, "random_state": 0, "learning_rate_init": 0.05} for c in (0.05, 5.0)]
    models = fit_together(base, X, y, None, params)
    for model, own in zip(models, params, strict=True):
        alone = NeuralClassifier(**{**base.get_params(deep=False), **own}).fit(X, y)
        for a, b in zip(model.module_.parameters(), alone.module_.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    first, second = (torch.cat([p.reshape(-1) for p in m.module_.parameters()]) for m in models)
    assert not torch.allclose(first, second)


class Noisy(nn.Module):
    """Noise that no key knows of."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.map(x + torch.randn_like(x)) if self.training else self.map(x)


@pytest.mark.parametrize(
    ("module", "settings"),
    [
        (Noisy(), {}),
        (nn.Linear(4, 3), {"shuffle": False}),
    ],
)
def test_what_would_differ_from_a_single_fit_is_refused(
    module: nn.Module, settings: dict[str, Any]
) -> None:
    X, y, _ = case("classes")
    base = NeuralClassifier(module, **{"max_iter": 2, "batch_size": 50, **settings})
    with pytest.raises(NotApplicable, match="trained alone"):
        fit_together(base, X, y, None, [{"random_state": s} for s in (0, 1)])


def test_members_in_half_precision_are_single_fits() -> None:
    X, y, _ = case("classes")
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    base = NeuralClassifier(module, max_iter=2, batch_size=50, precision="bf16")
    settings = [{"random_state": s} for s in (0, 1)]
    for own, member in zip(settings, fit_many(base, X, y, None, settings), strict=True):
        alone = clone(base).set_params(**own).fit(X, y)
        np.testing.assert_allclose(member.predict_proba(X), alone.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3)),
    ],
    ids=["norms", "masks"],
)
def test_norms_and_masks_of_full_batches_see_the_rows_of_a_single_fit(
    module: nn.Module, folded: bool
) -> None:
    X, y, _ = case("classes")
    base = NeuralClassifier(module, max_iter=4, batch_size=len(X), n_iter_no_change=np.inf)
    weights = np.ones((2, len(X)))
    if folded:
        weights[0, ::2] = weights[1, 1::2] = 0
        weights[0, 1] = weights[1, 0] = 2
    seeds = [{"random_state": s} for s in (0, 1)]
    models = fit_together(base, X, y, weights if folded else None, seeds)
    for model, own, weight in zip(models, seeds, weights, strict=True):
        alone = clone(base).set_params(**own).fit(X, y, sample_weight=weight if folded else None)
        state = alone.module_.state_dict()
        for name, value in model.module_.state_dict().items():
            torch.testing.assert_close(value, state[name], rtol=1e-6, atol=1e-8, msg=name)


def test_a_member_that_diverges_is_left_to_its_own_fit() -> None:
    X, y, base = case("values")
    base.set_params(solver="sgd", n_iter_no_change=np.inf)
    settings = [{"learning_rate_init": rate, "random_state": 0} for rate in (1e-3, 1e9)]
    with pytest.raises(NotApplicable, match="diverged"):
        fit_together(base, X, y, None, settings)
