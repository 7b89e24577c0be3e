"""Multilayer perceptrons and estimators around modules: parity, weights, distributions, going on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.sparse import csr_matrix
from sklearn import neural_network as peer
from sklearn.datasets import load_iris, make_multilabel_classification
from torch import nn

import groundstate
from groundstate import MLPClassifier, MLPRegressor, NeuralClassifier, NeuralRegressor
from groundstate.energy.networks.location import LocationHead
from groundstate.errors import DataError, NotConverged, ShapeError
from groundstate.learn import Callback, Checkpoint, Margin, Run

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
INF = float("inf")


def matrices(model: Any) -> list[NDArray[Any]]:
    return [*model.coefs_, *model.intercepts_]


def furthest(ours: Any, theirs: Any) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(matrices(ours), matrices(theirs)))


def give(ours: Any, theirs: Any) -> None:
    """The weights of scikit-learn's model to ours."""
    ours.coefs_, ours.intercepts_ = theirs.coefs_, theirs.intercepts_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def trained(ours: Any, theirs: Any, x: Any, y: Any, weight: Any = None, steps: int = 50) -> Any:
    """Both from the same start, so many full-batch steps."""
    for model in (ours, theirs):
        model.set_params(max_iter=1, warm_start=True, n_iter_no_change=10_000).fit(x, y)
    give(ours, theirs)
    for model in (ours, theirs):
        model.set_params(max_iter=steps).fit(x, y, sample_weight=weight)
    return furthest(ours, theirs)


