"""SequenceTagger: tags of words and of numbers, as a chain or alone, from lists and CoNLL files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import groundstate
from groundstate import SequenceTagger
from groundstate.compute.rows import Ragged
from groundstate.errors import DataError, ShapeError
from groundstate.math.sequences import span_f1
from groundstate.nn import StepScores

NAMES = ["Ada Lovelace", "Max", "Emmy Noether", "Alan Turing"]
PLACES = ["Rome", "New York", "Oslo"]


def sentences(n: int = 60, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words: list[str] = []
        tags: list[str] = []
        for text, kind in (
            (rng.choice(NAMES), "PER"),
            ("went to", ""),
            (rng.choice(PLACES), "LOC"),
        ):
            own = str(text).split()
            words += own
            tags += ["O" if not kind else f"{'BI'[i > 0]}-{kind}" for i in range(len(own))]
        X.append(words)
        y.append(tags)
    return X, y


def quick(**settings: Any) -> SequenceTagger:
    given = {"network_params": {"dim": 8, "hidden": 8}, "lr": 3e-2, "max_epochs": 15,
             "val_fraction": 0.0, "random_state": 0}  # fmt: skip
    return SequenceTagger(**{**given, **settings})


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "chain"])
def fitted(request: pytest.FixtureRequest) -> SequenceTagger:
    return quick(crf=request.param).fit(*sentences())


def test_spans_are_found(fitted: SequenceTagger) -> None:
    X, y = sentences(20, seed=1)
    assert fitted.score(X, y) == 1.0
    assert fitted.predict(X).tolist() == y
    assert fitted.score(X, y) == span_f1(y, fitted.predict(X).tolist()).f1


def test_probabilities_and_energies(fitted: SequenceTagger) -> None:
    X, y = sentences(5, seed=1)
    p = fitted.predict_proba(X)
    assert [len(one) for one in p] == [len(x) for x in X]
    assert all(np.allclose(one.sum(1), 1, atol=1e-5) for one in p)
    right = fitted.energy(X, y)
    wrong = fitted.energy(X, [["O"] * len(tags) for tags in y])
    assert (right < wrong).all()
    assert fitted.infer({"x": X}, "y").tolist() == fitted.predict(X).tolist()


def test_saved_and_loaded(fitted: SequenceTagger, tmp_path: Path) -> None:
    X, _ = sentences(5, seed=1)
    loaded = groundstate.load(fitted.save(tmp_path / "model.gs"))
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()


def test_a_file_is_its_lists(tmp_path: Path) -> None:
    X, y = sentences(12)
    file = tmp_path / "a.conll"
    text = "\n\n".join("\n".join(f"{w} {t}" for w, t in zip(*row)) for row in zip(X, y))
    file.write_text(text, encoding="utf-8")
    one, two = quick(max_epochs=2).fit(X, y), quick(max_epochs=2).fit(file)
    for a, b in zip(one.energy_.state_dict().values(), two.energy_.state_dict().values()):
        assert torch.equal(a, b)
    assert two.predict(file).tolist() == one.predict(X).tolist()


def test_steps_of_numbers_and_plain_tags() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in rng.integers(2, 9, 60)]
    y = [["up" if v > 0 else "down" for v in x[:, 0]] for x in X]
    model = quick(network="gru", max_epochs=20).fit(X, y)
    assert model.score(X, y) > 0.95 and model.vocabulary_ == ()
    hits = [a == b for one, two in zip(model.predict(X), y) for a, b in zip(one, two)]
    assert model.score(X, y) == pytest.approx(np.mean(hits))
    with pytest.raises(DataError, match="fitted to steps of numbers, X holds words"):
        model.predict([["a"]])


def test_a_chain_knows_what_follows() -> None:
    """Labels that stay for long: scores of single steps are noise, neighbours tell."""
    rng = np.random.default_rng(1)
    X, y = [], []
    for _ in range(40):
        state = np.repeat(rng.integers(0, 2, 4), 10)
        X.append((state + rng.normal(scale=0.9, size=40))[:, None])
        y.append([str(s) for s in state])
    steps = {"network": _Single, "network_params": None, "max_epochs": 30, "lr": 5e-2}
    alone, chained = (quick(crf=crf, **steps).fit(X, y).score(X, y) for crf in (False, True))
    assert chained > alone + 0.08


class _Single(torch.nn.Module):
    """Each step for itself."""

    def __init__(self, num_classes: int, in_features: int) -> None:
        super().__init__()
        self.num_classes, self.in_features = num_classes, in_features
        self.map = torch.nn.Linear(in_features, num_classes)

    def forward(self, x: Ragged) -> Ragged:
        return x.like(self.map(x.values))


@pytest.mark.parametrize("network", ["rnn", "transformer"])
def test_other_networks(network: str) -> None:
    X, y = sentences(30)
    assert quick(network=network, max_epochs=25, lr=1e-2).fit(X, y).score(X, y) > 0.8


def test_padding_and_other_rows_do_not_matter() -> None:
    for cell in ("lstm", "transformer"):
        net = StepScores(3, in_features=2, dim=8, hidden=4, cell=cell).double().eval()
        g = torch.Generator().manual_seed(0)
        parts = [torch.randn(n, 2, generator=g, dtype=torch.float64) for n in (4, 0, 2)]
        together = net(Ragged.of(parts, torch.float64))
        for i in (0, 2):
            alone = net(parts[i][None])[0]
            torch.testing.assert_close(together.take(torch.tensor([i])).values, alone)


def test_unknown_words_and_empty_sentences(fitted: SequenceTagger) -> None:
    found = fitted.predict([["Zoe", "went", "to", "Berlin"], []])
    assert [len(tags) for tags in found] == [4, 0]


def test_weights_of_the_score(fitted: SequenceTagger) -> None:
    X, y = sentences(3, seed=1)
    wrong = [["O"] * len(y[0]), *y[1:]]
    twice = fitted.score([X[0], *X], [wrong[0], *wrong])
    assert fitted.score(X, wrong, sample_weight=[2, 1, 1]) == pytest.approx(twice)


def test_what_is_refused() -> None:
    X, y = sentences(4)
    with pytest.raises(ShapeError, match="row 0 has .* steps and 1 tags"):
        quick().fit(X, [["O"], *y[1:]])
    with pytest.raises(ShapeError, match="X has 4 rows, y has 3"):
        quick().fit(X, y[:3])
    with pytest.raises(ValueError, match="at least 2 tags"):
        quick().fit([["a"]], [["O"]])
    with pytest.raises(DataError, match="row 0 of y is 'O', expected a list"):
        quick().fit([["a"]], ["O"])
    model = quick(max_epochs=1, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="going on needs the same tags"):
        model.fit([["a", "b"]], [["B-ORG", "O"]])
    with pytest.raises(ValueError, match=r"\['B-ORG'\] were not in y"):
        model.energy([["a"]], [["B-ORG"]])
