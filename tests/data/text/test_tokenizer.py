"""Tokens of texts: lossless where promised, the worked example, the peer's merges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from groundstate.compute.rows import Texts
from groundstate.data import Tokenizer, read_texts, reference_bpe
from groundstate.errors import DataError, StoreError
from groundstate.store import dumps, loads

WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
TEXTS = ["the cat sat on the mat", "A cat; and a dog!", "größe 猫 \n\t x"]


def test_the_worked_example() -> None:
    found = reference_bpe(WORDS, vocab_size=18)
    assert found.tokens[10:] == ["es", "est", "lo", "low", "ew", "new", "newest", "dest"]
    assert found.counts == [9, 9, 7, 7, 6, 6, 6, 3]
    assert found.lengths == [79, 70, 61, 54, 47, 41, 35, 29, 26]
    assert found.encode("lowest") == ["low", "est"]


def test_merges_stop_where_pairs_are_rare() -> None:
    assert reference_bpe({"aaaa": 1, "b": 9}, 99).lengths == [13, 11]  # aa twice, then once
    assert reference_bpe({"ab": 1}, 99).merges == {}
    assert reference_bpe({"ab": 1}, 99, min_frequency=1).tokens == ["a", "b", "ab"]


def test_merges_are_those_of_the_peer() -> None:
    rust = tokenizers.Tokenizer(tokenizers.models.BPE())
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=18, show_progress=False)
    rust.train_from_iterator([" ".join([w] * n) for w, n in WORDS.items()], trainer)
    merges = [tuple(m) for m in json.loads(rust.to_str())["model"]["merges"]]
    ours = reference_bpe(WORDS, 18)
    assert merges == [(ours.tokens[a], ours.tokens[b]) for a, b in ours.merges]


def test_words() -> None:
    text = "The chef cooked a meal for the critic."
    tokenizer = Tokenizer.train(texts=[text], kind="word")
    assert len(tokenizer.encode(text)) == 9
    assert tokenizer.encode("the soup") == [tokenizer.number("the"), 0]
    assert tokenizer.decode(tokenizer.encode("a critic.")) == "a critic ."
    lower = Tokenizer.train(texts=[text], kind="word", lowercase=True)
    assert lower.size == tokenizer.size - 1 and lower.encode("THE") == lower.encode("the")


@given(st.text())
@settings(max_examples=60, deadline=None)
def test_bytes_lose_nothing(text: str) -> None:
    tokenizer = Tokenizer.train(texts=[], kind="byte", special_tokens=["<end>"])
    assert tokenizer.decode(tokenizer.encode(text), skip_special=False) == text


def test_characters() -> None:
    tokenizer = Tokenizer.train(texts=TEXTS, kind="char")
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode("%") == [0]
    assert tokenizer.decode([0, 1], skip_special=False).startswith("[UNK]")


def test_special_tokens_are_never_cut() -> None:
    special = ["[PAD]", "[MASK]"]
    tokenizer = Tokenizer.train(texts=TEXTS, kind="word", special_tokens=special)
    assert tokenizer.vocabulary[:3] == ("[UNK]", "[PAD]", "[MASK]") == tokenizer.special
    cat = tokenizer.number("cat")
    assert tokenizer.encode("cat[MASK] cat") == [cat, 2, cat]
    assert tokenizer.decode([cat, 2]) == "cat"
    with pytest.raises(DataError, match=r"\[CLS\].*special_tokens"):
        tokenizer.number("[CLS]")


def test_a_weight_of_two_is_the_text_twice() -> None:
    texts = Texts.of(["a b", "b c", "d"])
    weighted = Tokenizer.train(texts=texts, kind="word", weight=[2.0, 1.0, 0.0])
    assert weighted == Tokenizer.train(texts=texts[[1, 0, 0]], kind="word")
    assert weighted.vocabulary[1:] == ("b", "a", "c")
    assert Tokenizer.train(texts=texts, kind="word", vocab_size=2).vocabulary[1:] == ("b",)


def test_one_hot_and_rows() -> None:
    tokenizer = Tokenizer.train(texts=TEXTS, kind="word")
    hot = tokenizer.one_hot([2, 0])
    assert hot.shape == (tokenizer.size, 2) and hot.argmax(0).tolist() == [2, 0]
    rows = tokenizer.encode(TEXTS)
    assert [r.tokens.values.tolist() for r in rows.split([1, 1, 1])] == [
        tokenizer.encode(t) for t in TEXTS
    ]
    ids, word = tokenizer.encode_words(["cat", "sat;", "猫"])
    assert word == [0, 1, 1, 2] and tokenizer.decode(ids[:2]) == "cat sat"


@pytest.mark.parametrize("kind", ["word", "char", "byte", "bpe", "wordpiece", "unigram"])
def test_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(texts=TEXTS * 5, kind=kind, special_tokens=["<end>"])  # type: ignore[arg-type]
    path = tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert path.name == "tokenizer.json" and loaded == tokenizer == loads(dumps(tokenizer))
    assert loaded.encode(TEXTS[1]) == tokenizer.encode(TEXTS[1])
    assert loaded.special == tokenizer.special and loaded.vocabulary == tokenizer.vocabulary


@pytest.mark.parametrize("kind", ["word", "char", "byte"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_peer_reads_our_files(kind: str, lowercase: bool, tmp_path: Path) -> None:
    ours = Tokenizer.train(
        texts=TEXTS, kind=kind, special_tokens=["<end>"], lowercase=lowercase  # type: ignore[arg-type]
    )  # fmt: skip
    theirs = tokenizers.Tokenizer.from_file(str(ours.save(tmp_path)))
    for text in [*TEXTS, "a <end>CAT%", ""]:
        assert theirs.encode(text).ids == ours.encode(text)
        ids = ours.encode(text)
        assert theirs.decode(ids, skip_special_tokens=False) == ours.decode(ids, skip_special=False)


def test_learned_merges_lose_nothing() -> None:
    texts = ["to be or not to be, that is the question"] * 4
    tokenizer = Tokenizer.train(texts=texts, vocab_size=280, special_tokens=["<end>"])
    assert tokenizer.size == 280 and tokenizer.special == ("<end>",)
    for text in [*TEXTS, "to be"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(texts[0])) < len(texts[0]) / 2
    with pytest.raises(DataError, match="whole texts"):
        Tokenizer.train(texts=texts, weight=[0.5] * 4)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("to be")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.jsonl").write_text('{"text": "or"}\n\n"not"\n')
    assert read_texts(tmp_path).strings() == ["to be", "or", "not"]
    assert "not" in Tokenizer.train(tmp_path, "word")
    (tmp_path / "c.jsonl").write_text("{}")
    with pytest.raises(DataError, match=r"line 1 .* has no text"):
        read_texts(tmp_path)
    (tmp_path / "c.jsonl").write_text("{")
    with pytest.raises(DataError, match="is no JSON"):
        read_texts(tmp_path / "c.jsonl")
    (tmp_path / "d.txt").write_bytes(b"\xff")
    with pytest.raises(DataError, match="UTF-8"):
        read_texts([tmp_path / "d.txt"])
    with pytest.raises(DataError, match="no file or folder"):
        read_texts(tmp_path / "none")


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="kind must be one of"):
        Tokenizer.train(texts=TEXTS, kind="letters")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="either files or texts"):
        Tokenizer.train()
    with pytest.raises(DataError, match="no word"):
        Tokenizer.train(texts=[" "], kind="word")
    with pytest.raises(DataError, match="leaves no room"):
        Tokenizer.train(texts=TEXTS, kind="word", vocab_size=1)
    with pytest.raises(DataError, match="need vocab_size 256"):
        Tokenizer.train(texts=TEXTS, kind="byte", vocab_size=100)
    with pytest.raises(DataError, match="token 7 is not in"):
        Tokenizer.train(texts=["a"], kind="char").decode(torch.tensor([7]))
    with pytest.raises(StoreError, match="holds no tokenizer"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("[]")
    with pytest.raises(StoreError, match="names no model"):
        Tokenizer.load(tmp_path)