def settings(**more: Any) -> dict[str, Any]:
    return {
        "hidden_layer_sizes": (7, 5), "batch_size": 1000, "alpha": 0.1, "random_state": 0,
        "solver": "sgd", "learning_rate_init": 0.05, **more,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("target", ["classes", "two", "labels", "weights"])
def test_momentum_takes_the_steps_of_scikit_learn(activation: str, target: str) -> None:
    y = {"two": (Y > 0).astype(int), "labels": (X[:, :3] > 0).astype(int)}.get(target, Y)
    weight = np.random.default_rng(0).integers(1, 4, 150).astype(float)
    kw = settings(activation=activation)
    far = trained(
        MLPClassifier(**kw), peer.MLPClassifier(**kw), X, y, weight if target == "weights" else None
    )
    assert far < 1e-12


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rates", ["constant", "invscaling", "adaptive"])
@pytest.mark.parametrize("nesterov", [True, False])
def test_rates_and_momentum_of_values(rates: str, nesterov: bool) -> None:
    kw = settings(learning_rate=rates, nesterovs_momentum=nesterov)
    ours, theirs = MLPRegressor(**kw), peer.MLPRegressor(**kw)
    assert trained(ours, theirs, X[:, :2], X[:, 2:]) < 1e-12  # two targets
    np.testing.assert_allclose(ours.loss_curve_[-50:], theirs.loss_curve_[-50:], rtol=1e-12)
    one = MLPRegressor(**kw), peer.MLPRegressor(**kw)
    assert trained(*one, X[:, :3], X[:, 3]) < 1e-12
    np.testing.assert_allclose(one[0].loss_curve_[-50:], one[1].loss_curve_[-50:], rtol=1e-12)
    np.testing.assert_allclose(one[0].predict(X[:, :3]), one[1].predict(X[:, :3]), rtol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_adam_and_counts_take_the_steps_of_scikit_learn() -> None:
    kw = settings(solver="adam", learning_rate_init=0.001)
    assert trained(MLPClassifier(**kw), peer.MLPClassifier(**kw), X, Y) < 1e-4
    counts = settings(loss="poisson")
    ours, theirs = MLPRegressor(**counts), peer.MLPRegressor(**counts)
    assert trained(ours, theirs, X, Y.astype(float)) < 1e-12
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10)
    np.testing.assert_allclose(ours.loss_curve_[-50:], theirs.loss_curve_[-50:], rtol=1e-12)
    two, weight = np.column_stack([Y, 2 - Y]).astype(float), np.linspace(1, 2, len(Y))
    ours, theirs = MLPRegressor(**counts), peer.MLPRegressor(**counts)
    assert trained(ours, theirs, X, two, weight) < 1e-12
    np.testing.assert_allclose(ours.loss_curve_[-50:], theirs.loss_curve_[-50:], rtol=1e-12)
    assert ours.out_activation_ == theirs.out_activation_ == "exp"


@pytest.mark.filterwarnings("ignore")
def test_same_stop_and_attributes_as_scikit_learn() -> None:
    kw = settings(max_iter=300, tol=1e-3, n_iter_no_change=3)
    ours, theirs = MLPClassifier(**kw), peer.MLPClassifier(**kw)
    for model in (ours, theirs):
        model.set_params(warm_start=True, max_iter=1).fit(X, Y)
    give(ours, theirs)
    for model in (ours, theirs):
        model.set_params(max_iter=300).fit(X, Y)
    for name in ("n_iter_", "t_", "n_layers_", "n_outputs_", "out_activation_"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-9)
    assert ours.validation_scores_ is None and len(ours.loss_curve_) == len(theirs.loss_curve_)


@pytest.mark.filterwarnings("ignore")
def test_two_targets_stop_where_scikit_learn_stops() -> None:
    """It watches the mean over targets, though its steps descend their sum."""
    kw = settings(max_iter=300, tol=1e-3, n_iter_no_change=3, warm_start=True)
    ours, theirs = MLPRegressor(**kw), peer.MLPRegressor(**kw)
    for model in (ours, theirs):
        model.set_params(max_iter=1).fit(X[:, :2], X[:, 2:])
    give(ours, theirs)
    for model in (ours, theirs):
        model.set_params(max_iter=300).fit(X[:, :2], X[:, 2:])
    assert ours.n_iter_ == theirs.n_iter_ < 300
    assert ours.best_loss_ == pytest.approx(theirs.best_loss_, rel=1e-9)


class Kill(Callback):
    """An interruption after so many steps."""

    def __init__(self, at: int) -> None:
        self.at = at

    def on_step(self, run: Run) -> None:
        if run.total_steps == self.at:
            raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
@pytest.mark.parametrize(
    "more",
    [
        {"early_stopping": True, "n_iter_no_change": 3, "max_iter": 40, "tol": 1e-2},
        {"solver": "sgd", "learning_rate": "adaptive", "n_iter_no_change": 1, "tol": 1e-2},
        {"solver": "sgd", "learning_rate": "invscaling"},
    ],
    ids=["held out", "adaptive", "invscaling"],
)
@pytest.mark.parametrize("at", [7, 24])
def test_an_interrupted_fit_goes_on_to_the_same_bits(
    more: dict[str, Any], at: int, tmp_path: Path
) -> None:
    """What decides when to stop is part of a checkpoint: best score, patience, rate."""
    kw = {"hidden_layer_sizes": (6,), "batch_size": 32, "max_iter": 12, "random_state": 0, **more}
    alone = MLPRegressor(**kw).fit(X[:, :2], X[:, 2:])
    files = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(KeyboardInterrupt):
        MLPRegressor(**kw, callbacks=[files, Kill(at)]).fit(X[:, :2], X[:, 2:])
    again = MLPRegressor(**kw, callbacks=[Checkpoint(tmp_path)]).fit(X[:, :2], X[:, 2:])
    assert furthest(again, alone) == 0.0
    assert again.loss_curve_ == alone.loss_curve_
    assert (again.n_iter_, again.t_) == (alone.n_iter_, alone.t_)
    assert again.validation_scores_ == alone.validation_scores_


@pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
def test_loss_of_small_batches_is_that_of_their_steps() -> None:
    """Mean over targets plus the penalty, each step at the weights before it."""
    kw = settings(batch_size=64, max_iter=1, alpha=3.0, learning_rate_init=0.01)
    seen: list[tuple[float, float]] = []

    class Watch(Callback):
        def on_step(self, run: Run) -> None:
            seen.append((float(run.loss), float(run.weight.sum()) if run.weight is not None
                         else len(run.batch["y"])))  # fmt: skip

    model = MLPRegressor(callbacks=[Watch()], **kw).fit(X[:, :2], X[:, 2:])
    start = MLPRegressor(**{**kw, "learning_rate_init": 1e-12}).fit(X[:, :2], X[:, 2:])
    assert [n for _, n in seen] == [64, 64, 22]
    whole = sum(loss * n for loss, n in seen) / 150
    pull = 0.5 * 3.0 / 64 * sum(float((W**2).sum()) for W in start.coefs_)
    # the weights have hardly moved in three steps: the penalty of the start is nearly that of each
    assert model.loss_curve_[0] == pytest.approx((whole - pull) / 2 + pull, rel=0.02)
    assert start.loss_curve_[0] == pytest.approx(
        0.5 * float(np.mean((start.predict(X[:, :2]) - X[:, 2:]) ** 2)) + pull, rel=1e-6
    )


def test_parameters_and_defaults_are_those_of_scikit_learn() -> None:
    for name in ("MLPClassifier", "MLPRegressor"):
        ours = getattr(groundstate, name)().get_params()
        theirs = getattr(peer, name)().get_params()
        assert {k: ours[k] for k in theirs} == theirs


@pytest.mark.parametrize("solver", ["adam", "sgd", "lbfgs"])
@pytest.mark.parametrize("size", [40, 1000])
def test_a_weight_of_two_is_the_row_twice_to_the_last_bit(solver: str, size: int) -> None:
    weight = np.random.default_rng(1).integers(0, 3, 150).astype(float)
    index = np.random.default_rng(2).permutation(np.repeat(np.arange(150), weight.astype(int)))
    kw = {"hidden_layer_sizes": (6,), "solver": solver, "batch_size": size, "max_iter": 20,
          "n_iter_no_change": INF, "random_state": 3, "tol": 0.05}  # fmt: skip
    for early in (False, True):
        twins = [
            MLPClassifier(early_stopping=early, **kw).fit(X, Y, weight),
            MLPClassifier(early_stopping=early, **kw).fit(X[index], Y[index]),
        ]
        assert furthest(*twins) == 0.0


def test_held_out_rows_are_never_learned_from() -> None:
    doubled = np.vstack([X, X])
    model = MLPClassifier(
        (10,), early_stopping=True, validation_fraction=0.2, max_iter=150, random_state=0,
        learning_rate_init=0.01, n_iter_no_change=40,
    ).fit(doubled, np.r_[Y, Y])  # fmt: skip
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert model.best_loss_ is None and model.score(X, Y) > 0.9
    assert len(model.validation_scores_) == model.n_iter_
    with pytest.raises(DataError, match="held-out part is too small.*validation_fraction"):
        MLPClassifier(early_stopping=True).fit(X[::30], Y[::30])


def test_lbfgs_fits_and_instalments_refuse_it() -> None:
    model = MLPClassifier((5,), solver="lbfgs", max_iter=500, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.97 and not hasattr(model, "partial_fit")
    far = MLPRegressor(solver="lbfgs", max_iter=3, random_state=0)
    with pytest.warns(NotConverged, match="max_iter"):
        far.fit(X[:, :3], X[:, 3])


def test_running_out_of_epochs_is_said_unless_asked_for() -> None:
    with pytest.warns(NotConverged, match="max_iter=3"):
        MLPClassifier((5,), max_iter=3, random_state=0).fit(X, Y)
    MLPClassifier((5,), max_iter=3, n_iter_no_change=INF, random_state=0).fit(X, Y)


@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_instalments_go_on_where_they_stopped(solver: str, tmp_path: Path) -> None:
    kw = {"solver": solver, "hidden_layer_sizes": (6,), "batch_size": 1000, "random_state": 0}
    once = MLPClassifier(max_iter=6, n_iter_no_change=INF, **kw).fit(X, Y)
    parts = MLPClassifier(**kw)
    for i in range(6):
        parts.partial_fit(X, Y, classes=[0, 1, 2] if i == 0 else None)
        if i == 2:  # the optimiser's state is stored too
            parts = groundstate.load(parts.save(tmp_path / "parts.gs"))
    assert furthest(once, parts) < 1e-14
    assert parts.t_ == once.t_ == 900 and len(parts.loss_curve_) == 6
    with pytest.raises(ValueError, match="same classes"):
        parts.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="early_stopping"):
        MLPClassifier(early_stopping=True).partial_fit(X, Y, classes=[0, 1, 2])


def test_warm_start_continues_and_refuses_other_data() -> None:
    kw = {"hidden_layer_sizes": (6,), "n_iter_no_change": INF, "random_state": 0, "max_iter": 4}
    warm = MLPClassifier(warm_start=True, **kw).fit(X, Y)
    first = [own.copy() for own in matrices(warm)]  # the attributes are θ itself
    warm.fit(X, Y)
    assert len(warm.loss_curve_) == 8 and warm.loss_curve_[4] < warm.loss_curve_[0]
    assert any((a != b).any() for a, b in zip(first, matrices(warm)))
    with pytest.raises(ValueError, match="same classes"):
        warm.fit(X[:100], Y[:100])
    values = MLPRegressor(warm_start=True, **kw).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="warm_start=False"):
        values.fit(X, X[:, :2])


