"""Networks that read the words of a table's texts in their order, beside its other columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import groundstate
from groundstate import LogisticRegression, TablePredictor, TextCNNClassifier, TextCNNRegressor
from groundstate.data import Preparation, read
from groundstate.data.preparation.words import Words
from groundstate.errors import DataError
from groundstate.nn.text.words import TextColumns, WordFeatures
from groundstate.study.candidates import shortlist
from groundstate.study.design import Size

GOOD, BAD = (
    ["good", "fine", "great", "lovely", "nice", "superb"],
    ["bad", "awful", "poor", "dull", "dire", "weak"],
)


def negated(n: int = 360, seed: int = 0) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Texts whose opinion "not", up to two words before, turns around; beside a number."""
    rng = np.random.default_rng(seed)
    y, turned = rng.integers(2, size=n), rng.integers(2, size=n)
    texts = []
    for label, other in zip(y, turned):
        said = rng.choice(GOOD if label != other else BAD)
        rest = rng.choice(
            ["the", "film", "the", "food", "we", "saw", "it", "was", "and", "then", "a", "day"], 6
        )
        adverb = rng.choice(["really", "so", ""])
        texts.append(" ".join([*rest[:3], f"not {adverb}" if other else adverb, said, *rest[3:]]))
    return {"said": texts, "price": rng.normal(size=n).tolist()}, np.where(y == 1, "yes", "no")


def test_words_are_numbered_by_weight_and_read_in_order() -> None:
    texts = pl.Series(["Red wine!", "red, red", "white wine", None])
    made = Words.fit(texts, None, 8)
    assert made.words.to_list() == ["red", "wine"] and made.length == 3
    assert made.transform(texts).tolist() == [[2, 3, 1], [2, 1, 2], [1, 3, 0], [0, 0, 0]]
    again = Words.from_state(made.to_state())
    assert np.array_equal(again.transform(texts), made.transform(texts))
    assert Words.fit(texts, None, 2).transform(texts)[0].tolist() == [2, 3]  # the first words
    twice = Words.fit(pl.concat([texts, texts]), None, 8)
    weighted = Words.fit(texts, np.full(4, 2.0), 8)
    assert twice.words.to_list() == weighted.words.to_list() and twice.length == weighted.length
    absent = Words.fit(texts, np.array([1.0, 1.0, 1.0, 0.0]), 8)
    assert absent.to_state() == made.to_state()


def test_where_words_stand_among_prepared_columns() -> None:
    rows, _ = negated(40)
    prep = Preparation(words=5).fit(read({"price": rows["price"], "said": rows["said"]}))
    ((first, behind),) = prep.word_columns()
    assert prep.feature_names_out()[first:behind] == [f"said: word {i}" for i in range(1, 6)]
    assert Preparation.from_state(prep.to_state()).word_columns() == prep.word_columns()


def test_features_are_sums_and_the_strongest_answers_of_filters() -> None:
    net = WordFeatures(9, 3, 4, generator=torch.Generator().manual_seed(0)).double().eval()
    with torch.no_grad():
        net.bias.copy_(torch.randn(4, generator=torch.Generator().manual_seed(1)))
    words = torch.tensor([[2, 3, 4, 5], [6, 7, 0, 0], [0, 0, 0, 0], [8, 0, 0, 0]])
    found = net(words)
    for got, row in zip(found, words):
        said = row[row > 0]
        if not len(said):
            assert not got.any()
            continue
        v = net.vectors[said]
        assert torch.allclose(got[:3], v.sum(0) / len(said) ** 0.5)
        near = torch.nn.functional.pad(v, (0, 0, 1, 1))
        answers = [
            (net.weight * near[t : t + 3]).sum((1, 2)) / 9**0.5 + net.bias for t in range(len(said))
        ]
        assert torch.allclose(got[3:], torch.stack(answers).relu().amax(0))
    longer = torch.nn.functional.pad(words, (0, 5))
    assert torch.allclose(net(longer), found)
    assert torch.allclose(net(words[[1]]), found[[1]])
    found.square().sum().backward()
    assert net.vectors.grad is not None and not net.vectors.grad[:2].any()  # no word, and unknown


