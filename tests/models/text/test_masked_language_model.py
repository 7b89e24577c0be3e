"""Masked language models: mask rates, exchanged sentences, gaps, pseudo-likelihood, checkpoints."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone

import groundstate
from groundstate import LanguageModel, MaskedLanguageModel, TextClassifier, TextTagger
from groundstate.compute.rows import Ragged, Texts, Tokens
from groundstate.data import Tokenizer, make_reviews
from groundstate.data.text.pieces import sentence_pairs
from groundstate.errors import DataError
from groundstate.learn.rules.masked import MaskedTokens
from groundstate.math.sequences.spans import span_f1

SMALL: dict[str, Any] = {"dim": 32, "layers": 1, "heads": 2, "dropout": 0.0, "random_state": 0}
TEXTS, OPINIONS, _ = make_reviews(200)


@pytest.fixture(scope="module")
def model() -> MaskedLanguageModel:
    return MaskedLanguageModel(**SMALL, lr=0.005, max_epochs=50, patience=None).fit(TEXTS)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_mask_rates_are_those_asked_for() -> None:
    n, vocab = 40_000, 1000
    values = torch.randint(5, vocab, (n,), generator=generator())
    values[::10] = 2
    rows = Tokens.of(Ragged(values, torch.arange(0, n + 1, 20)))
    rule = MaskedTokens(4, (0, 1, 2, 3, 4), vocab)
    for source in (generator(1), None):
        x, y = rule.hide(rows, source)
        assert not (y.values == 2).any()
        assert torch.equal(y.values, values[x.places])
        free, gaps = 0.9 * n, len(y.values)
        assert abs(gaps / free - 0.15) < 3 * math.sqrt(0.15 * 0.85 / free)
        seen = x.tokens.values[x.places]
        masked = float((seen == 4).float().mean())
        kept = float((seen == y.values).float().mean())
        assert abs(masked - 0.8) < 3 * math.sqrt(0.16 / gaps)
        assert abs(kept - 0.1) < 3 * math.sqrt(0.09 / gaps) + 1 / vocab
        others = torch.ones(n, dtype=torch.bool)
        others[x.places] = False
        assert torch.equal(x.tokens.values[others], values[others])
    again, _ = rule.hide(rows[[3, 3, 7]], None)
    assert torch.equal(*again.tokens.split([1, 1, 1])[0:1][0].values[None].expand(2, -1))


def test_half_of_the_second_sentences_are_exchanged() -> None:
    rows = Tokens.of(Ragged.of([[2, 10 + i, 3, 50 + i, 70 + i, 3] for i in range(20)] * 50))
    rule = MaskedTokens(4, (0, 1, 2, 3, 4), 99, nsp=True, separator=3)
    made, swapped = rule.exchange(rows, generator())
    table = made.tokens.values.view(-1, 6)
    before = rows.tokens.values.view(-1, 6)
    assert torch.equal(table[:, :3], before[:, :3])
    assert torch.equal(table[~swapped], before[~swapped])
    assert torch.equal(table[:, 3] + 20, table[:, 4])
    assert abs(float(swapped.float().mean()) - 0.5) < 3 * math.sqrt(0.25 / 1000)
    differs = (table[swapped, 3] != before[swapped, 3]).float().mean()
    assert float(differs) > 0.9  # of equal rows an exchange changes nothing


def test_the_loss_is_the_energy_of_the_gaps(model: MaskedLanguageModel) -> None:
    rows = model._prepared(Texts.of(TEXTS[:5]))
    rule = model._rule(2.0)
    x, y = rule.hide(rows, None)
    with torch.no_grad():
        loss = rule(model.energy_, {"x": rows}).loss
        assert torch.allclose(loss, model.energy_(x=x, y=y) / 2, atol=1e-5)


def test_it_learns_more_than_the_frequencies_of_words(model: MaskedLanguageModel) -> None:
    words = Counter(w for t in TEXTS for w in t.split())
    p = np.array(list(words.values())) / words.total()
    assert -model.score(TEXTS[:50]) < 0.8 * -(p @ np.log(p))
    found = model.fill_mask("the soup was really [MASK] .")
    assert len(found) == 5 and found[0][1] >= found[1][1] and 0 < found[0][1] <= 1
    two = model.fill_mask("the [MASK] was [MASK] good .", top=2)
    assert len(two) == 2 and len(two[0]) == 2
    best = {w for w, _ in model.fill_mask("in the end the soup was [MASK] fine .", top=6)}
    assert len(best & {"really", "quite", "rather", "so", "simply", "truly"}) >= 4
    with pytest.raises(DataError, match=r"no \[MASK\]"):
        model.fill_mask("the soup")
    with pytest.raises(DataError, match="has 201 tokens, the model reads 126 at once; shorten it"):
        model.fill_mask("the " * 200 + "[MASK]")


def test_pseudo_likelihood_asks_for_every_token(model: MaskedLanguageModel) -> None:
    text = "the soup was fine ."
    words = text.split()
    total = 0.0
    for i, word in enumerate(words):
        masked = " ".join([*words[:i], "[MASK]", *words[i + 1 :]])
        p = dict(model.fill_mask(masked, top=10**6))
        total -= math.log(p[word])
    assert model.energy([text])[0] == pytest.approx(total, abs=1e-3)
    assert model.score([text]) == pytest.approx(-total / 5, abs=1e-3)
    assert model.transform([text, "a"]).shape == (2, 32)


def test_pairs_of_sentences() -> None:
    words = Tokenizer.train(texts=TEXTS, kind="word", special_tokens=["[CLS]", "[SEP]"])
    texts = Texts.of(["the soup . the wine . the end", "one", "the bread ! fine"])
    rows, owner = sentence_pairs(texts, words, 20, 1, 2)
    assert owner.tolist() == [0, 0, 2]
    assert words.decode(rows[0].tokens.values, skip_special=False) == (
        "[CLS] the soup . [SEP] the wine . [SEP]"
    )
    with pytest.raises(DataError, match="two sentences"):
        sentence_pairs(Texts.of(["one"]), words, 20, 1, 2)


def test_next_sentences_are_learned_beside_words() -> None:
    model = MaskedLanguageModel(True, **SMALL, lr=0.01, max_epochs=3).fit(TEXTS)
    assert model.network_.nsp and model.network_.follow is not None
    assert np.isfinite(model.energy(TEXTS[:3])).all()
    p = model.follows(["the soup", "the wine"], ["the bread was fine", "the end"])
    assert p.shape == (2,) and ((p > 0) & (p < 1)).all()
    assert np.allclose(model.follows(["the wine"], ["the end"]), p[1:], atol=1e-6)
    with pytest.raises(DataError, match="no pairs"):
        model.follows(["one"], [])
    with pytest.raises(DataError, match="two sentences"):
        MaskedLanguageModel(True, **SMALL).fit(["one", "two"])


def test_saved_and_cut_texts(model: MaskedLanguageModel, tmp_path: Path) -> None:
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    assert np.array_equal(loaded.energy(TEXTS[:3]), model.energy(TEXTS[:3]))
    short = MaskedLanguageModel(**SMALL, context=8, max_epochs=1).fit(TEXTS)
    assert np.isfinite(short.energy(TEXTS[:3])).all()


def test_a_classifier_starts_from_a_base(model: MaskedLanguageModel, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"lr": 3e-3, "max_epochs": 8, "dropout": 0.0, "random_state": 0}
    fitted = TextClassifier(model, **settings).fit(TEXTS, OPINIONS)
    assert fitted.score(TEXTS, OPINIONS) > 0.85
    assert fitted.tokenizer_ == model.tokenizer_
    before = model.energy(TEXTS[:3])
    assert np.array_equal(before, model.energy(TEXTS[:3]))  # the base is left as it was
    again = clone(fitted)
    assert again.base is model and again.fit(TEXTS, OPINIONS).score(TEXTS, OPINIONS) > 0.85
    loaded = groundstate.load(fitted.save(tmp_path / "c.gs"))
    assert loaded.base is None
    assert np.array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    path = model.save(tmp_path / "base.gs")
    assert np.allclose(
        TextClassifier(path, **settings).fit(TEXTS, OPINIONS).predict_proba(TEXTS[:9]),
        fitted.predict_proba(TEXTS[:9]), atol=1e-5,
    )  # fmt: skip
    with pytest.raises(ValueError, match="fit it first"):
        TextClassifier(MaskedLanguageModel()).fit(TEXTS, OPINIONS)
    with pytest.raises(ValueError, match="expected a MaskedLanguageModel"):
        TextClassifier(fitted).fit(TEXTS, OPINIONS)


def test_two_classes_are_a_sigmoid_of_the_difference() -> None:
    model = TextClassifier(**SMALL, max_epochs=2).fit(TEXTS, OPINIONS)
    with torch.no_grad():
        f = model.network_(model._rows(TEXTS[:7])[0])
    p = 1 / (1 + np.exp(-(f[:, 1] - f[:, 0]).double().numpy()))
    assert np.allclose(model.predict_proba(TEXTS[:7])[:, 1], p, atol=1e-6)


def test_several_labels_of_a_text(tmp_path: Path) -> None:
    texts = [f"{a} {b}" for a in ("red", "blue", "green") for b in ("car", "boat", "dog")] * 6
    y = np.array([["red" in t, "boat" in t, "dog" in t] for t in texts]).astype(int)
    how: Any = {"lr": 0.01, "max_epochs": 40, "val_fraction": 0, "patience": None}
    model = TextClassifier(network="gru_lm", **SMALL, **how)
    assert model.fit(texts, y).score(texts, y) > 0.95
    p = model.predict_proba(["red boat"])[0]
    assert p[0] > 0.5 and p[1] > 0.5 and p[2] < 0.5
    loaded = groundstate.load(model.save(tmp_path / "labels.gs"))
    assert np.array_equal(loaded.predict(texts), model.predict(texts))
    assert np.allclose(
        np.exp(model.predict_log_proba(texts)), model.predict_proba(texts), atol=1e-5
    )


@pytest.mark.parametrize("network", ["gpt", "gru"])
def test_a_causal_base(network: str) -> None:
    base = LanguageModel(network, 64, tokenizer="word", dim=16, layers=1, heads=2, max_epochs=2,
                         random_state=0).fit(TEXTS)  # fmt: skip
    model = TextClassifier(base, lr=1e-2, max_epochs=8, dropout=0.0, random_state=0)
    assert model.fit(TEXTS, OPINIONS).score(TEXTS, OPINIONS) > 0.8
    alone, batch = model.predict_proba(TEXTS[:1]), model.predict_proba(TEXTS[:9])
    assert np.allclose(alone, batch[:1], atol=1e-5)


def tagged(text: str) -> list[str]:
    """Things and opinions as spans."""
    words, out = text.split(), []
    for i, word in enumerate(words):
        before = words[i - 1] if i else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        out.append("B-thing" if after == "was" and before == "the" else
                   "B-opinion" if after == "." and word != "." else "O")  # fmt: skip
    return out


def test_a_tagger_finds_spans(model: MaskedLanguageModel, tmp_path: Path) -> None:
    y = [tagged(t) for t in TEXTS]
    found = TextTagger(model, lr=3e-3, max_epochs=6, random_state=0).fit(TEXTS, y)
    assert found.score(TEXTS, y) == span_f1(y, found.predict(TEXTS)).f1 > 0.95
    shares = found.predict_proba(TEXTS[:3])
    assert [p.shape for p in shares] == [(len(tags), len(found.classes_)) for tags in y[:3]]
    e = [sum(-np.log(p[list(found.classes_).index(t)]) for p, t in zip(rows, tags, strict=True))
         for rows, tags in zip(shares, y, strict=False)]  # fmt: skip
    assert np.allclose(found.energy(TEXTS[:3], y[:3]), e, atol=1e-4)
    words = [t.split() for t in TEXTS[:3]]
    assert found.predict(words) == found.predict(TEXTS[:3])
    assert found.energy(TEXTS[:3], y[:3]).shape == (3,)
    worse = [["O"] * len(tags) for tags in y[:3]]
    assert (found.energy(TEXTS[:3], worse) > found.energy(TEXTS[:3], y[:3])).all()
    loaded = groundstate.load(found.save(tmp_path / "t.gs"))
    assert loaded.predict(words) == found.predict(words)
    with pytest.raises(DataError, match="text 0 has 18 words and 1 tags"):
        TextTagger().fit(TEXTS[:1], [["O"]])
    with pytest.raises(DataError, match="no list of words"):
        TextTagger().fit([["a b"]], [["O"]])


def test_first_sub_words_carry_the_label_and_long_texts_are_read_in_part() -> None:
    X, y = ["ab abc", "abc ab"] * 10, [["two", "three"], ["three", "two"]] * 10
    model = TextTagger(tokenizer="char", context=8, dim=16, layers=2, heads=2, dropout=0.0, lr=1e-2,
                       max_epochs=60, patience=None, val_fraction=0.0, random_state=0)  # fmt: skip
    assert model.fit(X, y).score(X, y) == 1.0
    rows = model._prepared(Texts.of(["ab abc"]))
    assert rows.gaps.values.tolist() == [1, 3]
    long = model.predict(["ab abc ab abc"])[0]
    assert len(long) == 4 and set(long[3:]) <= {"two", "three"}
    assert np.allclose(model.predict_proba(["ab abc ab abc"])[0][-1], [0.5, 0.5])
    assert TextTagger.upgrade_learned({"classes_": ["a", "b"], "most_frequent_": 1})[
        "shares_"
    ].tolist() == [0, 1]


def test_a_word_of_which_nothing_is_left_keeps_its_place() -> None:
    """BERT's tokenizer drops control characters, and with them whole words."""
    X, y = ["ab abc", "abc ab"] * 10, [["two", "three"], ["three", "two"]] * 10
    words = Tokenizer.train(
        texts=X, kind="wordpiece", vocab_size=40,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    )  # fmt: skip
    unknown = words.number("[UNK]")
    ids, place = words.encode_words(["ab", "\u200b", "abc"])
    assert place == [0, 1, 2] and ids[1] == unknown
    model = TextTagger(tokenizer=words, context=8, dim=16, layers=2, heads=2, dropout=0.0, lr=1e-2,
                       max_epochs=40, patience=None, val_fraction=0.0, random_state=0)  # fmt: skip
    found = model.fit(X, y).predict(["ab \u200b abc"])[0]
    assert [found[0], found[2]] == ["two", "three"]


