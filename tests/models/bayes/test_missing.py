"""Naive Bayes with missing entries (factors that are left out) and with words for categories."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

import groundstate
from groundstate.energy.classes.discriminant import GaussianClassEnergy
from groundstate.energy.classes.naive_bayes.counts import BernoulliClassEnergy
from groundstate.energy.classes.naive_bayes.missing import _products, observed_sums

NAMES = ("GaussianNB", "BernoulliNB", "MultinomialNB", "CategoricalNB")
N, D, K = 90, 4, 3
LABELS = np.random.default_rng(1).integers(0, K, N)


def rows(name: str, seed: int = 0, holes: float = 0.2) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    if name == "GaussianNB":
        X = rng.normal(size=(N, D)) + LABELS[:, None] * np.arange(D)
    elif name == "BernoulliNB":
        X = (rng.uniform(size=(N, D)) < 0.2 + 0.2 * LABELS[:, None]).astype(float)
    elif name == "MultinomialNB":
        X = rng.poisson(1 + np.outer(LABELS, np.arange(D))).astype(float)
    else:
        X = rng.integers(0, [2, 3, 4, 5], size=(N, D)).astype(float)
    X[rng.uniform(size=X.shape) < holes] = np.nan
    return X


def made(name: str, **settings: Any) -> Any:
    return getattr(groundstate, name)(**settings)


def by_hand(name: str, X: NDArray[Any], y: NDArray[Any], query: NDArray[Any]) -> NDArray[Any]:
    """log p(x, y) of the observed entries, one class and one feature at a time."""
    out = np.zeros((len(query), K))
    spread = max(np.nanvar(X[:, j]) for j in range(X.shape[1]))
    words = None
    if name == "MultinomialNB":  # completed counts, then their smoothed shares
        per_row = np.array([np.nanmean(X[y == c], axis=0) for c in range(K)])
        full = per_row * np.bincount(y)[:, None]
        words = (full + 1) / (full + 1).sum(1, keepdims=True), full.sum() / len(y)
    for c, j in itertools.product(range(K), range(X.shape[1])):
        seen = X[y == c, j]
        seen, v = seen[~np.isnan(seen)], query[:, j]
        if name == "GaussianNB":
            term = norm.logpdf(v, seen.mean(), np.sqrt(seen.var() + 1e-9 * spread))
        elif name == "BernoulliNB":
            p = (seen.sum() + 1) / (len(seen) + 2)
            term = np.where(v > 0, np.log(p), np.log(1 - p))
        elif name == "MultinomialNB":
            p, length = words[0][c, j], words[1]
            term = v * np.log(p) - length * p
        else:
            size = int(np.nanmax(X[:, j])) + 1
            count = np.bincount(seen.astype(int), minlength=size) + 1
            term = np.log(count / count.sum())[np.nan_to_num(v).astype(int)]
        out[:, c] += np.where(np.isnan(v), 0.0, term)
    if words is not None:
        out += words[1]  # scikit-learn's scores leave out what whole rows share
    return out + np.log(np.bincount(y) / len(y))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_observed_decides(name: str) -> None:
    X = rows(name)
    model = made(name).fit(X, LABELS)
    expected = by_hand(name, X, LABELS, X)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-9, atol=1e-9)
    posterior = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), posterior, atol=1e-9)
    assert (model.infer({"x": X}, "y") == posterior.argmax(1)).all()
    gap = model.energy(X, np.zeros(N, int)) - model.energy(X, np.ones(N, int))
    np.testing.assert_allclose(gap, expected[:, 1] - expected[:, 0], atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", [0, D])
def test_an_empty_column_says_nothing(name: str, at: int) -> None:
    X = rows(name)
    wide = np.insert(X, at, np.nan, axis=1)
    model, narrow = made(name).fit(wide, LABELS), made(name).fit(X, LABELS)
    np.testing.assert_allclose(model.energy(wide, LABELS), narrow.energy(X, LABELS), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(wide), narrow.predict_proba(X), rtol=1e-11)
    wide[:, at] = 0.0  # a value of a feature that nobody had seen
    np.testing.assert_allclose(model.predict_proba(wide), narrow.predict_proba(X), rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_row_says_nothing(name: str) -> None:
    X = rows(name)
    model = made(name).fit(X, LABELS)
    nothing = np.full((1, D), np.nan)
    expected = np.bincount(LABELS) / N
    np.testing.assert_allclose(model.predict_proba(nothing)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(model.energy(nothing), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "values", "log_step"),
    [
        ("GaussianNB", np.linspace(-30, 30, 60_001), np.log(1e-3)),
        ("BernoulliNB", np.arange(2.0), 0.0),
        ("MultinomialNB", np.arange(80.0), 0.0),
        ("CategoricalNB", np.arange(3.0), 0.0),
    ],
)
def test_leaving_out_is_summing_over_the_value(name, values, log_step) -> None:
    model = made(name).fit(rows(name), LABELS)
    x = rows(name, 3, holes=0.0)[:1]
    gone = np.where(np.arange(D) == 1, np.nan, x)
    every = np.where(np.arange(D) == 1, values[:, None], x)
    for c in range(K):
        summed = logsumexp(-model.energy(every, np.full(len(every), c))) + log_step
        np.testing.assert_allclose(-model.energy(gone, [c])[0], summed, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_weight_is_repetition(name: str) -> None:
    X = rows(name)
    w = np.arange(N) % 3
    twice = np.repeat(np.arange(N), w)
    a = made(name).fit(X, LABELS, sample_weight=w)
    b = made(name).fit(X[twice], LABELS[twice])
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_the_whole_and_come_back_from_a_file(name: str, tmp_path) -> None:
    X = rows(name)
    X[:20] = rows(name, holes=0.0)[:20]  # the first part lacks nothing
    X[20:40, 2] = np.nan
    whole = made(name).fit(X, LABELS)
    parts = made(name)
    if name == "CategoricalNB":
        parts.set_params(min_categories=whole.n_categories_)
    for a in range(0, N, 20):
        parts.partial_fit(X[a : a + 20], LABELS[a : a + 20], classes=range(K))
        parts = groundstate.load(parts.save(tmp_path / f"{a}.gs"))
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    back = groundstate.load(whole.save(tmp_path / "whole.gs"))
    assert np.array_equal(back.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("name", ["BernoulliNB", "MultinomialNB"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_are_dense_rows(name: str, weighted: bool) -> None:
    X = np.insert(rows(name), 1, np.nan, axis=1)
    w = np.random.default_rng(0).uniform(0.1, 2.0, N) if weighted else None
    dense = made(name, alpha=0.0).fit(X, LABELS, sample_weight=w)
    sparse = made(name, alpha=0.0).fit(sp.csr_matrix(X), LABELS, sample_weight=w)
    np.testing.assert_allclose(sparse.feature_log_prob_, dense.feature_log_prob_, rtol=1e-9)
    np.testing.assert_allclose(
        sparse.predict_proba(sp.csr_matrix(X)), dense.predict_proba(X), rtol=1e-9
    )
    np.testing.assert_allclose(sparse.energy(sp.csr_matrix(X)), dense.energy(X), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_none_in_a_frame_is_missing(name: str, frame: Callable[..., Any]) -> None:
    X = rows(name)
    cells = [[None if v != v else v for v in column] for column in X.T]
    table = frame({f"f{j}": column for j, column in enumerate(cells)})
    model = made(name).fit(table, LABELS)
    expected = made(name).fit(X, LABELS).predict_proba(X)
    assert np.array_equal(model.predict_proba(table), expected)
    objects = np.array(cells, dtype=object).T
    assert np.array_equal(made(name).fit(objects, LABELS).predict_proba(objects), expected)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_class_that_lacks_a_feature_is_like_all_rows(name: str, columns: int) -> None:
    X = rows(name)[:, :columns]
    X[LABELS == 0, 0] = np.nan
    model = made(name).fit(X, LABELS)
    assert np.isfinite(model.predict_proba(X)).all()
    if name == "GaussianNB":
        np.testing.assert_allclose(model.theta_[0, 0], np.nanmean(X[:, 0]), rtol=1e-10)
        np.testing.assert_allclose(model.var_[0, 0], np.nanvar(X[:, 0]), rtol=1e-6)
    elif name == "BernoulliNB":
        np.testing.assert_allclose(model.feature_log_prob_[0, 0], np.log(0.5), rtol=1e-12)


def test_sums_given_a_distribution_of_the_class_are_sums_given_the_class() -> None:
    X = torch.from_numpy(rows("BernoulliNB"))
    y = torch.from_numpy(LABELS)
    energy = BernoulliClassEnergy(K, D).double()
    sure = torch.distributions.Categorical(probs=torch.eye(K, dtype=torch.float64)[y])
    a, b = observed_sums(energy, X, y, None), observed_sums(energy, X, sure, None)
    for name in ("n", "seen", "x"):
        torch.testing.assert_close(a[name], b[name])


def test_sums_off_the_host_are_the_same() -> None:
    """What runs on a GPU, run with torch's operators on the CPU."""
    X, y = torch.from_numpy(rows("GaussianNB")), torch.from_numpy(LABELS)
    energy = GaussianClassEnergy(K, D, "diag").double()
    weight = torch.linspace(0.0, 2.0, N, dtype=torch.float64)
    energy.centre(X, y, weight)
    host = observed_sums(energy, X, y, weight, energy.origin, squares=True)
    device = _products(energy, X, y, weight, energy.origin, squares=True)
    for name in ("n", "seen", "x", "xx"):
        torch.testing.assert_close(host[name], device[name])


