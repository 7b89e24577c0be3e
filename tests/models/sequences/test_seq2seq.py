"""Seq2Seq: toy pairs learned exactly, files, tokenizers, scores, answers of the energy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import groundstate
from groundstate import Seq2Seq
from groundstate.data import Tokenizer
from groundstate.errors import DataError, ShapeError
from groundstate.nn import RecurrentSeq2Seq

WHO = {"I": "ich", "you": "du"}
DO = {"have": ("habe", "hast"), "see": ("sehe", "siehst")}
MANY = {"2": "2", "3": "3", "4": "4"}
WHAT = {"dogs": "Hunde", "cats": "Katzen", "birds": "Vögel"}


def pairs() -> tuple[list[str], list[str]]:
    """ "I have 3 dogs." and what it means."""
    found = [
        (f"{who} {do} {n} {what}.", f"{WHO[who]} {DO[do][who == 'you']} {n} {WHAT[what]} .")
        for who in WHO
        for do in DO
        for n in MANY
        for what in WHAT
    ]
    return [a for a, _ in found], [b for _, b in found]


def quick(network: Any = "rnn", **settings: Any) -> Seq2Seq:
    sizes = {
        "rnn": {"dim": 16, "hidden": 32},
        "transformer": {"dim": 32, "heads": 2, "layers": 1, "dropout": 0.0},
    }
    given = {"lr": 1e-2, "max_epochs": 40, "val_fraction": 0.0, "random_state": 0}
    own = sizes.get(network) if isinstance(network, str) else None
    return Seq2Seq(network, **{"network_params": own, **given, **settings})


@pytest.fixture(scope="module")
def fitted() -> Seq2Seq:
    return quick().fit(*pairs())


@pytest.mark.parametrize("network", ["rnn", "transformer"])
def test_toy_pairs_are_learned_exactly(network: str, fitted: Seq2Seq) -> None:
    X, y = pairs()
    model = fitted if network == "rnn" else quick(network).fit(X, y)
    assert model.predict(X).tolist() == y
    assert model.score(X, y) == pytest.approx(100.0)
    assert model.set_params(metric="exact").score(X, y) == 1.0
    model.set_params(metric="bleu")


def test_a_fixed_context_can_be_asked_for() -> None:
    X, y = pairs()
    model = quick(attention=False, max_epochs=2).fit(X, y)
    assert model.network_.kind is False
    assert quick(attention="additive", max_epochs=2).fit(X, y).network_.kind == "additive"


@pytest.mark.slow
def test_words_are_written_backwards() -> None:
    """The reverse task with attention: at least .95 of the tokens of new rows."""
    rng = np.random.default_rng(0)
    rows = [rng.choice(list("abcdefgh"), rng.integers(3, 8)) for _ in range(700)]
    X, y = [" ".join(r) for r in rows], [" ".join(r[::-1]) for r in rows]
    model = quick(lr=5e-3, max_epochs=30, network_params=None).set_params(
        network__dim=16, network__hidden=48
    )
    found = model.fit(X[:600], y[:600]).predict(X[600:])
    hits = [a == b for one, two in zip(found, y[600:]) for a, b in zip(one.split(), two.split())]
    total = sum(len(two.split()) for two in y[600:])
    assert sum(hits) / total >= 0.95


def test_files_of_pairs(tmp_path: Path) -> None:
    X, y = pairs()
    tsv, jsonl = tmp_path / "a.tsv", tmp_path / "a.jsonl"
    tsv.write_text("".join(f"{a}\t{b}\n" for a, b in zip(X, y)), encoding="utf-8")
    lines = [json.dumps({"source": a, "target": b}) for a, b in zip(X, y)]
    jsonl.write_text("\n".join(lines), encoding="utf-8")
    one, two, three = (quick(max_epochs=2).fit(*given) for given in ((X, y), (tsv,), (jsonl,)))
    for a, b, c in zip(*(m.energy_.state_dict().values() for m in (one, two, three))):
        assert torch.equal(a, b) and torch.equal(a, c)


def test_tokenizers_of_their_own_shared_or_given() -> None:
    X, y = pairs()
    apart = quick(max_epochs=1).fit(X, y)
    assert "Hunde" in apart.target_tokenizer_ and "Hunde" not in apart.tokenizer_
    shared = quick(max_epochs=1, shared=True).fit(X, y)
    assert shared.tokenizer_ is shared.target_tokenizer_ and "Hunde" in shared.tokenizer_
    special = ["[PAD]", "[BOS]", "[EOS]"]
    own = Tokenizer.train(texts=X + y, kind="char", special_tokens=special)
    assert quick(max_epochs=1, tokenizer=own).fit(X, y).tokenizer_ is own
    mixed = quick(max_epochs=1, target_tokenizer="char").fit(X, y)
    assert mixed.tokenizer_.kind == "word" and mixed.target_tokenizer_.kind == "char"
    with pytest.raises(DataError, match=r"'\[PAD\]' is no token"):
        quick(tokenizer=Tokenizer.train(texts=X, kind="word")).fit(X, y)


def test_saved_and_loaded(fitted: Seq2Seq, tmp_path: Path) -> None:
    X, y = pairs()
    loaded = groundstate.load(fitted.save(tmp_path / "model.gs"))
    assert loaded.predict(X[:5]).tolist() == fitted.predict(X[:5]).tolist()
    assert np.array_equal(loaded.log_prob(X[:5], y[:5]), fitted.log_prob(X[:5], y[:5]))


def test_the_energy_says_what_fits(fitted: Seq2Seq) -> None:
    X, y = pairs()
    right, wrong = fitted.energy(X, y), fitted.energy(X, y[::-1])
    assert (right < wrong).all() and (right >= 0).all()
    assert np.allclose(fitted.log_prob(X, y), -right)
    assert fitted.infer({"x": X[:3]}, "y").tolist() == y[:3]
    drawn = fitted.sample(X[:2], 4, random_state=0)
    assert drawn.shape == (2, 4) and drawn[0, 0] == y[0]
    assert (drawn == fitted.sample(X[:2], 4, random_state=0)).all()


def test_where_it_looked(fitted: Seq2Seq) -> None:
    X, y = pairs()
    found = fitted.alignment(X[0])
    assert found.source[-1] == found.target[-1] == "[EOS]"
    assert found.weights.shape == (len(found.target), len(found.source))
    assert np.allclose(found.weights.sum(1), 1, atol=1e-5)
    assert len(found.plot().get_xticks()) == len(found.source)
    assert fitted.alignment(X[0], y[1]).target != found.target


def test_a_network_by_hand_and_a_function() -> None:
    X, y = pairs()
    model = quick(RecurrentSeq2Seq, max_epochs=1)
    model.set_params(network__dim=8, network__hidden=12).fit(X, y)
    assert model.network_.hidden == 12
    sizes = (model.tokenizer_.size, model.target_tokenizer_.size)
    again = quick(RecurrentSeq2Seq(*sizes, 8, 12), max_epochs=1).fit(X, y)
    assert again.predict(X[:1]).shape == (1,)


def test_unknown_words_and_empty_sources_are_answered(fitted: Seq2Seq) -> None:
    assert fitted.predict(["", "unheard words"]).shape == (2,)
    assert fitted.predict(X=[]).shape == (0,)


def test_weights_of_the_score(fitted: Seq2Seq) -> None:
    X, y = pairs()
    wrong = [*y[:2], "nein doch nicht so ."]
    twice = fitted.score([*X[:3], X[2]], [*wrong, wrong[2]])
    assert fitted.score(X[:3], wrong, sample_weight=[1, 1, 2]) == pytest.approx(twice)


def test_what_is_refused(fitted: Seq2Seq) -> None:
    with pytest.raises(ShapeError, match="X has 2 rows, y has 1"):
        quick().fit(["a", "b"], ["c"])
    with pytest.raises(DataError, match="targets of Seq2Seq are texts: row 0 is int"):
        quick().fit(["a", "b"], [1, 2])
    with pytest.raises(ValueError, match="requires y"):
        quick().fit(["a", "b"])
    with pytest.raises(ValueError, match="seq2seq_rnn"):
        quick("lenet").fit(["a", "b"], ["c", "d"])
    with pytest.raises(ShapeError, match="X has 1 rows, y has 2"):
        fitted.score(["a"], ["b", "c"])