def test_unshuffled_batches_are_the_same_in_every_epoch() -> None:
    kw = {"hidden_layer_sizes": (6,), "batch_size": 50, "max_iter": 3, "n_iter_no_change": INF}
    one, two = (MLPClassifier(shuffle=s, random_state=0, **kw).fit(X, Y) for s in (True, False))
    assert furthest(one, two) > 0
    order = np.random.default_rng(0).permutation(150)
    again = MLPClassifier(shuffle=False, random_state=0, **kw).fit(X[order], Y[order])
    assert furthest(two, again) == 0.0


def test_several_labels_per_row() -> None:
    x, y = make_multilabel_classification(200, 6, n_classes=3, random_state=0)
    x = (x - x.mean(0)) / x.std(0)
    model = MLPClassifier(
        (20,), activation="tanh", solver="lbfgs", alpha=0.1, max_iter=2000, random_state=0
    ).fit(x, y)
    p = model.predict_proba(x)
    assert p.shape == (200, 3) and ((p > 0.5) == model.predict(x)).all()
    assert model.score(x, y) > 0.9 and model.out_activation_ == "logistic"
    e = model.energy(x, y)
    np.testing.assert_allclose(e, -np.log(np.where(y == 1, p, 1 - p)).sum(1), rtol=1e-6)
    assert model.predict_dist(x).event_shape == (3,)
    with pytest.raises(ValueError, match="zeros and ones"):
        model.fit(x, y * 2 + np.arange(3))


