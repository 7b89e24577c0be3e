"""What every estimator promises; a registered model is tested by being there."""

from __future__ import annotations

import copy
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris, make_regression
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import groundstate
from groundstate.energy import marginal_way
from groundstate.errors import Unsupported
from groundstate.registry import models

pytestmark = [
    pytest.mark.filterwarnings("ignore:the importance weights"),  # of models trained for a moment
    pytest.mark.filterwarnings("ignore:Heywood case"),  # factors of the rows of irises
    # two species of iris have no neighbour among the third
    pytest.mark.filterwarnings("ignore:the graph of near rows has"),
]


class ByContent:
    """Five folds by what is in a row, so that equal rows stay together in any order."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        fold = np.array([zlib.crc32(np.asarray(row, np.float64).tobytes()) % 5 for row in X])
        for f in range(5):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 5


GAME = {"n_components": 4, "hidden_layer_sizes": (8,), "max_iter": 3, "random_state": 0}
# constructor arguments that keep a fit short; every registered model has a row
QUICK: dict[str, dict[str, Any]] = {
    "WGAN": {**GAME},
    "GAN": {**GAME},
    "EnergyGAN": {**GAME},
    "ConditionalGAN": {**GAME},
    "Autoencoder": {
        "n_components": 1,
        "hidden_layer_sizes": (6,),
        "max_iter": 8,
        "random_state": 0,
    },
    "ContractiveAutoencoder": {"n_components": 3, "max_iter": 8, "random_state": 0},
    "DenoisingAutoencoder": {
        "n_components": 3,
        "hidden_layer_sizes": (6,),
        "max_iter": 8,
        "random_state": 0,
    },
    "EllipticEnvelope": {"random_state": 0},
    "EnergyModel": {"method": "nce", "hidden_layer_sizes": (8,), "max_iter": 3, "random_state": 0},
    "EnergyOutlier": {},
    "IsolationForest": {"n_estimators": 8, "random_state": 0},
    "ITML": {"random_state": 0},
    "LMNN": {"max_iter": 20},
    "MMC": {"random_state": 0},
    "LocalMetric": {},
    "LocalOutlierFactor": {"n_neighbors": 4, "novelty": True},
    "LocallyAdaptiveNormal": {"n_points": 9, "n_nodes": 36, "max_iter": 2, "random_state": 0},
    "MahalanobisTransformer": {},
    "NeighborhoodComponentsAnalysis": {"max_iter": 20},
    "PixelCNN": {"n_levels": 8, "features": 4, "n_layers": 1, "max_iter": 2, "random_state": 0},
    "MetricEmbedding": {"hidden_layer_sizes": (8,), "max_iter": 3, "random_state": 0},
    "SimCLR": {"n_components": 4, "hidden_layer_sizes": (8,), "max_iter": 3, "random_state": 0},
    "RCA": {},
    "AdaBoostClassifier": {"n_estimators": 8},
    "AgglomerativeClustering": {"n_clusters": 3},
    "AutoregressiveDensity": {"hidden_layer_sizes": (16,), "max_iter": 5, "random_state": 0},
    "BaggingClassifier": {"n_estimators": 4, "random_state": 0},
    "BaggingRegressor": {"n_estimators": 4, "random_state": 0},
    "BayesianGaussianMixture": {"n_components": 3, "random_state": 0},
    "BayesianRidge": {},
    "BernoulliNB": {},
    "BernoulliRBM": {"n_components": 4, "n_iter": 3, "visible": "gaussian", "random_state": 0},
    "C45Classifier": {},
    "CategoricalNB": {},
    "DBSCAN": {},
    "DDPM": {
        "n_steps": 3,
        "schedule": "cosine",
        "hidden_layer_sizes": (8,),
        "max_iter": 3,
        "random_state": 0,
    },
    "DiscreteBayesianNetwork": {"n_bins": 4},
    "LinearGaussianBayesianNetwork": {},
    "MarkovRandomField": {"n_bins": 3},
    "SumProductNetwork": {"max_iter": 10, "random_state": 0},
    "TableMixture": {"n_components": 3, "random_state": 0},
    "HDBSCAN": {},
    "ClassicalMDS": {},
    "ComplementNB": {},
    "ConditionalVAE": {"hidden_layer_sizes": (8,), "max_iter": 10, "random_state": 0},
    "DecisionTreeClassifier": {},
    "DecisionTreeRegressor": {},
    "ElasticNet": {"alpha": 0.1},
    "ElasticNetCV": {},
    "ExtraTreesClassifier": {"n_estimators": 8, "random_state": 0},
    "ExtraTreesRegressor": {"n_estimators": 8, "random_state": 0},
    "FactorAnalysis": {"n_components": 1},
    "FastICA": {"n_components": 2, "max_iter": 1000, "tol": 1e-8, "random_state": 0},
    "FunctionRegressor": {"hidden": (32,), "learning_rate_init": 0.003, "max_iter": 2000}
    | {"n_iter_no_change": np.inf, "random_state": 0},
    "CNF": {"hidden_layer_sizes": (8,), "method": "rk4", "n_steps": 4, "max_iter": 3}
    | {"random_state": 0},
    "FlowMatching": {"hidden_layer_sizes": (8,), "n_steps": 5, "rtol": 1e-3, "atol": 1e-3}
    | {"max_iter": 5, "random_state": 0},
    "HierarchicalVAE": {
        "n_components": (2, 1),
        "hidden_layer_sizes": (8,),
        "max_iter": 10,
        "random_state": 0,
    },
    "MADE": {"hidden_layer_sizes": (8,), "max_iter": 5, "random_state": 0},
    "NormalizingFlow": {"n_transforms": 2, "hidden_layer_sizes": (8,), "max_iter": 4}
    | {"random_state": 0},
    "GLM": {},
    "GammaRegressor": {},
    "GaussianMixture": {"n_components": 3, "random_state": 0},
    "GaussianNB": {},
    "GaussianProcessClassifier": {},
    "GaussianProcessRegressor": {},
    "GaussianRegressor": {},
    "GradientBoostingClassifier": {"n_estimators": 8},
    "GradientBoostingRegressor": {"n_estimators": 8},
    "HistGradientBoostingClassifier": {"max_iter": 8},
    "HistGradientBoostingRegressor": {"max_iter": 8},
    "HuberRegressor": {},
    "ID3Classifier": {},
    "IncrementalPCA": {"n_components": 2},
    "Isomap": {"n_neighbors": 4},
    "KMeans": {"n_clusters": 3, "random_state": 0},
    "KNeighborsClassifier": {"n_neighbors": 3},
    "KNeighborsRegressor": {},
    "KernelClassifier": {},
    "KernelDensity": {},
    "KernelPCA": {"n_components": 2, "kernel": "rbf"},
    "KernelRegressor": {},
    "KernelRidge": {},
    "LandmarkMDS": {"n_landmarks": 30},
    "Lasso": {"alpha": 0.1},
    "LassoCV": {},
    "LinearDiscriminantAnalysis": {},
    "LinearRegression": {},
    "LinearSVC": {},
    "LinearSVR": {},
    "LocallyLinearEmbedding": {"n_neighbors": 4},
    "LogisticRegression": {},
    "LogisticRegressionCV": {"Cs": 4},
    "MDS": {"random_state": 0},
    "MLPClassifier": {"max_iter": 60, "n_iter_no_change": np.inf, "random_state": 0},
    "MLPRegressor": {"learning_rate_init": 0.01, "max_iter": 600, "n_iter_no_change": np.inf}
    | {"random_state": 0},
    "MiniBatchKMeans": {"n_clusters": 3, "random_state": 0},
    "MixtureDensityRegressor": {"max_iter": 60, "random_state": 0},
    "MixtureModel": {"n_components": 3, "random_state": 0},
    "MultinomialNB": {},
    "NMF": {"n_components": 2, "max_iter": 2000},
    "NearestCentroid": {},
    "NearestNeighbors": {},
    "NeuralClassifier": {"max_iter": 60, "n_iter_no_change": np.inf, "random_state": 0},
    "NeuralRegressor": {"learning_rate_init": 0.01, "max_iter": 600, "n_iter_no_change": np.inf}
    | {"random_state": 0},
    "PCA": {"n_components": 2},
    "Perceptron": {},
    "PoissonRegressor": {},
    "ProbabilisticPCA": {"n_components": 2},
    "PseudoLabelClassifier": {"T1": 10, "T2": 40, "max_iter": 60, "random_state": 0},
    "QuadraticDiscriminantAnalysis": {"reg_param": 0.1},
    "RadiusNeighborsClassifier": {"outlier_label": "most_frequent"},
    "RadiusNeighborsRegressor": {},
    "QuantileRegressor": {"alpha": 0.1},
    "RandomForestClassifier": {"n_estimators": 8, "random_state": 0},
    "RandomForestRegressor": {"n_estimators": 8, "random_state": 0},
    "Ridge": {},
    "RidgeCV": {},
    "SGDClassifier": {"max_iter": 50, "tol": None, "random_state": 0},
    "SGDRegressor": {"max_iter": 300, "tol": None, "random_state": 0},
    "SVC": {},
    "SVR": {},
    "ScoreModel": {"hidden_layer_sizes": (8,), "max_iter": 3, "n_steps": 5, "random_state": 0},
    "ScoreSDE": {
        "hidden_layer_sizes": (8,),
        "max_iter": 3,
        "n_steps": 10,
        "ode_steps": 20,
        "random_state": 0,
    },
    "SeedEnsembleClassifier": {"n_estimators": 4, "random_state": 0},
    "SeedEnsembleRegressor": {"n_estimators": 4, "random_state": 0},
    "SmoothingSplineRegressor": {},
    "SnapshotEnsembleClassifier": {"random_state": 0},
    "SnapshotEnsembleRegressor": {"random_state": 0},
    "SoftKMeans": {"n_clusters": 3, "random_state": 0},
    "SparseAutoencoder": {"n_components": 4, "max_iter": 8, "random_state": 0},
    "SpectralEmbedding": {"n_neighbors": 4},
    "StackingClassifier": {},
    "StackingRegressor": {},
    "TabularMLPClassifier": {"hidden_layer_sizes": (16,), "n_members": 2, "max_iter": 25}
    | {"random_state": 0},
    "TabularMLPRegressor": {"hidden_layer_sizes": (16,), "n_members": 2, "max_iter": 60}
    | {"random_state": 0},
    "TextCNNClassifier": {"max_iter": 25, "random_state": 0},
    "TextCNNRegressor": {"max_iter": 60, "random_state": 0},
    "TruncatedSVD": {"random_state": 0},
    "TSNE": {"perplexity": 2, "max_iter": 250, "random_state": 0},
    "TweedieRegressor": {},
    "UMAP": {"n_neighbors": 3, "n_epochs": 20, "random_state": 0},
    "VAE": {"hidden_layer_sizes": (8,), "max_iter": 10, "random_state": 0},
    "VQAutoencoder": {
        "n_components": 4,
        "n_codes": 16,
        "hidden_layer_sizes": (8,),
        "max_iter": 10,
        "random_state": 0,
    },
    "VotingClassifier": {},
    "VotingRegressor": {},
    "Whitener": {},
}
NAMES = sorted(QUICK)
CLASSIFIERS = [
    "AdaBoostClassifier",
    "BaggingClassifier",
    "BernoulliNB",
    "C45Classifier",
    "CategoricalNB",
    "ComplementNB",
    "DecisionTreeClassifier",
    "ExtraTreesClassifier",
    "GaussianNB",
    "GaussianProcessClassifier",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "ID3Classifier",
    "KNeighborsClassifier",
    "KernelClassifier",
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MLPClassifier",
    "MultinomialNB",
    "NearestCentroid",
    "NeuralClassifier",
    "Perceptron",
    "PseudoLabelClassifier",
    "QuadraticDiscriminantAnalysis",
    "RadiusNeighborsClassifier",
    "RandomForestClassifier",
    "SGDClassifier",
    "SVC",
    "SeedEnsembleClassifier",
    "SnapshotEnsembleClassifier",
    "StackingClassifier",
    "TabularMLPClassifier",
    "TextCNNClassifier",
    "VotingClassifier",
]


def make(name: str) -> Any:
    return getattr(groundstate, name)(**QUICK[name])


def table(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    row = models[name]
    if row.role == "regressor":
        X, y = make_regression(80, 4, noise=1.0, random_state=0)
        positive = get_tags(make(name)).target_tags.positive_only
        return X, np.exp(y / 100) if positive else y
    X, y = load_iris(return_X_y=True)
    if name == "BernoulliRBM":
        X = (X.mean(0) < X).astype(float)
    labelled = row.role == "classifier" or get_tags(make(name)).target_tags.required
    return X, y if labelled else None


def answer(model: Any, X: Any) -> Any:
    """The main answer of a model, whatever its role."""
    for name in ("predict", "transform"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    return model.energy(X)


def test_every_registered_model_has_a_row() -> None:
    # of other rows: test_rows.py
    tables = [r for r in models if r.rows == "table"]
    assert [row.name for row in tables] == NAMES
    assert [row.name for row in tables if row.role == "classifier"] == CLASSIFIERS


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n == "LocallyAdaptiveNormal" else n for n in NAMES],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
@pytest.mark.filterwarnings("ignore:(One or more samples have no|No) neighbors")  # of weight zero
@pytest.mark.filterwarnings("ignore:n_neighbors \\(20\\) is greater")  # tables of a few rows
@pytest.mark.filterwarnings("ignore:a code of 2 numbers holds rows of 2")  # tables of two columns
def test_scikit_learn_contract(name: str) -> None:
    # of a few rows a map has few neighbours (scikit-learn's list of settings for checks has these too),
    # rows of weight zero may have none within a radius, and curves of as many points as by default take
    # minutes; a machine of bits refuses the numbers of those checks, one of reals takes them
    others = ("RadiusNeighborsClassifier", "LocallyAdaptiveNormal", "BernoulliRBM")
    plain = models[name].role not in ("embedding", "generator") and name not in others
    model = getattr(groundstate, name)() if plain else make(name)
    results = check_estimator(model, on_skip=None, on_fail=None)
    failed = [
        f"{r['check_name']}: {r['exception']!r}"
        for r in results
        if r["status"] not in ("passed", "skipped")
    ]
    assert not failed, "\n".join(failed)
    assert sum(r["status"] == "passed" for r in results) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_row_twice_is_weight_two(name: str) -> None:
    X, y = table(name)
    weight = np.ones(len(X))
    weight[::3], weight[1::7] = 2.0, 0.0
    index = np.repeat(np.arange(len(X)), weight.astype(int))
    index = np.random.default_rng(0).permutation(index)
    model = make(name)
    if "cv" in model.get_params():  # numbers of folds are scikit-learn's, by position
        model.set_params(cv=ByContent())
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X[index], None if y is None else y[index])
    for attribute in ("coef_", "cluster_centers_", "means_", "components_"):
        if hasattr(weighted, attribute):
            one, two = getattr(weighted, attribute), getattr(repeated, attribute)
            if hasattr(weighted, "core_sample_indices_"):  # rows of X themselves, in its order
                one, two = np.unique(one, axis=0), np.unique(two, axis=0)
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_tensors_and_frames_agree(name: str) -> None:
    X, y = table(name)
    expected = answer(make(name).fit(X, y), X)
    assert isinstance(expected, np.ndarray)
    tensor = torch.from_numpy(X)
    given = answer(make(name).fit(tensor, None if y is None else torch.from_numpy(y)), tensor)
    assert isinstance(given, torch.Tensor) and given.device == tensor.device
    np.testing.assert_allclose(given.numpy(), expected, rtol=1e-6)
    columns = [f"c{i}" for i in range(X.shape[1])]
    for frame in (pd.DataFrame(X, columns=columns), pl.DataFrame(X, schema=columns)):
        model = make(name).fit(frame, y)
        assert model.feature_names_in_.tolist() == columns
        np.testing.assert_allclose(np.asarray(answer(model, frame)), expected, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_energy_is_one_number_per_row(name: str) -> None:
    X, y = table(name)
    model = make(name).fit(X, y)
    e = model.energy(X[:7])
    assert e.shape == (7,) and np.isfinite(e).all()
    if y is not None:
        joint = model.energy(X[:7], y[:7])
        other = models[name].role in ("regressor", "generator")  # of a density, not of a label
        assert joint.shape == (7,) and ((joint >= e - 1e-9).all() or other)


@pytest.mark.parametrize("name", [n for n in NAMES if models[n].role != "generator"])
def test_infer_minimises_to_the_prediction(name: str) -> None:
    X, y = table(name)
    model = make(name).fit(X, y)
    free = "y" if y is not None else "z"
    best = model.infer({"x": X[:5]}, free)
    assert len(best) == 5
    if hasattr(model, "predict") and models[name].role != "outlier detector":
        if (
            getattr(model, "_predicts", "mode") == "mean"
        ):  # of a skewed distribution: not its best value
            draws = model.infer({"x": X[:5]}, free, "sample", n=20_000, random_state=0)
            error = 5 * draws.std() / 20_000**0.5
            np.testing.assert_allclose(draws.mean(0), model.predict(X[:5]), rtol=0.1, atol=error)
        else:
            told = np.asarray(model.predict(X[:5]), float)
            np.testing.assert_allclose(np.asarray(best, float), told)
    if models[name].role == "embedding":  # a place has no normalised distribution
        np.testing.assert_array_equal(best, model.transform(X[:5]))
        return
    if marginal_way(model.energy_, (free,)) is None:  # a sum over codes that has no closed form
        with pytest.raises(Unsupported, match="marginalise"):
            model.infer({"x": X[:5]}, free, "marginal")
        return
    marginal = model.infer({"x": X[:5]}, free, "marginal")
    np.testing.assert_allclose(marginal, model.energy(X[:5]), rtol=1e-6)
    draws = model.infer({"x": X[:5]}, free, "sample", n=3, random_state=0)
    assert draws.shape[:2] == (3, 5)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_is_the_same(name: str, tmp_path: Path) -> None:
    X, y = table(name)
    model = make(name).fit(X, y)
    path = model.save(tmp_path / "model.gs")
    loaded = groundstate.load(path)
    assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(answer(loaded, X), answer(model, X))
    np.testing.assert_array_equal(loaded.energy(X), model.energy(X))
    again = loaded.save(tmp_path / "again.gs")
    assert path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles(name: str) -> None:
    X, y = table(name)
    model = make(name).fit(X, y)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(answer(twin, X), answer(model, X))
    assert not hasattr(clone(model), "energy_")


@pytest.mark.usefixtures("own_streams")
@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits(name: str) -> None:
    X, y = table(name)
    first, second = (make(name).fit(X, y) for _ in range(2))
    for a, b in zip(first.energy_.parameters(), second.energy_.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learn_callbacks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = table(name)
    model = make(name)
    callbacks: list[Any] = [ProgressBar()]
    monitor = None
    if models[name].role in ("classifier", "regressor"):
        scoring = "accuracy" if models[name].role == "classifier" else "r2"
        monitor = ScoringMonitor(scoring=scoring)
        callbacks.append(monitor)
    model.set_callbacks(*callbacks).fit(X, y)
    if monitor is not None and model.history_.solver != "LeastSquares":
        logs = monitor.get_logs()
        log = logs[0] if isinstance(logs, list) else logs
        assert log.data


@pytest.mark.parametrize("name", NAMES)
def test_unknown_device_is_refused_in_one_sentence(name: str) -> None:
    if "device" not in make(name).get_params():
        return
    X, y = table(name)
    with pytest.raises((ValueError, TypeError), match="device"):
        make(name).set_params(device="warp-drive").fit(X, y)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_numbers_are_named(name: str, bad: float) -> None:
    X, y = table(name)
    X = X.copy()
    X[3, 1] = bad
    model = make(name)
    if (
        get_tags(model).input_tags.allow_nan
        if np.isnan(bad)
        else getattr(model, "_allow_infinity", False)
    ):
        assert np.isfinite(np.asarray(answer(make(name).fit(X, y), X), float)).all()
        return
    with pytest.raises(ValueError, match="NaN|infinity"):
        make(name).fit(X, y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_refused_or_predicted(name: str) -> None:
    model = make(name)
    if model._single_class:
        assert (model.fit(np.eye(4), ["a"] * 4).predict(np.eye(4)) == "a").all()
        return
    with pytest.raises(ValueError, match="at least 2 classes.*one class"):
        model.fit(np.eye(4), ["a"] * 4)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "BernoulliRBM"])
def test_constant_duplicate_columns_and_few_rows(name: str) -> None:
    X, y = table(name)
    wide = np.column_stack([X, X, np.ones(len(X))])
    assert np.isfinite(np.asarray(answer(make(name).fit(wide, y), wide), float)).all()
    rows = np.r_[0:2, 60:62, 74:76] if len(X) == 80 else np.r_[0:2, 60:62, 120:122]
    few = np.column_stack([wide] * 2)[rows]
    model = make(name).fit(few, None if y is None else y[rows])
    assert np.isfinite(np.asarray(answer(model, few), float)).all()