def test_numbers_of_words_beyond_the_vocabulary_are_unknown_ones() -> None:
    net = TextColumns([(0, 2, 5)], dim=2, filters=2).eval()
    assert torch.equal(net(torch.tensor([[9.0, 2.0]])), net(torch.tensor([[1.0, 2.0]])))


def test_order_of_words_is_learned_where_a_bag_of_words_cannot_know_it() -> None:
    rows, y = negated()
    new, truth = negated(seed=1)
    read_in_order = TablePredictor(TextCNNClassifier(random_state=0)).fit(rows, y)
    bag = TablePredictor(LogisticRegression()).fit(rows, y)
    assert (read_in_order.predict(new) == truth).mean() > 0.9
    assert (bag.predict(new) == truth).mean() < 0.7


def test_numbers_beside_texts_are_used_and_texts_alone_suffice() -> None:
    rows, y = negated()
    price = np.array(rows["price"])
    values = (y == "yes") + price
    model = TablePredictor(TextCNNRegressor(random_state=0)).fit(rows, values)
    new, truth = negated(seed=1)
    target = (truth == "yes") + np.array(new["price"])
    assert model.score(new, target) > 0.9
    assert model.estimator_.texts == model.preparation_.word_columns() and not model.estimator.texts
    alone = TablePredictor(TextCNNClassifier(random_state=0)).fit({"said": rows["said"]}, y)
    assert alone.predict_proba({"said": new["said"]}).shape == (360, 2)


def test_unknown_words_empty_and_long_texts_have_an_answer() -> None:
    rows, y = negated()
    model = TablePredictor(TextCNNClassifier(random_state=0)).fit(rows, y)
    odd = {"said": ["", None, "qwertz uiop", "good " * 5000], "price": [0.0] * 4}
    p = model.predict_proba(odd)
    assert np.isfinite(p).all() and np.allclose(p.sum(1), 1) and np.array_equal(p[0], p[1])


def test_saved_loaded_explained_and_with_weights(tmp_path: Path) -> None:
    rows, y = negated(120)
    quick = TextCNNClassifier(max_iter=5, random_state=0)
    model = TablePredictor(quick).fit(rows, y)
    model.keep_background(rows).save(tmp_path / "model.gs")
    again = groundstate.load(tmp_path / "model.gs")
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
    why = again.explain({k: v[:2] for k, v in rows.items()})
    assert {part["column"] for part in why.top(0)} == {"said", "price"}
    twice = {k: [*v, *v] for k, v in rows.items()}
    schema = model.schema_  # repeated texts would be read as labels
    doubled = TablePredictor(quick, schema=schema).fit(twice, [*y, *y])
    weighted = TablePredictor(quick).fit(rows, y, sample_weight=np.full(120, 2.0))
    assert np.allclose(doubled.predict_proba(rows), weighted.predict_proba(rows), atol=1e-6)


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(DataError, match="names columns 1 to 9, but X has 2"):
        TextCNNClassifier([(1, 9)]).fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_lists_of_candidates_and_costs() -> None:
    assert shortlist("classification", text="only")[-1] == "TextCNNClassifier"
    assert "TextCNNRegressor" in shortlist("regression", text="some")
    assert "TextCNNClassifier" not in shortlist("classification")
    rows, y = negated(40)
    size = Size.of_table(read({**rows, "y": y.tolist()}, target="y"), np.unique(y))
    assert 7 <= size.words <= 9 and (size.rows, size.classes) == (40, 2)
    longer = Size(40, 3, 2, 300.0)
    assert longer.of(TextCNNClassifier()) > 2 * size.of(TextCNNClassifier())
    assert longer.of(LogisticRegression()) == size.of(LogisticRegression())