@pytest.mark.parametrize("name", NAMES)
def test_slopes_of_rows_with_holes_are_finite(name: str) -> None:
    X = rows(name)
    model = made(name).fit(X, LABELS)
    x, _ = model._rows(X)
    model.energy_(x=x, y=torch.from_numpy(LABELS)).sum().backward()
    slopes = [p.grad for p in model.energy_.parameters()]
    assert all(g is not None and torch.isfinite(g).all() for g in slopes)


# --- words ---------------------------------------------------------------------------------

COLOURS = np.array(["red", "green", "blue"], dtype=object)
SIZES = np.array(["s", "m", "l", "xl"], dtype=object)


def worded() -> tuple[NDArray[Any], NDArray[Any]]:
    """The same table in words and in the numbers of the sorted words."""
    rng = np.random.default_rng(0)
    words = np.column_stack([COLOURS[rng.integers(0, 3, N)], SIZES[rng.integers(0, 4, N)]])
    codes = np.column_stack([np.unique(c.astype(str), return_inverse=True)[1] for c in words.T])
    words = words.astype(object)
    words[::7, 1] = None
    codes = codes.astype(float)
    codes[::7, 1] = np.nan
    return words, codes


def _categories(words: NDArray[Any]) -> pd.DataFrame:
    return pd.DataFrame(words, columns=["colour", "size"]).astype("category")


