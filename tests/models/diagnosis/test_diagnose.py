"""Each finding is made by one built example and not by its clean twin."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

from groundstate import (
    DBSCAN,
    HDBSCAN,
    TSNE,
    ClassicalMDS,
    EllipticEnvelope,
    FactorAnalysis,
    GaussianMixture,
    IsolationForest,
    Isomap,
    KMeans,
    LocalOutlierFactor,
    ProbabilisticPCA,
)
from groundstate.models.diagnosis import diagnose


def blobs(
    n: int = 100, centres: tuple[float, ...] = (-10.0, 0.0, 10.0), seed: int = 0
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, 1.0, (n, 2)) for c in centres])


def test_a_clean_fit_has_no_findings() -> None:
    X = blobs()
    for model in (KMeans(3, n_init=5, random_state=0), GaussianMixture(3, random_state=0)):
        found = diagnose(model.fit(X), X)
        assert not found and str(found) == "nothing is wrong"


def test_scales() -> None:
    X = blobs() * [1.0, 1000.0]
    found = diagnose(KMeans(3, random_state=0).fit(X), X)["scales"]
    assert found.number > found.threshold == 100 and "scale them" in found.advice


def test_few_rows() -> None:
    X = np.random.default_rng(0).normal(size=(20, 10))
    assert "few rows" in diagnose(KMeans(2, random_state=0).fit(X), X).names


def test_tiny_cluster_and_component() -> None:
    X = np.concatenate([blobs(300, (0.0,)), [[60.0, 60.0], [60.1, 60.0]]])
    assert "tiny cluster" in diagnose(KMeans(2, random_state=0).fit(X), X).names
    assert "tiny component" in diagnose(GaussianMixture(2, random_state=0).fit(X), X).names


def test_noise_and_outliers_that_are_most_rows() -> None:
    X = blobs(60, (0.0, 10.0))
    for few, many in ((DBSCAN(1e-3), DBSCAN(2.0)), (HDBSCAN(60, min_samples=2), HDBSCAN(20))):
        found = diagnose(few.fit(X), X)
        assert ("mostly noise" in found.names) == bool((few.labels_ == -1).mean() > 0.5)
        assert "mostly noise" not in diagnose(many.fit(X), X).names
    assert "raise eps" in diagnose(DBSCAN(1e-3).fit(X), X)["mostly noise"].advice
    for make in (
        lambda c: IsolationForest(contamination=c, random_state=0),
        lambda c: LocalOutlierFactor(contamination=c),
        lambda c: EllipticEnvelope(contamination=c, random_state=0),
    ):
        found = diagnose(make(0.4).fit(X), X)["many outliers"]
        assert 0.3 < found.number < 0.45
        assert "many outliers" not in diagnose(make(0.05).fit(X), X).names


def test_restarts_that_end_elsewhere() -> None:
    X = blobs(50, (0.0, 10.0, 20.0))
    bad = np.array([[0.0, 0.0], [0.5, 0.5], [15.0, 15.0]])
    model = KMeans(3, init=bad, n_init=1, random_state=0).fit(X)
    model.init = "k-means++"  # what another start would be
    found = diagnose(model, X)["restarts"]
    assert found.number > 1 and "n_init" in found.advice


def test_collapse() -> None:
    X = np.concatenate([blobs(), np.full((30, 2), 3.0)])
    assert "collapse" in diagnose(GaussianMixture(4, random_state=0).fit(X), X).names


@pytest.mark.filterwarnings("ignore:Heywood case")
def test_heywood() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 1))
    X = z @ [[1.0, 2.0, -1.5, 0.5]] + rng.normal(size=(500, 4))
    clean = FactorAnalysis(1).fit(X)
    assert "Heywood" not in diagnose(clean, X).names
    X[:, 0] = z[:, 0]  # the factor itself stands in the table: no noise is left for it
    model = FactorAnalysis(1).fit(X)
    found = diagnose(model, X)["Heywood"]
    assert 0 <= found.number < found.threshold == 1e-4 and "fewer factors" in found.advice
    units = X * [1e3, 1.0, 1e-2, 1.0]  # a share of each column's own variance: units do not matter
    assert "Heywood" in diagnose(FactorAnalysis(1).fit(units), units).names
    one_noise = ProbabilisticPCA(1).fit(X)  # for all columns, so that none can be left without
    assert "Heywood" not in diagnose(one_noise, X).names


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stopped() -> None:
    X = blobs(100, (0.0, 1.0, 2.0))
    model = GaussianMixture(3, max_iter=1, tol=1e-9, random_state=0).fit(X)
    assert "stopped" in diagnose(model, X).names


def test_findings_print_number_threshold_and_advice() -> None:
    X = blobs() * [1.0, 1000.0]
    text = str(diagnose(KMeans(3, random_state=0).fit(X), X))
    assert text.startswith("scales: ") and "threshold 100" in text and ";" in text


@pytest.mark.filterwarnings("ignore:the graph of near rows has")
def test_graphs_in_parts_and_with_short_circuits() -> None:
    X = make_swiss_roll(1000, random_state=0)[0]
    assert not diagnose(Isomap(n_neighbors=10).fit(X), X)
    found = diagnose(Isomap(n_neighbors=3).fit(X), X)
    assert found["parts"].number == 4 and "short circuit" not in found.names
    for k in (20, 30):  # edges from turn to turn of the roll
        found = diagnose(Isomap(n_neighbors=k, n_landmarks=50).fit(X), X)
        assert found.names == ("short circuit",) and found["short circuit"].number > 0.4
    plane = np.random.default_rng(0).uniform(size=(500, 2))
    assert not diagnose(Isomap(n_neighbors=8, n_landmarks=50).fit(plane), plane)
    within = Isomap(n_neighbors=None, radius=4.5, n_landmarks=50)  # turns are 2π apart
    assert not diagnose(within.fit(X), X)


def test_perplexity_beyond_the_rows() -> None:
    X = blobs(10)
    fine = diagnose(TSNE(perplexity=9, max_iter=250).fit(X), X)
    assert "perplexity" not in fine.names
    found = diagnose(TSNE(perplexity=15, max_iter=250).fit(X), X)["perplexity"]
    assert found.number == 15 and np.isclose(found.threshold, 29 / 3)


def test_distances_that_no_rows_have() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    D = np.linalg.norm(X[:, None] - X, axis=-1)
    clean = diagnose(ClassicalMDS(metric="precomputed").fit(D), D)
    assert "not Euclidean" not in clean.names
    bent = np.minimum(D, 1.0) + np.random.default_rng(1).uniform(0, 2, D.shape)
    bent = np.triu(bent, 1) + np.triu(bent, 1).T
    found = diagnose(ClassicalMDS(metric="precomputed").fit(bent), bent)["not Euclidean"]
    assert found.number > found.threshold == 0.1 and "add_constant" in found.advice
