"""Embeddings by contrast: probes of digits, neighbours, prototypes, episodes."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from torch import nn

from groundstate import MetricEmbedding, SimCLR
from groundstate.energy.networks.embedding import EmbeddingEnergy
from groundstate.errors import DataError, ShapeError
from groundstate.learn.losses import nt_xent
from groundstate.learn.rules.views import TwoViews
from groundstate.models.representations.few_shot import prototype_proba, prototypes, retrieval
from groundstate.nn.augment import Augment, Noise


def clusters(n: int = 160, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    middle = np.random.default_rng(1).normal(size=(4, 6))
    return 2 * middle[y] + 0.5 * rng.normal(size=(n, 6)), y


@pytest.mark.slow
def test_codes_of_digits_beat_pixels_and_projections_with_three_labels_each() -> None:
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 8, 8)
    train, test = slice(0, 1200), slice(1200, None)
    rng = np.random.default_rng(0)
    few = np.concatenate(
        [rng.choice(np.flatnonzero(y[train] == c), 3, replace=False) for c in range(10)]
    )
    model = SimCLR(max_iter=12, learning_rate_init=2e-3, random_state=0).fit(X[train])
    h = model.linear_probe(X[few], y[few], X[test], y[test])
    _, Z = model.transform(X, return_projection=True)
    probe = LogisticRegression(max_iter=2000)
    z = probe.fit(Z[few], y[few]).score(Z[test], y[test])
    flat = X.reshape(len(X), -1) / 16
    raw = probe.fit(flat[few], y[few]).score(flat[test], y[test])
    untrained = SimCLR(max_iter=1, learning_rate_init=1e-9, random_state=0).fit(X[train])
    assert h >= raw and h >= z
    assert h >= untrained.linear_probe(X[few], y[few], X[test], y[test]) + 0.05


def test_learning_brings_views_together() -> None:
    X, y = clusters()
    model = SimCLR(n_components=8, max_iter=15, random_state=0).fit(X)
    assert model.history_.objective[-1] < model.history_.objective[0] - 0.1
    assert model.knn_probe(X, y, X, y) > 0.95
    h, z = model.transform(X, return_projection=True)
    assert h.shape == (160, 8) and z.shape == (160, 16)
    assert SimCLR(projection=(), max_iter=1).fit(X).transform(X, True)[1].shape == (160, 64)


def test_the_rule_is_the_loss_of_two_views() -> None:
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    energy = EmbeddingEnergy(3, 3, nn.Identity())
    rule = TwoViews(Augment([Noise(0.0)]), (3,), 0.3)
    terms = rule(energy, {"x": x})
    torch.testing.assert_close(terms.loss, nt_xent(x, x, reduction="none", temperature=0.3))
    torch.testing.assert_close(terms.positive - terms.contrast, terms.loss)
    assert rule(energy, {"x": x[:1]}).loss.tolist() == [0.0]


def test_pictures_keep_their_form() -> None:
    X = np.random.default_rng(0).random((20, 1, 8, 8))
    model = SimCLR(n_components=4, max_iter=1, random_state=0).fit(X)
    assert model.event_shape_ == (1, 8, 8) and model.transform(X).shape == (20, 4)
    with pytest.raises(ShapeError, match=r"\(1, 8, 8\), got \(8, 4\)"):
        model.transform(X.reshape(20, 8, 8)[:, :, :4])
    with pytest.raises(ValueError, match="1 sample"):
        SimCLR().fit(X[:1])


def test_an_identity_makes_prototypes_nearest_centroids() -> None:
    X, y = clusters()
    new, _ = clusters(40, 2)
    classes, centres = prototypes(X, y)
    peer = NearestCentroid().fit(X, y)
    np.testing.assert_allclose(centres, peer.centroids_)
    p = prototype_proba(centres, new)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(classes[p.argmax(1)], peer.predict(new))
    still = nn.Linear(6, 6, bias=False)
    nn.init.eye_(still.weight)
    model = MetricEmbedding(still, learning_rate_init=1e-12, alpha=0.0, max_iter=1).fit(X, y)
    scaled = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(model.transform(X), scaled, atol=1e-4)
    labels, q = model.few_shot(X, y, new)
    expected = peer.fit(scaled, y).predict((new - X.mean(0)) / X.std(0))
    np.testing.assert_array_equal(labels[q.argmax(1)], expected)
    np.testing.assert_array_equal(model.infer({"x": new}, "y"), expected)  # the energy's prototypes


@pytest.mark.parametrize("loss", ["triplet", "contrastive", "supcon"])
def test_noise_columns_are_forgotten(loss: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = np.column_stack([np.eye(4)[y] + 0.2 * rng.normal(size=(200, 4)), rng.normal(size=(200, 8))])
    before = retrieval(X, y)
    model = MetricEmbedding(loss=loss, n_components=4, max_iter=30, random_state=0).fit(X, y)
    recall, precision = model.retrieval(X, y)
    assert recall > before[0] and precision > before[1] + 0.1
    d, labels = model.retrieve(X[:5], 3)
    assert d.shape == (5, 3) and (d[:, 0] < 1e-4).all() and (labels[:, 0] == y[:5]).all()
    D = model.pairwise(X[:5])
    np.testing.assert_allclose(D, D.T)


def test_unseen_classes_are_told_apart_by_one_example() -> None:
    X, y = load_digits(return_X_y=True)
    seen = y < 5
    model = MetricEmbedding(max_iter=8, random_state=0).fit(X[seen], y[seen])
    mean, error = model.episodes(X[~seen], y[~seen], way=5, shot=1, n_episodes=40)
    assert mean - 3 * error > 0.2
    five, _ = model.episodes(X[~seen], y[~seen], way=5, shot=5, n_episodes=40)
    assert five > mean
    with pytest.raises(DataError, match="6-way"):
        model.episodes(X[~seen], y[~seen], way=6)


def test_precision_at_r_by_hand() -> None:
    # neighbours in order: of row 0 b, a, a; of row 1 a, b, a; of row 2 a, b, a; R is 2
    recall, precision = retrieval([[0.0], [2.1], [3.0], [1.0]], ["a", "a", "a", "b"])
    assert precision == pytest.approx((0.5 * 0.5 + 0.5 + 0.5) / 3)
    assert recall == pytest.approx(2 / 3)


def test_classes_of_few_rows_count_as_much() -> None:
    y = np.array([0] * 90 + [1] * 10)
    model = MetricEmbedding()
    model.classes_ = np.array([0, 1])
    w = model._row_weight(y, None)
    assert w[y == 0].sum() == pytest.approx(50) and w[y == 1].sum() == pytest.approx(50)