@pytest.mark.parametrize(
    "table",
    [
        np.asarray,
        list,
        lambda words: pd.DataFrame(words, columns=["colour", "size"]),
        _categories,
        lambda words: pd.DataFrame(words, columns=["colour", "size"]).astype("string"),
        lambda words: pl.DataFrame({"colour": list(words[:, 0]), "size": list(words[:, 1])}),
    ],
    ids=["array", "lists", "pandas", "category", "string", "polars"],
)
def test_words_are_the_numbers_of_their_levels(table: Callable[[Any], Any], tmp_path) -> None:
    words, codes = worded()
    model = groundstate.CategoricalNB().fit(table(words), LABELS)
    expected = groundstate.CategoricalNB().fit(codes, LABELS).predict_proba(codes)
    assert np.array_equal(model.predict_proba(table(words)), expected)
    assert [c.tolist() for c in model.categories_] == [
        ["blue", "green", "red"],
        ["l", "m", "s", "xl"],
    ]
    back = groundstate.load(model.save(tmp_path / "words.gs"))
    assert np.array_equal(back.predict_proba(table(words)), expected)
    assert [c.tolist() for c in back.categories_] == [c.tolist() for c in model.categories_]


def test_an_unseen_word_is_missing() -> None:
    words, _ = worded()
    model = groundstate.CategoricalNB().fit(words, LABELS)
    new, gone = [["red", "enormous"]], [["red", None]]
    assert np.array_equal(model.predict_proba(new), model.predict_proba(gone))
    assert not np.array_equal(model.predict_proba(new), model.predict_proba([["red", "s"]]))


def test_words_come_in_parts_and_out_of_draws() -> None:
    words, _ = worded()
    whole = groundstate.CategoricalNB().fit(words, LABELS)
    parts = groundstate.CategoricalNB()
    for a in (0, 45):  # all words are in the first half
        parts.partial_fit(words[a : a + 45], LABELS[a : a + 45], classes=range(K))
    np.testing.assert_allclose(parts.predict_proba(words), whole.predict_proba(words), rtol=1e-12)
    drawn, _ = whole.sample(50, random_state=0)
    assert set(drawn[:, 0]) <= set(COLOURS) and set(drawn[:, 1]) <= set(SIZES)
    best = whole.infer({"y": [0]}, "x")
    assert best[0, 0] in COLOURS and best[0, 1] in SIZES


def test_numbers_of_categories_keep_their_meaning() -> None:
    codes = np.array([[0, 2], [1, 0], [0, 1]])
    model = groundstate.CategoricalNB().fit(codes, [0, 1, 1])
    assert [c.tolist() for c in model.categories_] == [[0, 1], [0, 1, 2]]
    with pytest.raises(ValueError, match="feature 1 holds category 7, but only 0 to 2 are known"):
        model.predict([[0, 7]])
    with pytest.raises(ValueError, match="Negative values .* words, or numbers from zero"):
        groundstate.CategoricalNB().fit([[np.nan, 0.0], [1.0, -2.0]], [0, 1])


def test_ten_thousand_words() -> None:
    rng = np.random.default_rng(0)
    code = np.concatenate([np.arange(10_000), rng.integers(0, 10_000, 20_000)])
    y = (code % 2).astype(int)
    words = np.array([f"k{c}" for c in code], dtype=object)[:, None]
    model = groundstate.CategoricalNB().fit(words, y)
    assert model.n_categories_.tolist() == [10_000]
    assert model.score(words, y) == 1.0
