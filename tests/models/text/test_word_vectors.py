"""Word vectors: gradients, recovered counts, neighbours by context, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from groundstate.compute.random import Key
from groundstate.data import make_relations
from groundstate.data.builtin.texts import analogies
from groundstate.errors import DataError
from groundstate.models.text import WordVectors
from groundstate.models.text.word_vectors import pair_counts
from groundstate.models.text.word_vectors_numba import windows

TEXTS = make_relations(2000)


@pytest.fixture(scope="module", params=["sgns", "cbow"])
def model(request: pytest.FixtureRequest) -> WordVectors:
    return WordVectors(request.param, dim=30, max_epochs=20, random_state=0).fit(TEXTS)


@pytest.mark.parametrize("cbow", [False, True])
def test_a_step_follows_the_gradient_of_the_loss(cbow: bool) -> None:
    rng = np.random.default_rng(0)
    u, v = (rng.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
    tu, tv = torch.tensor(u, dtype=torch.float64), torch.tensor(v, dtype=torch.float64)
    rate = 0.1
    # words 0 and 1 are neighbours; all drawn words are 2
    for word, target in ((1, 0), (0, 1)):
        tu, tv = tu.detach().requires_grad_(), tv.detach().requires_grad_()
        loss = -torch.nn.functional.logsigmoid(tu[word] @ tv[target])
        loss = loss - torch.nn.functional.logsigmoid(-(tu[word] @ tv[2]))
        gu, gv = torch.autograd.grad(loss, (tu, tv))
        tu, tv = tu - rate * gu, tv - rate * gv
        assert (gu[[i for i in range(3) if i != word]] == 0).all()  # used rows alone move
    windows(
        np.array([0, 1]), np.array([0, 2]), np.ones(3), np.array([0.0, 0.0, 1.0]), u, v, 1, 1, rate,
        1, cbow, 1,
    )  # fmt: skip
    assert np.allclose(u, tu.detach().numpy(), atol=1e-5)
    assert np.allclose(v, tv.detach().numpy(), atol=1e-5)


def test_counts_of_a_log_bilinear_table_are_recovered() -> None:
    rng = np.random.default_rng(0)
    w, c = (rng.normal(size=(25, 2)) for _ in range(2))
    logs = w @ c.T + 4.0
    model = WordVectors("glove", dim=3, max_epochs=3000)
    model._fit_counts(sp.coo_array(np.exp(logs)), 0.1, Key.of(0))
    found = model.vectors_ @ model.context_.T + model.bias_[:, None] + model.context_bias_
    assert (
        np.abs(found - logs).max() < 0.1 and np.corrcoef(found.ravel(), logs.ravel())[0, 1] > 0.999
    )


def test_pairs_are_counted_within_texts_and_by_distance() -> None:
    found = pair_counts(np.array([0, 1, 2, 0]), np.array([0, 3, 4]), 2, 3).toarray()
    assert np.allclose(found, [[0, 1, 0.5], [1, 0, 1], [0.5, 1, 0]])


def test_words_with_the_same_neighbours_are_near(model: WordVectors) -> None:
    unit = dict(zip(model.vocabulary_, model._unit(), strict=True))
    countries = np.array([unit[w] for w in ("france", "spain", "italy", "poland")])
    people = np.array([unit[w] for w in ("king", "boy", "uncle", "monk")])
    assert (countries @ countries.T).min() > (countries @ people.T).max()
    assert model.analogies(analogies()) >= 0.8
    names = [w for w, _ in model.most_similar(["king", "woman"], ["man"], top=1000)]
    assert not {"king", "woman", "man"} & set(names)
    assert len(names) == len(model.vocabulary_) - 3


def test_glove_puts_sides_of_a_pair_together() -> None:
    model = WordVectors("glove", dim=20, max_epochs=60, random_state=0).fit(TEXTS)
    unit = model._unit()
    near = float(unit[model._number("king")] @ unit[model._number("prince")])
    far = float(unit[model._number("king")] @ unit[model._number("amber")])
    assert near > far


def test_same_seed_same_vectors_and_other_inputs() -> None:
    a = WordVectors(dim=8, max_epochs=1, random_state=3).fit(TEXTS)
    b = WordVectors(dim=8, max_epochs=1, random_state=3).fit([t.split() for t in TEXTS])
    assert np.array_equal(a.vectors_, b.vectors_) and a.vocabulary_ == b.vocabulary_
    rows = a.transform(["the king", "zzz"])
    assert np.allclose(rows[0], (a["the"] + a["king"]) / 2, atol=1e-6) and not rows[1].any()
    one_hot = np.eye(len(a.vocabulary_), dtype=np.float32)[[4, 2]]
    assert np.array_equal(one_hot @ a.vectors_, a.vectors_[[4, 2]])


def test_files_of_word2vec(model: WordVectors, tmp_path: Path) -> None:
    loaded = WordVectors.load(model.save(tmp_path / "vectors.txt"))
    assert loaded.vocabulary_ == model.vocabulary_
    assert np.array_equal(loaded.vectors_, model.vectors_)
    assert loaded.most_similar("king") == model.most_similar("king")
    (tmp_path / "bad.txt").write_text("king 0.1 0.2\n")
    with pytest.raises(DataError, match="expected two numbers"):
        WordVectors.load(tmp_path / "bad.txt")


def test_mistakes_are_named(model: WordVectors) -> None:
    with pytest.raises(DataError, match="no word of this vocabulary"):
        model.most_similar("xylophone")
    with pytest.raises(ValueError, match="method"):
        WordVectors("lsa").fit(TEXTS)
    with pytest.raises(DataError, match="no word"):
        WordVectors(min_count=10**9).fit(TEXTS)
