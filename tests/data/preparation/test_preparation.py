"""Columns to numbers, learned from training rows only."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from groundstate.data import Preparation, Table, load, read
from groundstate.data.preparation.levels import TargetMean
from groundstate.data.preparation.weighted import mean_and_scale, median, tally
from groundstate.errors import DataError


def mixed(n: int = 60, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    hole = rng.random(n) < 0.2
    return read(
        {
            "real": np.where(hole, np.nan, rng.normal(5, 3, n)),
            "whole": rng.integers(0, 9, n),
            "word": [None if h else w for h, w in zip(hole, rng.choice(["a", "b", "c"], n))],
            "day": np.datetime64("2020-01-01") + rng.integers(0, 900, n),
            "text": [
                f"the {w} fox number {i} jumps" for i, w in enumerate(rng.choice(["red", "old"], n))
            ],
            "id": np.arange(n),
            "one": np.ones(n),
            "y": rng.integers(0, 2, n),
        },
        target="y",
    )


def test_training_columns_are_standardised() -> None:
    X = Preparation().fit_transform(load("wine"))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=1e-12)


def test_every_kind_becomes_finite_numbers_with_names() -> None:
    table = mixed()
    prep = Preparation(text_bins=64, text_size=8).fit(table)
    X = prep.transform(table)
    names = prep.feature_names_out()
    assert X.shape == (60, len(names))
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert names[:6] == ["real", "real missing", "whole", "word=a", "word=b", "word=c"]
    assert "day elapsed" in names
    assert "text topic 8" in names and "text topic 9" not in names
    assert not any(name.startswith(("id", "one", "y")) for name in names)
    assert prep.notes_ == ("identifier columns left out: 'id'", "constant columns left out: 'one'")


def test_test_rows_do_not_matter() -> None:
    table = mixed()
    train, test = table.take(np.arange(40)), table.take(np.arange(40, 60))
    prep = Preparation().fit(train)
    before = prep.transform(test)
    assert np.array_equal(prep.transform(test.take([0])), before[:1])
    assert np.array_equal(prep.transform(table)[40:], before)


def test_median_imputation_and_indicator() -> None:
    train = read({"x": [1.0, None, 3.0, 10.0], "z": [1.0, 2.0, 3.0, 5.0]})
    prep = Preparation().fit(train)
    assert prep.feature_names_out() == ["x", "x missing", "z"]
    got = prep.transform({"x": [None, 3.0], "z": [None, 2.5]})
    assert got[0, 0] == got[1, 0]
    assert got[:, 1].tolist() == [1.0, 0.0]
    assert got[0, 2] == got[1, 2]  # 2.5 is the median of z; no indicator, none was seen


def test_unseen_and_missing_labels() -> None:
    prep = Preparation().fit({"c": ["a", "b", "a"], "x": [1, 2, 3]})
    X = prep.transform({"c": ["b", "new", None], "x": [1, 2, 3]})
    assert X[:, :2].tolist() == [[0, 1], [0, 0], [0, 0]]


def test_rare_labels_share_one_column() -> None:
    labels = ["a"] * 5 + ["b"] * 4 + ["c"] * 2 + ["d"]
    prep = Preparation(max_categories=3).fit({"c": labels, "x": range(12)})
    assert prep.feature_names_out() == ["c=a", "c=b", "c other", "x"]
    got = prep.transform({"c": ["d", "new", "a"], "x": [0, 0, 0]})[:, :3]
    assert got.tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]


def town_rows(n: int = 300, seed: int = 0) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 30, n)
    value = np.sin(town * 7.0) + 0.3 * rng.normal(size=n)
    names = [None if t == 29 else f"town {t:02d}" for t in town]
    return {"town": names, "x": rng.normal(size=n)}, value


@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_many_levels_are_encoded_by_the_target_as_scikit_learn_does(kind: str) -> None:
    from sklearn.preprocessing import TargetEncoder

    rows, value = town_rows()
    y = {"numbers": value, "two": value > 0, "three": np.digitize(value, [-0.5, 0.5])}[kind]
    prep = Preparation().fit(rows, y=y, classes=kind != "numbers")
    encoder = prep.encoders_["town"]
    assert isinstance(encoder, TargetMean)
    table = np.array([t or "zz" for t in rows["town"]], dtype=object)[:, None]
    theirs = TargetEncoder(target_type={"numbers": "continuous", "two": "binary",
                                        "three": "multiclass"}[kind]).fit(table, y)  # fmt: skip
    np.testing.assert_allclose(
        np.array(encoder.values).T, np.stack(theirs.encodings_), rtol=1e-9, atol=1e-12
    )
    new = prep.transform({"town": ["nowhere"], "x": [0.0]})[0, :-1]
    for got, number, mean in zip(new, encoder.numbers, encoder.prior):
        assert got == pytest.approx((mean - number.mean) / number.scale)


def test_a_training_row_is_never_encoded_by_its_own_target() -> None:
    rows, value = town_rows()
    before = Preparation().fit_transform(rows, y=value)
    rng = np.random.default_rng(5)
    noise = rng.normal(size=300)
    tied = {"town": [f"t{i % 100}" for i in range(300)], "x": rng.normal(size=300)}
    fitted = Preparation()
    crossed = fitted.fit_transform(tied, y=noise)[:, 0]
    plain = fitted.transform(tied)[:, 0]
    # three rows a level: their mean tells a lot about each; what the others say tells nothing
    assert abs(np.corrcoef(crossed, noise)[0, 1]) < 0.2 < 0.5 < np.corrcoef(plain, noise)[0, 1]
    assert np.corrcoef(before[:, 0], value)[0, 1] > 0.8  # and a true effect is kept
    np.testing.assert_allclose(before.std(0), 1, atol=1e-9)


def test_trees_get_plain_numbers_and_numbered_labels() -> None:
    table = read({"v": [1.0, None, 300.0], "c": ["b", "a", None], "d": ["x", "y", "x"]})
    prep = Preparation(trees=True).fit(table)
    assert prep.feature_names_out() == ["v", "v missing", "c", "d"]
    got = prep.transform({"v": [None, 7.0], "c": ["a", "new"], "d": [None, "y"]})
    assert got.tolist() == [[150.5, 1.0, 0.0, -2.0], [7.0, 0.0, -1.0, 1.0]]


@pytest.mark.parametrize("classes", [False, True])
def test_target_encoding_of_weights_is_that_of_rows(classes: bool) -> None:
    rows, value = town_rows()
    table = read(rows)
    y = np.where(value > 0, "up", "down") if classes else value
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 4, 300)
    order = rng.permutation(np.repeat(np.arange(300), weights))
    one, two = Preparation(max_categories=5), Preparation(max_categories=5)
    X = one.fit_transform(table, weights, y=y, classes=classes)
    again = two.fit_transform(table.take(order), y=y[order], classes=classes)
    assert one.to_state()["encoders"] == two.to_state()["encoders"]
    assert np.array_equal(X[order], again)
    back = Preparation.from_state(json.loads(json.dumps(one.to_state())))
    assert np.array_equal(back.transform(table), one.transform(table))


@pytest.mark.parametrize("seed", range(5))
def test_a_weight_of_two_is_the_row_twice_to_the_last_bit(seed: int) -> None:
    table = mixed(seed=seed)
    rng = np.random.default_rng([1, seed])
    weights = rng.integers(0, 4, table.n_rows)
    rows = rng.permutation(np.repeat(np.arange(table.n_rows), weights))
    weighted = Preparation(max_categories=2).fit(table, sample_weight=weights)
    repeated = Preparation(max_categories=2).fit(table.take(rows))
    assert weighted.to_state()["encoders"] == repeated.to_state()["encoders"]
    assert np.array_equal(weighted.transform(table), repeated.transform(table))


def test_row_order_does_not_matter() -> None:
    table = mixed()
    order = np.random.default_rng(0).permutation(table.n_rows)
    assert Preparation().fit(table).to_state() == Preparation().fit(table.take(order)).to_state()


def test_column_order_and_further_columns_do_not_matter() -> None:
    table = mixed()
    prep = Preparation().fit(table)
    shuffled = table.frame.select(sorted(table.columns)).with_columns(pl.lit("x").alias("extra"))
    assert np.array_equal(prep.transform(shuffled), prep.transform(table))


def test_state_round_trip_through_json() -> None:
    table = mixed()
    prep = Preparation(max_categories=2, text_bins=4).fit(table)
    again = Preparation.from_state(json.loads(json.dumps(prep.to_state())))
    assert np.array_equal(again.transform(table), prep.transform(table))
    assert again.feature_names_out() == prep.feature_names_out()
    assert again.to_state() == prep.to_state()
    with pytest.raises(DataError, match="not the state of a Preparation"):
        Preparation.from_state({"max_categories": 3})


def test_a_few_new_rows_are_read_like_the_training_rows() -> None:
    table = mixed()
    prep = Preparation().fit(table)
    lone = read(table.features.frame.head(1))  # looks constant everywhere on its own
    assert np.array_equal(prep.transform(lone), prep.transform(table)[:1])


def test_extreme_numbers_stay_finite() -> None:
    train = read({"x": [1e300, -1e300, 5.0], "tiny": [1e-300, 2e-300, 3e-300]})
    prep = Preparation().fit(train)
    X = prep.transform({"x": [1e308, -1e308], "tiny": [1e308, 0.0]})
    assert np.isfinite(X).all()
    np.testing.assert_allclose(prep.transform(train)[:, 1], [-1.2247, 0, 1.2247], atol=1e-3)


def test_text_is_tfidf_along_the_leading_directions() -> None:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    rng = np.random.default_rng(0)
    words = ["ash", "birch", "cedar", "elm", "fir", "hazel", "lime", "maple", "oak", "pine"]
    texts = [" ".join(rng.choice(words, 6)) + f" n{i}" for i in range(40)]
    prep = Preparation(text_bins=2**18, text_size=3).fit({"t": texts, "x": range(40)})
    ours = prep.transform({"t": texts, "x": range(40)})[:, :3]
    tfidf = TfidfVectorizer(token_pattern=r"\w+").fit_transform(texts)
    theirs = TruncatedSVD(3, algorithm="arpack").fit_transform(tfidf)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=2e-6)


def test_text_is_order_free_and_unseen_words_are_no_trouble() -> None:
    texts = [f"alpha beta {i} gamma delta {i % 3}" for i in range(30)]
    prep = Preparation().fit({"t": texts, "x": range(30)})
    k = len(prep.feature_names_out()) - 1
    a = prep.transform({"t": ["beta ALPHA gamma"], "x": [0]})[0, :k]
    b = prep.transform({"t": ["gamma, beta; alpha!"], "x": [0]})[0, :k]
    assert np.array_equal(a, b) and 0 < np.linalg.norm(a) <= 1 + 1e-6
    for lost in (None, "omega"):
        assert not prep.transform({"t": [lost], "x": [0]})[0, :k].any()


def test_directions_of_a_large_table_are_nearly_the_best() -> None:
    import scipy.sparse

    from groundstate.data.preparation.topics import leading

    rng = np.random.default_rng(0)
    A = scipy.sparse.random_array((900, 700), density=0.01, rng=rng).tocsr()
    A = A + scipy.sparse.csr_array(np.outer(rng.random(900), np.arange(700) < 9))
    exact = np.linalg.svd(A.toarray())[1][:5]
    V = leading(A.tocsr(), 5)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-10)
    assert np.linalg.norm(A @ V) > 0.97 * np.linalg.norm(exact)


def test_dates_give_their_parts() -> None:
    days = np.datetime64("2020-02-28") + np.arange(30)
    prep = Preparation().fit({"d": days, "x": np.arange(30.0)})
    names = prep.feature_names_out()
    plain = ["d elapsed", "d month", "d day", "d weekday"]
    turning = [f"d {name} {wave}" for name in ("season", "weekday") for wave in ("sin", "cos")]
    assert names == [*plain, *turning, "x"]
    trees = Preparation(trees=True).fit({"d": days, "x": np.arange(30.0)})
    assert trees.feature_names_out() == [*plain, "x"]
    X = prep.transform({"d": days, "x": np.arange(30.0)})
    np.testing.assert_allclose(X[:, 0], X[:, -1], atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"shape \(1,\) for 60 rows"),
        ([-1.0] * 60, "not negative"),
        ([np.nan] * 60, "finite"),
        ([0.0] * 60, "zero for every row"),
    ],
)
def test_bad_weights(weights: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Preparation().fit(mixed(), sample_weight=weights)


def test_use_before_fit_and_nothing_to_use() -> None:
    with pytest.raises(DataError, match="learned nothing yet"):
        Preparation().transform(mixed())
    with pytest.raises(DataError, match="no usable feature"):
        Preparation().fit({"a": [1, 1, 1], "b": ["x"] * 3})
    with pytest.raises(DataError, match="max_categories must be"):
        Preparation(max_categories=1).fit(mixed())
    with pytest.raises(DataError, match="lacks the columns 'real'"):
        Preparation().fit(mixed()).transform({"whole": [1]})


numbers = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=30)


@given(numbers, st.data())
def test_weighted_statistics_equal_those_of_repeated_values(values: list[float], data) -> None:  # type: ignore[no-untyped-def]
    v = np.array(values)
    w = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(v), max_size=len(v))), float)
    if not w.any():
        w[0] = 1
    again = np.repeat(v, w.astype(int))
    assert median(*tally(v, w)) == median(*tally(again, None))
    assert mean_and_scale(*tally(v, w)) == mean_and_scale(*tally(again, None))
    assert median(*tally(again, None)) == pytest.approx(np.median(again), rel=1e-12, abs=1e-300)
    mean, scale = mean_and_scale(*tally(again, None))
    assert mean == pytest.approx(again.mean(), rel=1e-9, abs=1e-7)
    if again.std() > 1e-6 * np.abs(again).max():
        assert scale == pytest.approx(again.std(), rel=1e-6)


def test_days_between_dates_are_columns_of_their_own() -> None:
    start = np.datetime64("2020-01-01") + np.arange(40)
    stay = np.arange(40) % 7
    rows = {"from": start, "to": start + stay, "x": np.arange(40.0)}
    prep = Preparation(trees=True).fit(rows)
    assert prep.feature_names_out()[-1] == "to after from"
    assert prep.transform(rows)[:, -1].tolist() == stay.tolist()
    again = Preparation.from_state(json.loads(json.dumps(prep.to_state())))
    assert np.array_equal(again.transform(rows), prep.transform(rows))
    hole = {"from": [None, start[3]], "to": [start[0], start[5]], "x": [1.0, 2.0]}
    assert prep.transform(hole)[:, -1].tolist() == [3.0, 2.0]  # the median where one is missing
    assert "to after from" not in Preparation().fit({**rows, "to": start + 2}).feature_names_out()


def reviews(n: int = 80, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    words = {"pos": ["superb", "lovely", "crisp"], "neg": ["dull", "broken", "stale"]}
    y = rng.choice(["pos", "neg"], n)
    said = [
        f"The {rng.choice(words[k])} one, number {i}, was {rng.choice(words[k])}!"
        for i, k in enumerate(y)
    ]
    titles = [f"{rng.choice(words[k])} thing {rng.integers(0, 99)}" for k in y]
    return read({"said": said, "title": titles, "stars": rng.normal(size=n), "y": y}, target="y")


def test_terms_are_those_of_tfidf() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    from groundstate.data.preparation.terms import LENGTH, PAIRED, Terms

    texts = pl.Series([f"{t}. {t} Über-{i} a longer text than one hundred characters, "
                       "which is what it takes to be read by words and pairs alone"
                       for i, t in enumerate(reviews().frame["said"])])  # fmt: skip
    made, got = Terms.fit_transform(texts, None)
    peer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+", norm=None)
    X = peer.fit_transform(texts.to_list())
    names = [name.removeprefix("v: ") for name in made.names("v")]
    pairs = np.array([" " in name for name in names])
    held = np.asarray((X > 0).sum(0)).ravel()
    kept = {n for n, i in peer.vocabulary_.items() if held[i] > 1 or " " not in n}
    assert set(names) == kept and not len(made.pieces)
    want = X[:, [peer.vocabulary_[n] for n in names]].toarray()
    for block, length in ((~pairs, LENGTH), (pairs, PAIRED)):
        want[:, block] *= length / np.sqrt((want[:, block] ** 2).sum(1, keepdims=True))
    np.testing.assert_allclose(got.toarray(), want, atol=1e-12)


def test_short_texts_are_read_by_pieces_too() -> None:
    from groundstate.data.preparation.terms import Terms

    made, _ = Terms.fit_transform(pl.Series(["mild cheese", "mild chees", "hot"] * 2), None)
    assert " chee" in made.pieces.to_list() and "lld" not in made.pieces.to_list()
    unseen = made.transform(pl.Series(["cheesy", "", None, "…"])).toarray()
    assert unseen[0].any() and not unseen[1:].any()


@pytest.mark.parametrize("seed", range(3))
def test_terms_of_a_weight_of_two_are_those_of_the_row_twice(seed: int) -> None:
    table, rng = reviews(), np.random.default_rng(seed)
    times = rng.integers(0, 4, table.n_rows)
    weighed = Preparation(sparse=True).fit(table, times.astype(float))
    twice = Preparation(sparse=True).fit(table.take(np.repeat(np.arange(table.n_rows), times)))
    assert weighed.feature_names_out() == twice.feature_names_out()
    assert (weighed.transform(table) != twice.transform(table)).nnz == 0
    turned = Preparation(sparse=True).fit(table.take(rng.permutation(table.n_rows)), None)
    plain = Preparation(sparse=True).fit(table)
    assert abs(turned.transform(table) - plain.transform(table)).max() < 1e-12


def test_terms_of_some_rows_are_those_of_all_and_go_through_json() -> None:
    table = reviews()
    train, test = table.take(np.arange(50)), table.take(np.arange(50, 80))
    prep = Preparation(sparse=True)
    X = prep.fit_transform(train)
    assert scipy.sparse.issparse(X) and X.shape == (50, len(prep.feature_names_out()))
    assert abs(prep.transform(train) - X).max() < 1e-12
    rows = scipy.sparse.vstack([prep.transform(test.take([i])) for i in range(30)])
    assert abs(rows - prep.transform(test)).max() == 0
    again = Preparation.from_state(json.loads(json.dumps(prep.to_state())))
    assert abs(again.transform(test) - prep.transform(test)).max() == 0


def test_models_of_counts_get_numbers_from_zero_on() -> None:
    table = reviews()
    prep = Preparation(sparse=True, positive=True)
    X = prep.fit_transform(table.take(np.arange(50)))
    assert X.min() >= 0 and prep.transform(table).min() >= 0
    dense = Preparation(positive=True).fit_transform(
        mixed().select(["real", "whole", "word", "day"])
    )
    assert dense.min() == 0 and dense.max() == 1
