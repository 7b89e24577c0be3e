"""Naive Bayes: worked examples, parity with scikit-learn, streams, weights and draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.naive_bayes as peers
from sklearn.datasets import load_iris, make_classification

import groundstate
from groundstate import CategoricalNB

COUNTS = np.array([[2, 1, 0, 0, 0, 0], [2, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 1]])
LABELS = np.array([1, 1, 1, 0])
QUERY = np.array([[3, 0, 0, 0, 1, 1]])
rng = np.random.default_rng(0)
X, y = load_iris(return_X_y=True)
BITS = (rng.uniform(size=(120, 7)) < 0.4).astype(float)
WORDS = rng.poisson(1.5, size=(120, 7)).astype(float)
CODES = rng.integers(0, [2, 3, 5, 2, 4, 3, 2], size=(120, 7))
T = rng.integers(0, 3, 120)
# name, settings, rows, labels
PARITY = [
    ("GaussianNB", {}, X, y),
    ("GaussianNB", {"var_smoothing": 1e-3, "priors": [0.2, 0.3, 0.5]}, X, y),
    ("GaussianNB", {}, X * [1e-12, 1.0, 1e6, 1e3] + 1e3, y),
    ("BernoulliNB", {}, BITS, T),
    ("BernoulliNB", {"alpha": 0.3, "binarize": 1.0, "fit_prior": False}, WORDS, T),
    ("BernoulliNB", {"binarize": None}, sp.csr_matrix(BITS), T),
    ("MultinomialNB", {}, WORDS, T),
    ("MultinomialNB", {"alpha": 0.1, "class_prior": [0.1, 0.2, 0.7]}, sp.csr_matrix(WORDS), T),
    ("MultinomialNB", {"alpha": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}, WORDS, T),
    ("ComplementNB", {}, WORDS, T),
    ("ComplementNB", {"alpha": 0.1, "norm": True}, sp.csr_matrix(WORDS), T),
    ("ComplementNB", {"alpha": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}, WORDS, np.minimum(T, 1)),
    ("ComplementNB", {"class_prior": [0.1, 0.2, 0.7], "force_alpha": False}, WORDS * 0.3, T),
    ("CategoricalNB", {}, CODES, T),
    ("CategoricalNB", {"alpha": 0.5, "min_categories": 6}, CODES, T),
]


def test_multinomial_worked_example() -> None:
    model = groundstate.MultinomialNB().fit(COUNTS, LABELS)
    joint = np.exp(model.predict_joint_log_proba(QUERY))[0]
    np.testing.assert_allclose(joint[::-1], [0.000301, 0.000135], atol=5e-7)
    np.testing.assert_allclose(model.predict_proba(QUERY)[0, 1], 0.689759, atol=5e-7)


def test_bernoulli_worked_example() -> None:
    # bits of the words, as counts above zero
    model = groundstate.BernoulliNB().fit(COUNTS, LABELS)
    joint = np.exp(model.predict_joint_log_proba(QUERY))[0]
    expected = np.exp(peers.BernoulliNB().fit(COUNTS, LABELS).predict_joint_log_proba(QUERY))[0]
    np.testing.assert_allclose(joint, expected, rtol=1e-12)
    np.testing.assert_allclose(joint[::-1], [0.75 * 0.8 * 0.6**3 * 0.2**2, 0.25 * (2 / 3) ** 6])
    assert model.predict(QUERY)[0] == 0


@pytest.mark.parametrize(("name", "settings", "rows", "labels"), PARITY)
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_scikit_learn(name, settings, rows, labels, weighted) -> None:
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(labels)) if weighted else None
    ours = getattr(groundstate, name)(**settings).fit(rows, labels, sample_weight=w)
    peer = getattr(peers, name)(**settings).fit(rows, labels, sample_weight=w)
    if weighted and name == "GaussianNB":  # its smoothing ignores the weights: take them as fitted
        peer.var_ += ours.epsilon_ - peer.epsilon_
    for attribute in ("theta_", "var_", "class_prior_", "class_log_prior_", "class_count_"):
        if hasattr(peer, attribute):
            np.testing.assert_allclose(
                getattr(ours, attribute), getattr(peer, attribute), rtol=1e-9, atol=1e-30
            )
    for mine, theirs in zip(
        getattr(ours, "feature_log_prob_", []), getattr(peer, "feature_log_prob_", [])
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(rows), peer.predict_joint_log_proba(rows), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize(("name", "settings", "rows", "labels"), PARITY[::3])
def test_partial_fit_is_fit_on_all_rows(name, settings, rows, labels) -> None:
    if sp.issparse(rows):
        rows = rows.toarray()
    cls = getattr(groundstate, name)
    whole = cls(**settings).fit(rows, labels)
    parts = cls(**settings)
    if name == "CategoricalNB":
        parts.set_params(min_categories=whole.n_categories_)
    for piece in np.array_split(np.arange(len(rows)), 4):  # iris: the first has one class only
        parts.partial_fit(rows[piece], labels[piece], classes=np.unique(labels))
    np.testing.assert_allclose(parts.predict_proba(rows), whole.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(parts.class_count_, whole.class_count_)


def test_partial_fit_goes_on_after_loading(tmp_path) -> None:
    first = groundstate.GaussianNB(priors=[0.2, 0.3, 0.5]).fit(X[::2], y[::2])
    loaded = groundstate.load(first.save(tmp_path / "m.gs"))
    loaded.partial_fit(X[1::2], y[1::2])
    whole = groundstate.GaussianNB(priors=[0.2, 0.3, 0.5]).fit(X, y)
    np.testing.assert_allclose(loaded.theta_, whole.theta_, rtol=1e-12)
    np.testing.assert_allclose(loaded.class_prior_, [0.2, 0.3, 0.5])


@pytest.mark.parametrize("name", ["GaussianNB", "BernoulliNB", "MultinomialNB", "CategoricalNB"])
def test_weight_is_repetition(name) -> None:
    rows = CODES.astype(float)
    w = np.arange(len(rows)) % 3
    twice = np.repeat(np.arange(len(rows)), w)
    cls = getattr(groundstate, name)
    a = cls().fit(rows, T, sample_weight=w)
    b = cls().fit(rows[twice], T[twice])
    np.testing.assert_allclose(a.predict_proba(rows), b.predict_proba(rows), rtol=1e-10)


def test_draws_follow_the_learned_distribution() -> None:
    model = groundstate.GaussianNB().fit(X, y)
    drawn, labels = model.sample(20_000, random_state=0)
    for k in range(3):
        np.testing.assert_allclose(drawn[labels == k].mean(0), model.theta_[k], atol=0.03)
        np.testing.assert_allclose(drawn[labels == k].var(0), model.var_[k], rtol=0.06)
    for name, rows in (("BernoulliNB", BITS), ("MultinomialNB", WORDS), ("CategoricalNB", CODES)):
        got, _ = getattr(groundstate, name)().fit(rows, T).sample(4000, random_state=1)
        np.testing.assert_allclose(got.mean(0), rows.mean(0), atol=0.2)


def test_many_classes_sum_the_same_way() -> None:
    rows, _ = make_classification(400, 6, random_state=0)
    labels = np.arange(400) % 100
    ours = groundstate.GaussianNB().fit(rows, labels)
    peer = peers.GaussianNB().fit(rows, labels)
    np.testing.assert_allclose(ours.var_, peer.var_, rtol=1e-10)
    assert (ours.predict(rows) == peer.predict(rows)).all()


def test_one_class_and_constant_columns() -> None:
    model = groundstate.GaussianNB().fit(np.ones((4, 2)), ["a"] * 4)
    assert model.predict(np.ones((1, 2)))[0] == "a"
    assert np.isfinite(model.energy(np.ones((1, 2)))).all()


def test_an_unknown_category_is_named() -> None:
    model = groundstate.CategoricalNB().fit(CODES, T)
    bad = CODES[:2].copy()
    bad[1, 2] = 9
    with pytest.raises(ValueError, match="feature 2 holds category 9, but only 0 to 4 are known"):
        model.predict(bad)


@pytest.mark.parametrize(
    ("priors", "message"),
    [([0.5, 0.5], "match number of classes"), ([0.5, 0.5, 0.5], "sum of the priors"),
     ([-0.5, 0.5, 1.0], "non-negative")],
)  # fmt: skip
def test_bad_priors_are_refused(priors, message) -> None:
    with pytest.raises(ValueError, match=message):
        groundstate.GaussianNB(priors=priors).fit(X, y)


def test_free_features_are_filled_in() -> None:
    """The energy answers other questions than the label: where x is most likely given y."""
    model = groundstate.GaussianNB().fit(X, y)
    best = model.infer({"y": np.array([0, 2])}, "x")
    np.testing.assert_allclose(best, model.theta_[[0, 2]], rtol=1e-10)


def test_further_rows_bring_further_categories() -> None:
    g = np.random.default_rng(0)
    X, label, weight = g.integers(0, 5, (60, 3)), g.integers(0, 3, 60), g.uniform(0.5, 2, 60)
    X[:20] %= 2
    words = np.array(["e", "c", "a", "d", "b"], dtype=object)[X]
    for rows in (X, words, np.where(X == 4, np.nan, X), np.where(X == 4, None, words)):
        whole = CategoricalNB().fit(rows, label, weight)
        parts = CategoricalNB()
        for cut in (slice(0, 20), slice(20, 30), slice(30, 60)):
            parts.partial_fit(rows[cut], label[cut], [0, 1, 2], weight[cut])
        np.testing.assert_allclose(parts.predict_proba(rows), whole.predict_proba(rows), rtol=1e-9)
        for j in range(3):
            np.testing.assert_array_equal(parts.categories_[j], whole.categories_[j])
            np.testing.assert_allclose(parts.category_count_[j], whole.category_count_[j])
    peer = peers.CategoricalNB().partial_fit(X[:20], label[:20], [0, 1, 2]).partial_fit(X, label)
    ours = CategoricalNB().partial_fit(X[:20], label[:20], [0, 1, 2]).partial_fit(X, label)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X))