def test_weights_of_texts_count_for_frequent_tags() -> None:
    X, y = ["a b", "b b", "a a"] * 4, [["x", "y"], ["y", "y"], ["x", "x"]] * 4
    model = TextTagger(
        context=8, dim=8, layers=1, heads=1, max_epochs=1, val_fraction=0.0, random_state=0
    )
    twice = model.fit(X, y, [1.0, 2.0, 0.0] * 4)
    assert twice.shares_.tolist() == pytest.approx([1 / 6, 5 / 6])


def test_labelled_files(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    lines = [f'"{t}",{o}' for t, o in zip(TEXTS, OPINIONS, strict=True)]
    table.write_text("\n".join(["text,label", *lines]))
    a = TextClassifier(**SMALL, max_epochs=2).fit(str(table))
    b = TextClassifier(**SMALL, max_epochs=2).fit(TEXTS, OPINIONS)
    assert np.array_equal(a.predict_proba(TEXTS), b.predict_proba(TEXTS))
    rows = tmp_path / "reviews.jsonl"
    pairs = zip(TEXTS, OPINIONS, strict=True)
    rows.write_text("\n".join(json.dumps({"text": t, "label": str(o)}) for t, o in pairs))
    c = TextClassifier(**SMALL, max_epochs=2).fit(rows)
    assert np.array_equal(c.predict_proba(TEXTS), b.predict_proba(TEXTS))
    conll = tmp_path / "tags.conll"
    sentences = [
        "\n".join(f"{w} X {g}" for w, g in zip(t.split(), tagged(t), strict=True)) for t in TEXTS
    ]
    conll.write_text("-DOCSTART- X O\n\n" + "\n\n".join(sentences) + "\n")
    d = TextTagger(**SMALL, max_epochs=1).fit(conll)
    e = TextTagger(**SMALL, max_epochs=1).fit(TEXTS, [tagged(t) for t in TEXTS])
    assert d.predict(TEXTS[:20]) == e.predict(TEXTS[:20])


def test_checkpoints_of_bert(tmp_path: Path) -> None:
    words = Tokenizer.train(
        texts=TEXTS, kind="word", lowercase=True,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    )  # fmt: skip
    words.save(tmp_path)
    net = groundstate.nn.MaskedBERT(words.size, 32, 8, 2, 1, 16)
    state = net.state_dict()
    q, k, v = state["bert.stack.blocks.0.attend.qkv.weight"].chunk(3)
    qb, kb, vb = state["bert.stack.blocks.0.attend.qkv.bias"].chunk(3)
    at = "bert.encoder.layer.0."
    named = {
        "bert.embeddings.word_embeddings.weight": state["bert.embed.weight"],
        "bert.embeddings.position_embeddings.weight": state["bert.place.weight"],
        "bert.embeddings.token_type_embeddings.weight": state["bert.segment.weight"],
        f"{at}attention.self.query.weight": q, f"{at}attention.self.query.bias": qb,
        f"{at}attention.self.key.weight": k, f"{at}attention.self.key.bias": kb,
        f"{at}attention.self.value.weight": v, f"{at}attention.self.value.bias": vb,
        "cls.predictions.bias": state["bias"],
    }  # fmt: skip
    block = "bert.stack.blocks.0."
    for theirs, ours in {
        "bert.embeddings.LayerNorm": "bert.norm", f"{at}attention.output.dense": f"{block}attend.out",
        f"{at}attention.output.LayerNorm": f"{block}attend_norm",
        f"{at}intermediate.dense": f"{block}feed.up", f"{at}output.dense": f"{block}feed.down",
        f"{at}output.LayerNorm": f"{block}feed_norm",
        "cls.predictions.transform.dense": "transform",
        "cls.predictions.transform.LayerNorm": "norm",
    }.items():  # fmt: skip
        for kind in ("weight", "bias"):
            named[f"{theirs}.{kind}"] = state[f"{ours}.{kind}"]
    save_file({n: t.clone().contiguous() for n, t in named.items()}, tmp_path / "model.safetensors")
    config = {
        "model_type": "bert", "vocab_size": words.size, "max_position_embeddings": 32,
        "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
        "intermediate_size": 16,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = MaskedLanguageModel.from_pretrained(tmp_path, lr=1e-2, max_epochs=3)
    before = model.score(TEXTS[:20])
    assert model.fit(TEXTS).score(TEXTS[:20]) > before
    fine = TextClassifier(tmp_path, max_epochs=2, random_state=0).fit(TEXTS, OPINIONS)
    assert fine.length_ == 32 and fine.tokenizer_ == words
