"""Language models: exact probabilities, blocks of texts, generated texts, checkpoints."""

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

import groundstate
from groundstate import LanguageModel
from groundstate.compute.rows import Ragged, Tokens
from groundstate.data import Tokenizer, make_reviews, write_tokens
from groundstate.data.text.blocks import NOTHING, blocks_of
from groundstate.data.text.token_files import END
from groundstate.errors import DataError, StoreError
from groundstate.learn import Callback, Checkpoint, Run

TEXTS = ["the cat sat on the mat.", "the dog sat on the log."] * 4
SMALL: dict[str, Any] = {
    "context": 32, "dim": 16, "layers": 1, "heads": 2, "lr": 0.02, "val_fraction": 0.0,
    "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module", params=["gpt", "gru", "lstm"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return LanguageModel(request.param, **SMALL, batch_size=4, max_epochs=40).fit(TEXTS)


def test_blocks_hold_one_text_and_every_token_once() -> None:
    rng = np.random.default_rng(0)
    texts = [rng.integers(1, 9, size=n).tolist() for n in (0, 1, 3, 4, 5, 8, 11)]
    found = blocks_of(Tokens.of(Ragged.of(texts, torch.int64)), context=4, end=0)
    for i, text in enumerate(texts):
        mine = found.tokens[found.text == i]
        kept = mine[mine != NOTHING].tolist()
        assert kept == [*text, 0]
        before = [0, *text][::4][: len(mine)]
        assert found.first[found.text == i].tolist() == before
    assert found.lengths.tolist() == (found.tokens != NOTHING).sum(1).tolist()


def test_blocks_may_overlap() -> None:
    text = list(range(1, 11))
    found = blocks_of(Tokens.of(Ragged.of([text], torch.int64)), context=4, end=0, stride=2)
    assert found.first.tolist() == [0, 2, 4, 6, 8]
    assert found.tokens[1].tolist() == [3, 4, 5, 6]
    assert found.tokens[-1].tolist() == [9, 10, 0, NOTHING]
    with pytest.raises(ValueError, match="stride must be"):
        blocks_of(Tokens.of(Ragged.of([text], torch.int64)), context=4, end=0, stride=5)
    with pytest.raises(ValueError, match="val_fraction=0"):
        LanguageModel(context=8, stride=4).fit(TEXTS)


def test_a_new_network_knows_nothing() -> None:
    model = LanguageModel("gpt", **{**SMALL, "lr": 1e-12}, max_epochs=1).fit(TEXTS)
    assert model.score(TEXTS) == pytest.approx(-math.log(257), abs=0.02)


def test_it_learns_more_than_the_frequencies_of_characters(model: LanguageModel) -> None:
    counts = Counter("".join(TEXTS) + "\0" * len(TEXTS))
    p = np.array(list(counts.values())) / counts.total()
    assert -model.score(TEXTS) < 0.7 * -(p @ np.log(p))
    assert model.perplexity(TEXTS) == pytest.approx(math.exp(-model.score(TEXTS)))
    right, wrong = model.log_prob(["the cat sat on the mat.", "tac eht tas"])
    assert right > wrong and np.allclose(model.energy(["tac eht tas"]), -wrong)


@torch.no_grad()
def test_all_at_once_is_step_by_step(model: LanguageModel) -> None:
    text = "the dog sat"
    tokens = torch.tensor([[*model.tokenizer_.encode(text), model.end_]])
    total, state = 0.0, None
    for t in range(tokens.shape[1]):
        increments, state = model.energy_.step(state)
        total += float(increments[0, tokens[0, t]])
        state = state.append(tokens[:, t])
    assert model.log_prob([text])[0] == pytest.approx(-total, abs=1e-4)


def test_strings_of_length_four_sum_to_one() -> None:
    model = LanguageModel("gpt", **{**SMALL, "context": 4}, tokenizer="char", max_epochs=5)
    model.fit(["ab", "ba", "aab"] * 3)
    y = torch.cartesian_prod(*[torch.arange(model.tokenizer_.size)] * 4)
    assert model.tokenizer_.size == 4
    with torch.no_grad():
        assert float((-model.energy_(y=y)).exp().sum()) == pytest.approx(1.0, abs=1e-5)


def test_long_texts_are_the_sum_of_their_blocks(model: LanguageModel) -> None:
    long = "the cat sat on the mat. the dog sat on the log. the cat"
    rows = blocks_of(model.tokenizer_.encode([long]), 32, model.end_)
    with torch.no_grad():
        e = model.energy_(y=rows.tokens, first=rows.first)
    assert len(e) == 2 and model.energy([long])[0] == pytest.approx(float(e.sum()), abs=1e-4)


def test_generated_texts(model: LanguageModel) -> None:
    one = model.generate("the ", max_new_tokens=10, random_state=1)
    assert one.startswith("the ") and one == model.generate(
        "the ", max_new_tokens=10, random_state=1
    )
    some = model.generate("the ", n=5, max_new_tokens=100, random_state=0)
    assert len(some) == 5 and len(set(some)) > 1 and all(t.startswith("the ") for t in some)
    assert max(len(t.encode()) for t in some) <= 104
    greedy = model.generate("the cat", method="greedy", max_new_tokens=60)
    assert greedy == model.generate("the cat", temperature=0.0, max_new_tokens=60)
    best = model.generate("the cat", n=3, method="beam", beams=6, max_new_tokens=16)
    assert len(set(best)) == 3
    drawn = model.sample(4, random_state=0, max_new_tokens=8)
    assert len(drawn) == 4 and all(len(t.encode("utf-8", "replace")) <= 8 * 3 for t in drawn)


def test_generation_goes_on_behind_the_context() -> None:
    model = LanguageModel("gpt", **{**SMALL, "context": 8}, max_epochs=60, tokenizer="char")
    model.fit(["abcdefg" * 9] * 4)  # blocks of 8 begin at every letter
    found = model.generate("abc", method="greedy", max_new_tokens=30)
    assert found == ("abcdefg" * 5)[:33]
    assert model.generate("abcdefg" * 3, method="greedy", max_new_tokens=4)[-4:] == "abcd"


def test_files_and_folders(tmp_path: Path) -> None:
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_text(text)
    settings: dict[str, Any] = {**SMALL, "max_epochs": 2}
    a = LanguageModel("gru", **settings).fit(tmp_path)
    b = LanguageModel("gru", **settings).fit(TEXTS)
    assert np.array_equal(a.log_prob(TEXTS), b.log_prob(TEXTS))
    assert a.score(tmp_path) == pytest.approx(b.score(TEXTS))


class Stop(Callback):
    """Ends a fit in the middle of an epoch."""

    def on_step(self, run: Run) -> None:
        if run.total_steps == 6:
            raise InterruptedError


def test_token_files_are_the_texts(tmp_path: Path) -> None:
    texts = [f"{t} {i}" * (1 + i % 4) for i, t in enumerate(make_reviews(30)[0])]
    for i, text in enumerate(texts):
        (tmp_path / f"{i:02}.txt").write_text(text)
    words = Tokenizer.train(texts=texts, kind="word", special_tokens=[END])
    file = write_tokens(tmp_path, words, tmp_path / "made" / "tokens.npy")
    settings: dict[str, Any] = {**SMALL, "tokenizer": words, "batch_size": 4, "max_epochs": 3,
                                "val_fraction": 0.2}  # fmt: skip
    weight = np.arange(30) % 3 + 0.5
    whole = LanguageModel("gru", **settings).fit(texts, sample_weight=weight)
    mapped = LanguageModel("gru", **settings).fit(file, sample_weight=weight)
    assert np.array_equal(mapped.log_prob(texts), whole.log_prob(texts))
    assert np.array_equal(mapped.log_prob(file), whole.log_prob(texts))
    raw = tmp_path / "made" / "tokens.bin"
    np.load(file).tofile(raw)
    stopped: Any = [Checkpoint(tmp_path / "run", every_steps=1), Stop()]
    with pytest.raises(InterruptedError):
        LanguageModel("gru", **settings, callbacks=stopped).fit(raw, sample_weight=weight)
    kept = Checkpoint(tmp_path / "run")
    resumed = LanguageModel("gru", **settings, callbacks=[kept]).fit(raw, sample_weight=weight)
    assert kept.newest is not None
    assert np.array_equal(resumed.log_prob(texts), whole.log_prob(texts))

    with pytest.raises(DataError, match="no tokenizer of kind 'byte' can be learned"):
        LanguageModel().fit(file)
    with pytest.raises(DataError, match="holds token 60000, the tokenizer has"):
        LanguageModel(**settings).fit(np.array([3, 60_000]))
    with pytest.raises(DataError, match=r"whole numbers in one line, got uint16 \(2, 2\)"):
        np.save(tmp_path / "wide.npy", np.zeros((2, 2), np.uint16))
        LanguageModel(**settings).fit(tmp_path / "wide.npy")
    (tmp_path / "odd.bin").write_bytes(b"abc")
    with pytest.raises(DataError, match="3 bytes, no whole number of tokens"):
        LanguageModel(**settings).fit(tmp_path / "odd.bin")


def test_saved_model_has_its_tokenizer(model: LanguageModel, tmp_path: Path) -> None:
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    assert np.array_equal(loaded.log_prob(TEXTS), model.log_prob(TEXTS))
    assert loaded.generate("the", random_state=0) == model.generate("the", random_state=0)


def test_weights_of_texts_count_in_the_score(model: LanguageModel) -> None:
    w = np.array([2.0, 0.0, 1.0])
    texts = ["the cat", "zzz", "a log that is long"]
    twice = model.score([texts[0], texts[0], texts[2]])
    assert model.score(texts, sample_weight=w) == pytest.approx(twice)


def gpt2(folder: Path, tokenizer: Tokenizer, *, vocab: int | None = None) -> Path:
    d, layers, k = 8, 2, vocab or tokenizer.size
    g = torch.Generator().manual_seed(0)
    sizes: dict[str, tuple[int, ...]] = {"wte.weight": (k, d), "wpe.weight": (16, d)}
    for i in range(layers):
        for name, shape in {
            "ln_1": (d,), "attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d), "ln_2": (d,),
            "mlp.c_fc": (d, 4 * d), "mlp.c_proj": (4 * d, d),
        }.items():  # fmt: skip
            sizes[f"h.{i}.{name}.weight"], sizes[f"h.{i}.{name}.bias"] = shape, shape[-1:]
    sizes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    config = {"model_type": "gpt2", "vocab_size": k, "n_positions": 16, "n_embd": d, "n_head": 2}
    (folder / "config.json").write_text(json.dumps({**config, "n_layer": layers}))
    weights = {n: 0.3 * torch.randn(s, generator=g) for n, s in sizes.items()}
    save_file(weights, folder / "model.safetensors")
    tokenizer.save(folder)
    return folder


def test_checkpoints_of_gpt2(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(texts=[], kind="byte", special_tokens=["<|endoftext|>"])
    model = LanguageModel.from_pretrained(gpt2(tmp_path, tokenizer), max_epochs=3, lr=1e-2)
    assert model.context == 16 and model.network_.layers == 2
    before = model.score(TEXTS)
    assert model.fit(TEXTS).score(TEXTS) > before
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    assert loaded.generate("a", random_state=0) == model.generate("a", random_state=0)
    with pytest.raises(DataError, match=r"has 257 tokens, its network 300"):
        LanguageModel.from_pretrained(gpt2(tmp_path, tokenizer, vocab=300))
    (tmp_path / "config.json").unlink()
    with pytest.raises(StoreError, match="holds no config"):
        LanguageModel.from_pretrained(tmp_path)


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match="takes text rows"):
        LanguageModel().fit([1, 2])
    with pytest.raises(ValueError, match="no architecture for text rows"):
        LanguageModel("resnet18").fit(TEXTS)
    with pytest.raises(DataError, match="special_tokens"):
        LanguageModel(tokenizer=Tokenizer.train(texts=TEXTS, kind="char")).fit(TEXTS)


def test_generated_corpora() -> None:
    texts, opinions, things = make_reviews(50)
    assert len(texts) == len(opinions) == len(things) == 50
    assert texts == make_reviews(50)[0] != make_reviews(50, random_state=1)[0]