def test_sparse_rows_are_the_dense_ones() -> None:
    kw = {"hidden_layer_sizes": (5,), "max_iter": 5, "n_iter_no_change": INF, "random_state": 0}
    x = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = MLPClassifier(**kw).fit(x, Y), MLPClassifier(**kw).fit(csr_matrix(x), Y)
    assert furthest(dense, sparse) == 0.0
    np.testing.assert_array_equal(dense.predict(x), sparse.predict(csr_matrix(x)))


def test_a_learning_rule_as_loss() -> None:
    model = MLPClassifier(
        (10,), loss=Margin(), max_iter=60, n_iter_no_change=INF, learning_rate_init=0.01,
        random_state=0,
    ).fit(X, Y)  # fmt: skip
    assert model.score(X, Y) > 0.95
    with pytest.raises(ValueError, match="loss='exotic' is not known"):
        MLPClassifier(loss="exotic").fit(X, Y)
    with pytest.raises(ValueError, match="loss='exotic' is not known"):
        MLPRegressor(loss="exotic").fit(X, Y)


@pytest.mark.parametrize("T", [1.0, 0.3])
@pytest.mark.parametrize("name", ["squared_error", "absolute_error", "huber", "quantile"])
def test_location_losses_know_their_constant(name: str, T: float) -> None:
    head = LocationHead(name, delta=0.7, q=0.3)

    def density(y: float) -> float:
        return math.exp(-float(head(torch.zeros(1, 1), torch.tensor([[y]]))) / T)

    total = quad(density, -60, 0, limit=500)[0] + quad(density, 0, 60, limit=500)[0]
    assert head.log_constant(T) == pytest.approx(math.log(total), rel=1e-4)


def test_quantiles_and_medians_are_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2000, 1))
    y = x[:, 0] + rng.exponential(size=2000)
    kw = {"hidden_layer_sizes": (), "max_iter": 60, "learning_rate_init": 0.03,
          "n_iter_no_change": INF, "random_state": 0}  # fmt: skip
    for loss, share in (("absolute_error", 0.5), (LocationHead("quantile", q=0.9), 0.9)):
        model = MLPRegressor(loss=loss, **kw).fit(x, y)
        assert abs((y < model.predict(x)).mean() - share) < 0.03


