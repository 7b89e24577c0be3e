"""What works on tables works on rows of any kind: weights, folds, order, resume, save, go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, cross_val_score
from tests.processes import elsewhere

import groundstate
from groundstate import evaluate
from groundstate.compute.rows import GraphNodes, Graphs, Objects, Ragged, Texts, Words
from groundstate.data import make_shapes
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import cross_validate
from groundstate.learn import Arrays, Checkpoint
from groundstate.learn.callbacks import Callback, Run
from groundstate.models.population.many import has_program
from groundstate.models.traits import traits_of
from groundstate.registry import models

N = 60
QUICK = {"max_iter": 4, "batch_size": 16, "n_iter_no_change": np.inf, "random_state": 0}


def labels() -> np.ndarray:
    return np.array(["no", "yes"])[np.arange(N) % 2]


def images() -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, 2, 3, 3)) + (np.arange(N) % 2)[:, None, None, None]


def large() -> Any:
    """Pictures that can be halved."""
    return images()[:, :, [0, 1, 2, 0]][:, :, :, [0, 1, 2, 0]]


def texts() -> Texts:
    rng = np.random.default_rng(1)
    words = np.array(["sun", "rain", "wind", "fog", "snow", "hail"])
    own = [words[:4], words[2:]]
    return Texts.of([" ".join(rng.choice(own[i % 2], 3 + i % 5)) + f" {i}" for i in range(N)])


SMALL_TEXT = {
    "context": 12, "dim": 8, "layers": 1, "heads": 2, "dropout": 0.0, "max_epochs": 4, "lr": 1e-2,
    "batch_size": 16, "random_state": 0,
}  # fmt: skip


def sequences() -> Ragged:
    rng = np.random.default_rng(2)
    return Ragged.of([rng.normal(size=(1 + i % 7, 3)) + i % 2 for i in range(N)], torch.float32)


def graphs() -> Graphs:
    rng = np.random.default_rng(3)
    found = []
    for i in range(N):
        n = 3 + i % 4
        ring = [(v, (v + 1) % n) for v in range(n)]
        star = [(0, v) for v in range(1, n)]
        found.append((rng.normal(size=(n, 2)), star if i % 2 else ring))
    return Graphs.of(found)


def scenes() -> tuple[Any, Objects]:
    found = make_shapes(N, size=32, n_objects=(0, 2), random_state=5)
    return found.images, Objects.of(list(zip(found.boxes, found.labels, strict=True)))


DETECTOR = groundstate.ObjectDetector(
    network_params={"fpn": 8, "hidden": 16, "levels": 2, "sizes": (8, 12, 16), "proposals": (30, 20),
                    "anchors_sampled": 32, "regions_sampled": 16},
    max_epochs=2, batch_size=16, random_state=0,
)  # fmt: skip


class Stream:
    """Rows of a table that are read in pieces, far fewer at a time than there are."""

    def __init__(self, index: Any = None) -> None:
        self.index = np.arange(N) if index is None else np.asarray(index)
        rng = np.random.default_rng(4)
        self.x = (rng.normal(size=(N, 3)) + (np.arange(N) % 2)[:, None]).astype(np.float32)

    def __getitem__(self, which: Any) -> Stream:
        return Stream(self.index[np.asarray(which)])

    def __len__(self) -> int:
        return len(self.index)

    def source(self, y: Any, weight: Any) -> Arrays:
        arrays = {"x": self.x[self.index], "y": np.asarray(y)}
        if weight is not None:
            arrays["weight"] = np.asarray(weight, np.float32)
        return Arrays(arrays, buffer=20, block=16)


def translations() -> np.ndarray:
    """A target for each text: its words in capitals."""
    return np.array([text.upper() for text in texts().strings()], dtype=object)


def sentences() -> Words:
    return Words.of([text.split() for text in texts().strings()])


def tags() -> np.ndarray:
    """A tag for each word: whether it is a number."""
    found = np.empty(N, dtype=object)
    found[:] = [["num" if w.isdigit() else "word" for w in row] for row in sentences().words()]
    return found


@dataclass
class Case:
    """An estimator with few epochs, rows it takes, and their targets (None where it takes none)."""

    model: Any
    rows: Callable[[], Any]
    target: Callable[[], Any] = labels
    # learned from sums over all rows: equal up to their order, and without steps to be killed in
    by_sums: bool = False

    @property
    def steps(self) -> str:
        """The parameter that counts its epochs."""
        name = traits_of(self.model).steps
        assert name is not None
        return name

    @property
    def classifies(self) -> bool:
        return is_classifier(self.model)

    def fit(self, X: Any, y: Any, weight: Any = None, **settings: Any) -> Any:
        model = clone(self.model).set_params(**settings)
        if isinstance(X, Stream):
            return model.fit(X.source(y, weight))
        given = (X,) if y is None else (X, y)
        return model.fit(*given, sample_weight=weight)

    def new(self, n: int = 20) -> Any:
        """Rows to answer for."""
        X = self.rows()[np.arange(n)]
        return X.x[X.index] if isinstance(X, Stream) else X


NETWORK = {"max_epochs": 4, "batch_size": 16, "random_state": 0}
SMALL = {"hidden": 8}


def nodes() -> GraphNodes:
    """The nodes of a graph of two communities, no two alike."""
    rng = np.random.default_rng(5)
    side = np.arange(N) % 2
    links = rng.random((N, N)) < np.where(side[:, None] == side, 0.2, 0.05)
    x = rng.normal(size=(N, 2)) + 0.5 * side[:, None]
    return GraphNodes.all(Graphs.of([(x, np.argwhere(links))]))


def pairs() -> GraphNodes:
    """Pairs of nodes, in turn of one and of two communities."""
    rng = np.random.default_rng(6)
    a = rng.integers(0, N, N)
    b = 2 * rng.integers(0, N // 2, N) + (a + np.arange(N)) % 2
    return GraphNodes(nodes().graph, torch.from_numpy(np.stack((a, b), 1)))


def numbers() -> np.ndarray:
    return np.arange(N) % 2 + np.random.default_rng(7).normal(size=N)


CASES = {
    "images": Case(groundstate.LinearImageClassifier(**QUICK), images),
    "masks": Case(
        groundstate.Segmenter(
            network_params={"base": 2, "depth": 1},
            max_epochs=4,
            batch_size=16,
            val_fraction=0.0,
            random_state=0,
        ),
        images,
        lambda: (images()[:, 0] > 0.5).astype(np.uint8),
    ),
    "pictures": Case(
        groundstate.ImageClassifier(
            "cnn",
            {"channels": (6,), "head": "flatten"},
            max_epochs=4,
            batch_size=16,
            lr=1e-2,
            val_fraction=0.0,
            schedule=None,
            random_state=0,
            device=None,
        ),
        images,
    ),
    "captions": Case(
        groundstate.CLIP(
            image_params={"channels": (4,)},
            text_params={"dim": 8, "layers": 1, "heads": 2},
            n_components=4,
            max_epochs=4,
            batch_size=16,
            lr=1e-2,
            random_state=0,
        ),
        images,
        lambda: np.array(texts().strings(), dtype=object),
    ),
    "painted pictures": Case(
        groundstate.TranslationGAN(
            base=2, depth=1, d_base=2, d_depth=1, max_iter=4, batch_size=16, random_state=0
        ),
        large,
        lambda: 1 - large(),
    ),
    "texts": Case(groundstate.BagOfTokensClassifier(min_weight=2, **QUICK), texts),
    "text classifier": Case(groundstate.TextClassifier(**SMALL_TEXT), texts),
    "text tagger": Case(groundstate.TextTagger(**SMALL_TEXT), texts, tags),
    "masked language": Case(groundstate.MaskedLanguageModel(**SMALL_TEXT), texts, lambda: None),
    "language": Case(
        groundstate.LanguageModel(
            "gpt", 12, dim=8, layers=1, heads=2, max_epochs=4, batch_size=16, random_state=0
        ),
        texts,
        lambda: None,
    ),
    "sequences": Case(groundstate.MeanPoolSequenceClassifier(**QUICK), sequences),
    "labels of sequences": Case(
        groundstate.SequenceClassifier("gru", {"hidden": 4}, bucket=True, lr=0.03, **NETWORK),
        sequences,
    ),
    "numbers of sequences": Case(
        groundstate.SequenceRegressor("tcn", {"hidden": 4}, lr=0.03, **NETWORK), sequences, numbers
    ),
    "hidden chains": Case(
        groundstate.HiddenMarkovModel(2, max_iter=4, tol=0.0, random_state=0),
        lambda: sequences().floating(torch.float64),
        lambda: None,
        by_sums=True,
    ),
    "graphs": Case(groundstate.MessageSumGraphClassifier(8, **QUICK), graphs),
    "scenes": Case(DETECTOR, lambda: scenes()[0], lambda: scenes()[1]),
    "stream": Case(groundstate.NeuralClassifier(**QUICK), Stream),
    "nodes": Case(groundstate.NodeClassifier(network_params=SMALL, **NETWORK), nodes),
    "pairs": Case(groundstate.EdgeClassifier(network_params=SMALL, **NETWORK), pairs),
    "graph labels": Case(groundstate.GraphClassifier(network_params=SMALL, **NETWORK), graphs),
    "graph values": Case(
        groundstate.GraphRegressor(network_params=SMALL, **NETWORK), graphs, numbers
    ),
    "tags": Case(
        groundstate.SequenceTagger("gru", {"dim": 4, "hidden": 4}, crf=True, **NETWORK),
        sentences,
        tags,
    ),
    "translation": Case(
        groundstate.Seq2Seq("rnn", {"dim": 4, "hidden": 6}, **NETWORK), texts, translations
    ),
}


CLASSIFIERS = [name for name, case in CASES.items() if case.classifies]


def some(y: Any, which: Any) -> Any:
    """The targets of some rows."""
    return None if y is None else y[which]


def test_every_model_of_other_rows_than_tables_has_a_case() -> None:
    others = ("table", "series")  # of which test_estimator.py and test_forecaster.py are
    declared = {row.name: row.rows for row in models if row.rows not in others}
    cases = [case.model for case in CASES.values() if case.model.rows != "table"]
    assert declared == {type(model).__name__: model.rows for model in cases}


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def same(case: Case, a: Any, b: Any) -> bool:
    return near(a, b) if case.by_sums else equal(a, b)


def state(model: Any) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in model.energy_.state_dict().items()}


def equal(a: Any, b: Any) -> bool:
    one, two = state(a), state(b)
    return list(one) == list(two) and all(torch.equal(one[k], two[k]) for k in one)


def near(a: Any, b: Any) -> bool:
    one, two = state(a), state(b)
    return all(torch.allclose(one[k], two[k], rtol=1e-4, atol=1e-5) for k in one)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_fits_and_answers(name: str) -> None:
    case = CASES[name]
    X, y = case.rows(), case.target()
    model = case.fit(X, y, **{case.steps: 60})
    new = case.new(N)
    assert float(np.mean(model.predict(new) == y)) > 0.75
    proba = model.predict_proba(new)
    assert proba.shape == (N, 2) and np.allclose(proba.sum(1), 1, atol=1e-5)
    assert model.energies(new).shape == (N, 2)
    assert np.allclose(model.energy(new, y), model.energies(new)[np.arange(N), np.arange(N) % 2])
    found = model.infer({"x": new}, "y")
    assert (found == model.predict(new)).all()


@pytest.mark.usefixtures("own_streams")
def test_a_weight_of_two_is_the_row_twice(case: Case) -> None:
    X, y = case.rows(), case.target()
    weight = 1.0 + (np.arange(N) % 3 == 0)
    index = np.repeat(np.arange(N), weight.astype(int))
    assert same(case, case.fit(X, y, weight), case.fit(X[index], some(y, index)))
    assert not same(case, case.fit(X, y, weight), case.fit(X, y))


def test_a_fold_is_weights_with_zeros(case: Case) -> None:
    X, y = case.rows(), case.target()
    kept = np.arange(N) % 5 != 0
    assert same(
        case, case.fit(X, y, kept.astype(float)), case.fit(X[np.flatnonzero(kept)], some(y, kept))
    )


def test_the_order_of_the_rows_does_not_matter(case: Case) -> None:
    X, y = case.rows(), case.target()
    order = np.random.default_rng(0).permutation(N)
    assert same(case, case.fit(X, y), case.fit(X[order], some(y, order)))
    whole = {"batch_size": 10 * N}
    if not isinstance(X, Stream) and not case.by_sums:
        assert same(case, case.fit(X, y, **whole), case.fit(X[order], some(y, order), **whole))


@pytest.mark.parametrize("name", [n for n in CLASSIFIERS if n != "stream"])
def test_cross_validation(name: str) -> None:
    case = CASES[name]
    X, y = case.rows(), case.target()
    scores = cross_val_score(clone(case.model), X, y, cv=KFold(3))
    assert scores.shape == (3,) and np.isfinite(scores).all()
    found = cross_validate(clone(case.model), X, y, cv=3)
    assert np.isfinite(found.mean)


@pytest.mark.parametrize("name", [n for n in CASES if n != "stream"])
def test_many_fits_are_single_fits(name: str) -> None:
    case = CASES[name]
    X, y = case.rows(), case.target()
    weights = np.stack([np.ones(N), np.arange(N) % 3 != 0, 1.0 + (np.arange(N) % 2)])
    together = groundstate.fit_many(case.model, X, y, weights)
    alike = (
        near if has_program(case.model) or case.by_sums else equal
    )  # one program sums in another order
    assert all(alike(one, case.fit(X, y, w)) for one, w in zip(together, weights, strict=True))


@pytest.mark.parametrize("name", [n for n in CLASSIFIERS if n != "stream"])
def test_rows_are_split_on_the_weight_line(name: str) -> None:
    X, y = CASES[name].rows(), CASES[name].target()
    order = np.random.default_rng(1).permutation(N)
    for cut in (evaluate.train_test, lambda X, y: evaluate.folds(X, y, k=4)[0]):
        one, two = cut(X, y).test_rows, cut(X[order], some(y, order)).test_rows
        assert sorted(one) == sorted(order[two]) and 0 < len(one) < N
    parts = evaluate.split(X, y)
    assert sorted(np.concatenate([parts.train, parts.val, parts.test])) == list(range(N))


def test_saved_loaded_and_continued(case: Case, tmp_path: Path) -> None:
    X, y = case.rows(), case.target()
    model = case.fit(X, y, warm_start=True)
    path = model.save(tmp_path / "model.gs")
    loaded = groundstate.load(path)
    new = case.new()
    assert equal(model, loaded)
    if case.classifies:
        assert (loaded.predict(new) == model.predict(new)).all()
    given = (X.source(y, None),) if isinstance(X, Stream) else (X,) if y is None else (X, y)
    before = state(model)
    model.fit(*given)
    loaded.fit(*given)
    assert equal(model, loaded)
    assert any(not torch.equal(before[k], v) for k, v in state(model).items())


class Kill(Callback):
    """Ends the process as nothing else can, in the middle of an epoch."""

    def on_step(self, run: Run) -> None:
        if run.total_steps == 6:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(name: str, folder: Path) -> None:
    case = CASES[name]
    kept = Checkpoint(folder, every_steps=1)
    case.fit(case.rows(), case.target(), callbacks=[kept, Kill()])


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if not case.by_sums])
def test_killed_and_resumed(name: str, tmp_path: Path) -> None:
    assert elsewhere(killed, name, tmp_path) == -signal.SIGKILL
    case = CASES[name]
    X, y = case.rows(), case.target()
    kept = Checkpoint(tmp_path)
    resumed = case.fit(X, y, callbacks=[kept])
    assert kept.newest is not None
    assert equal(resumed, case.fit(X, y))


def test_torch_in_torch_out() -> None:
    X, y = torch.from_numpy(images()), torch.arange(N) % 2
    model = CASES["images"].fit(X, y)
    found = model.predict(X)
    assert isinstance(found, torch.Tensor) and found.device == X.device
    assert isinstance(model.predict(images()), np.ndarray)
    rows = sequences().floating(torch.float64)
    assert CASES["sequences"].fit(rows, y, device="cpu").energy_.placement() == (
        torch.device("cpu"),
        torch.float64,
    )


def test_image_files(tmp_path: Path) -> None:
    from PIL import Image as image

    pixels = np.random.default_rng(0).integers(0, 256, (20, 4, 5, 3), dtype=np.uint8)
    pixels[::2, :2] //= 4
    paths = [tmp_path / f"{i}.png" for i in range(20)]
    for path, one in zip(paths, pixels, strict=True):
        image.fromarray(one).save(path)
    y = np.arange(20) % 2
    model = groundstate.LinearImageClassifier(**{**QUICK, "max_iter": 30, "batch_size": 7})
    model.fit(paths, y)
    order = np.arange(20)[::-1]
    again = clone(model).fit([paths[i] for i in order], y[order])
    assert equal(model, again) and model.coef_.shape == (2, 3, 4, 5)
    arrays = pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255
    assert (model.predict(paths) == model.predict(arrays)).all() and model.score(paths, y) > 0.9
    folder = model.predict(tmp_path)
    assert folder.shape == (20,)


@pytest.mark.parametrize(
    ("name", "X", "said"),
    [
        ("images", np.zeros((4, 3)), "takes image rows"),
        ("texts", [1, 2], "takes text rows: row 0 is int"),
        ("sequences", ["a", "b"], "takes sequence rows"),
        ("graphs", [3, 4], "takes graph rows"),
    ],
)
def test_other_rows_are_refused(name: str, X: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        CASES[name].model.fit(X, [0, 1])


def test_rows_of_another_form_are_refused() -> None:
    model = CASES["images"].fit(images(), labels())
    with pytest.raises(ShapeError, match=r"was fitted to Real\(2, 3, 3\)"):
        model.predict(np.zeros((2, 1, 3, 3)))
    unreadable = images().copy()
    unreadable[2, 0, 1, 1] = (
        np.nan
    )  # in answers as in learning: a class of NaN would be the first one
    for ask in (model.predict, model.predict_proba, model.energies):
        with pytest.raises(DataError, match="row 2 of X holds NaN"):
            ask(unreadable)
    with pytest.raises(DataError, match="row 3 of X holds NaN"):
        CASES["sequences"].model.fit([[1.0], [1.0], [2.0], [np.nan]], [0, 1, 0, 1])
    with pytest.raises(ShapeError, match="X has 2 rows, y has 3"):
        CASES["texts"].model.fit(["a", "b"], [0, 1, 0])
    with pytest.raises(ValueError, match="requires y"):
        CASES["texts"].model.fit(["a", "b"])


def test_a_data_set_holds_its_own_targets() -> None:
    X, y = images(), np.arange(N) % 2
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    model = CASES["images"].model
    assert equal(clone(model).fit(rows), clone(model).fit(X, y))