def test_band_covers_the_nominal_share_of_new_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2400, 1))
    y = np.sin(3 * x[:, 0]) + (0.1 + 0.4 * (x[:, 0] > 0)) * rng.normal(size=2400)
    train, test = slice(0, 1200), slice(1200, None)
    kw = {"hidden_layer_sizes": (30,), "activation": "tanh", "learning_rate_init": 0.01,
          "max_iter": 120, "n_iter_no_change": INF, "random_state": 0}  # fmt: skip
    for loss in ("squared_error", "normal"):
        model = MLPRegressor(loss=loss, **kw).fit(x[train], y[train])
        low, high = model.predict_interval(x[test], 0.9).T
        covered = (y[test] > low) & (y[test] < high)
        assert abs(covered.mean() - 0.9) < 0.035, loss
        width = high - low
        wide = width[x[test][:, 0] > 0.1].mean() / width[x[test][:, 0] < -0.1].mean()
        assert wide == pytest.approx(1.0) if loss == "squared_error" else wide > 3
        distribution = model.predict_dist(x[test])
        np.testing.assert_allclose(
            distribution.mean[:, 0].numpy(), model.predict(x[test]), rtol=1e-6
        )
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.predict_interval(x, 1.5)


@pytest.mark.parametrize(
    "loss", ["gamma", "lognormal", "poisson", "negative_binomial", "student_t", "laplace", "beta"]
)
def test_distributions_as_losses_find_the_mean(loss: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (1500, 1))
    mu = np.exp(1 + x[:, 0])
    y = {
        "gamma": lambda: rng.gamma(3.0, mu / 3),
        "lognormal": lambda: mu * np.exp(0.2 * rng.normal(size=1500) - 0.02),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "negative_binomial": lambda: rng.poisson(rng.gamma(5.0, mu / 5)).astype(float),
        "beta": lambda: rng.beta(mu, 8 - mu / 2),
    }.get(loss, lambda: mu + 0.3 * rng.normal(size=1500))()
    model = MLPRegressor(
        loss=loss, hidden_layer_sizes=(16,), activation="tanh", learning_rate_init=0.01,
        max_iter=60, n_iter_no_change=INF, random_state=0,
    ).fit(x, y)  # fmt: skip
    truth = mu / (mu + 8 - mu / 2) if loss == "beta" else mu
    assert np.corrcoef(model.predict(x), truth)[0, 1] > 0.98
    inside = model.predict_interval(x, 0.8)
    assert abs(((y >= inside[:, 0]) & (y <= inside[:, 1])).mean() - 0.8) < 0.12
    np.testing.assert_allclose(
        model.energy(x, y), -model.predict_dist(x).log_prob(torch.from_numpy(y[:, None])), rtol=1e-6
    )


def test_outcomes_outside_the_support_are_named() -> None:
    with pytest.raises(DataError, match=r"y\[0, 0\] is .*'gamma' needs a number above 0"):
        MLPRegressor(loss="gamma").fit(X, -np.abs(X[:, 0]))


class Small(nn.Module):
    def __init__(self, n_features: int, n_outputs: int, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_features, width), nn.Tanh())
        self.top = nn.Linear(width, n_outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.top(self.body(x))


QUICK = {"learning_rate_init": 0.02, "max_iter": 60, "n_iter_no_change": INF, "random_state": 0}


def test_modules_come_as_class_instance_or_function() -> None:
    made = NeuralClassifier(Small, {"width": 12}, **QUICK).fit(X, Y)
    assert made.module_.body[0].out_features == 12 and made.score(X, Y) > 0.95
    instance = Small(4, 3)
    before = [p.clone() for p in instance.parameters()]
    given = NeuralClassifier(instance, **QUICK).fit(X, Y)
    assert given.score(X, Y) > 0.95
    assert all(torch.equal(a, b) for a, b in zip(before, instance.parameters()))  # a copy learns
    function = NeuralRegressor(lambda d, k: nn.Linear(d, k), **QUICK).fit(X, X @ np.ones(4))
    assert function.score(X, X @ np.ones(4)) > 0.9
    single = NeuralClassifier(nn.Linear, **QUICK).fit(X, Y > 0)
    assert single.module_.out_features == 1 and single.score(X, Y > 0) > 0.99
    two = NeuralClassifier(nn.Linear(4, 2), **QUICK).fit(X, Y > 0)
    assert two.score(X, Y > 0) > 0.99


def test_wrong_sizes_of_a_module_are_one_sentence() -> None:
    with pytest.raises(ShapeError, match=r"Linear gives \(1, 5\) for one row, but 3 classes need"):
        NeuralClassifier(nn.Linear(4, 5)).fit(X, Y)
    with pytest.raises(ShapeError, match=r"does not take rows of shape \(4,\).*first layer"):
        NeuralClassifier(nn.Linear(7, 3)).fit(X, Y)
    with pytest.raises(ShapeError, match=r"\(normal\) needs \(B, 2\); change"):
        NeuralRegressor(nn.Linear(4, 1), loss="normal").fit(X, X[:, 0])
    with pytest.raises(TypeError, match="must be or give a torch.nn.Module"):
        NeuralClassifier(lambda d, k: None).fit(X, Y)
    with pytest.raises(ValueError, match="input_shape=\\(3, 3\\) holds 9 numbers"):
        NeuralClassifier(nn.Linear(9, 3), input_shape=(3, 3)).fit(X, Y)


def test_batch_norm_and_dropout_answer_in_evaluation_mode(tmp_path: Path) -> None:
    net = nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 8, 2), nn.Flatten(), nn.BatchNorm1d(8), nn.ReLU(),
        nn.Dropout(0.2), nn.Linear(8, 3),
    )  # fmt: skip
    model = NeuralClassifier(net, batch_size=50, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X[:1]), model.predict_proba(X)[:1], rtol=1e-6)
    assert model.score(X, Y) > 0.9
    again = NeuralClassifier(net, batch_size=50, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))  # same seed
    loaded = groundstate.load(model.save(tmp_path / "net.gs"))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_rows_take_the_shape_a_module_wants() -> None:
    net = nn.Sequential(nn.Conv1d(1, 4, 2), nn.Flatten(), nn.Linear(12, 3))
    model = NeuralClassifier(net, input_shape=(1, 4), **QUICK).fit(X, Y)
    assert model.score(X, Y) > 0.9 and isinstance(model.module_[0], nn.Conv1d)


def test_infer_and_explain() -> None:
    model = MLPRegressor(loss="poisson", max_iter=30, n_iter_no_change=INF, random_state=0)
    model.fit(X, Y.astype(float))
    draws = model.infer({"x": X[:4]}, "y", "sample", n=4000, random_state=0)
    np.testing.assert_allclose(draws.mean(0), model.predict(X[:4]), atol=0.1)
    told = groundstate.explain(MLPClassifier())
    assert told.energy.name == "NetworkClassEnergy" and told.rule.name == "SoftMin"
    assert told.solver.name == "NetworkTraining" and told.penalty is not None


def test_mistakes_are_named_in_one_sentence() -> None:
    """In the words of the estimator, with its own parameters as the way out."""
    cases: list[tuple[Any, Any, str]] = [
        (MLPClassifier(early_stopping=True, validation_fraction=0.0), Y, "holds out none.*0.1"),
        (MLPRegressor((5,)), X[:, 0], r"loss=\(5,\) is not known \(layers are hidden_layer_sizes"),
        (MLPRegressor("poisson"), X[:, 0], r"y\[0, 0\] is -0.9.*at least 0"),
        (
            MLPRegressor(solver="sgd", learning_rate_init=1e9, max_iter=20),
            1e4 * X[:, 0],
            "lower learning_rate_init=1000000000.0, or scale the inputs",
        ),
        (
            NeuralRegressor(nn.Linear(4, 1), solver="sgd", learning_rate_init=1e9),
            1e4 * X[:, 0],
            "lower learning_rate_init=1000000000.0, set clip_norm=1.0, or scale",
        ),
        (
            NeuralClassifier(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)), batch_size=149),
            Y,
            "no variance; pass another batch_size than 149",
        ),
    ]
    for model, y, said in cases:
        with pytest.raises((ValueError, DataError, FloatingPointError), match=said):
            model.set_params(random_state=0).fit(X, y)
    begun = MLPClassifier((3,)).partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="name all classes that will ever come in the first call"):
        begun.partial_fit(X, Y + 1)


def test_probabilities_where_scores_belong_are_noticed() -> None:
    for end in (nn.Softmax(1), nn.Sequential(nn.Softmax(1))):
        model = NeuralClassifier(nn.Sequential(nn.Linear(4, 3), end), solver="lbfgs", max_iter=50)
        with pytest.warns(
            UserWarning, match="ends in Softmax, but its outputs are taken as scores"
        ):
            model.fit(X, Y)
