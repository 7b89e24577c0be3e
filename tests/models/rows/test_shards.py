"""Two processes with rows of their own learn what one process learns from all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import groundstate as gs
from groundstate.compute.reduce import current, run_local
from groundstate.compute.rows import Texts
from groundstate.learn import Callback
from groundstate.learn.base import Problem
from groundstate.models.text.vocabulary import tokenizer_of

CUT = 23  # rows of the first process
Case = tuple[Any, Any, Any]


def own(rows: Any) -> Any:
    """The part of the process that asks; alone all of them."""
    if current().world == 1:
        return rows
    return rows[:CUT] if current().rank == 0 else rows[CUT:]


def weights(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(3).integers(1, 3, n).astype(float)


def pictures() -> Case:
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(60) % 3)  # no process has all classes
    X = rng.normal(size=(60, 1, 8, 8)) * (1 + y[:, None, None, None])
    model = gs.ImageClassifier(
        "cnn", {"channels": (4,)}, max_epochs=3, batch_size=16, lr=1e-2, val_fraction=0.2,
        patience=1, class_weight="balanced", augment="none", random_state=0,
    )  # fmt: skip
    return model, X.astype(np.float32), np.array(["low", "middle", "high"])[y]


def sequences() -> Case:
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(2 + i % 5, 2)) * (1 + i % 3) for i in range(60)]
    y = np.array([x.sum() for x in X])
    model = gs.SequenceRegressor(
        "gru", max_epochs=3, batch_size=16, lr=1e-2, bucket=True, random_state=0
    )
    return model, X, y


def texts() -> Case:
    words = ["sun", "rain", "wind", "snow", "fog", "ice"]
    rng = np.random.default_rng(2)
    X = [" ".join(rng.choice(words[: 3 + i // 20], 4)) for i in range(60)]
    y = np.array([x.split()[0] > "rain" for x in X])
    model = gs.TextClassifier(
        dim=16, layers=1, heads=2, dropout=0.0, max_epochs=3, batch_size=16, lr=3e-3,
        tokenizer="word", val_fraction=0.2, random_state=0,
    )  # fmt: skip
    return model, X, y


def graphs() -> Case:
    X = [nx.cycle_graph(3 + i % 7) if i < 30 else nx.star_graph(3 + i % 5) for i in range(60)]
    y = np.repeat(["cycle", "star"], 30)
    model = gs.GraphClassifier(
        max_epochs=3, batch_size=16, class_weight="balanced", random_state=0,
        network_params={"hidden": 8, "dropout": 0.0},
    )  # fmt: skip
    return model, X, y


def nodes() -> Case:
    """All processes know the graph, each the labels of some of its nodes."""
    rng = np.random.default_rng(4)
    graph = nx.stochastic_block_model([30, 30], [[0.3, 0.05], [0.05, 0.3]], seed=0)
    side = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 3)) + side[:, None]
    edges = np.array([e for a, b in graph.edges for e in ((a, b), (b, a))])
    y = np.where(rng.random(60) < 0.5, side, -1)
    if current().world > 1:
        here = (np.arange(60) < 40) == (current().rank == 0)
        y = np.where(here, y, -1)
    model = gs.NodeClassifier(
        "gcn", {"hidden": 8, "dropout": 0.0}, max_epochs=5, class_weight="balanced", random_state=0
    )
    return model, (X, edges), y


def masks() -> Case:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 1, 8, 8)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int) * (1 + (np.arange(60) > 40))[:, None, None]
    net = nn.Conv2d(1, 3, 3, padding=1)
    nn.init.normal_(net.weight, std=0.3, generator=torch.Generator().manual_seed(0))
    nn.init.zeros_(net.bias)
    model = gs.Segmenter(
        net, max_epochs=2, batch_size=16, class_weight="balanced", augment="none",
        random_state=0,
    )  # fmt: skip
    return model, X, y


def tags() -> Case:
    _, X, _ = texts()
    y = [
        ["N" if w < "rain" else "S" if i > 50 else "V" for w in t.split()] for i, t in enumerate(X)
    ]
    model = gs.TextTagger(
        dim=16, layers=1, heads=2, dropout=0.0, max_epochs=2, batch_size=16, tokenizer="word",
        random_state=0,
    )  # fmt: skip
    return model, X, y


def language() -> Case:
    _, X, _ = texts()
    model = gs.LanguageModel(
        "gpt", context=8, dim=16, layers=1, heads=2, dropout=0.0, max_epochs=2, batch_size=8,
        tokenizer="char", random_state=0,
    )  # fmt: skip
    return model, X, None


class Keep(Callback):
    def __init__(self, seen: list[Problem]) -> None:
        self.seen = seen

    def on_begin(self, run: Any) -> None:
        self.seen.append(run.problem)


def learned(case: Callable[[], Case]) -> dict[str, Any]:
    model, X, y = case()
    inside = isinstance(X, tuple)  # rows of one graph, which every process knows
    w = weights(len(y) if y is not None else len(X))
    w = w if inside else own(w)
    model.fit(X if inside else own(X), None if y is None else y if inside else own(y), w)
    out = {k: v.double() for k, v in model.energy_.state_dict().items()}
    for name in (k for k in out if k.endswith("attend.qkv.bias")):
        # softmax_j q·(k_j + b) = softmax_j q·k_j: the gradient in a key's bias is rounding alone, whose
        # sign Adam follows at full rate; what the network says does not depend on it
        query, _, value = out[name].chunk(3)
        out[name] = torch.cat((query, value))
    if not inside:
        out["answers"] = torch.as_tensor(model.energy(X, y)).double()
    out["losses"] = torch.tensor(model.history_.objective).double()
    out["validation"] = torch.tensor(model.history_.extra.get("validation", [])).double()
    return out | {"labels": [str(c) for c in getattr(model, "classes_", [])]}


def vocabulary(rank: int) -> list[list[str]]:
    """Merges and words of texts that two processes share, one of them known to both."""
    X = [*texts()[1], *texts()[1][:3]]
    return [
        list(tokenizer_of(kind, Texts.of(own(X)), None, ["[UNK]"], vocab_size=size).vocabulary)
        for kind, size in (("bpe", 290), ("wordpiece", 30), ("word", 5), ("char", None))
    ]


def fast(rank: int) -> list[dict[str, Any]]:
    cases = [learned(case) for case in (pictures, sequences, graphs, nodes)]
    return [*cases, {"labels": vocabulary(rank)}]


def slow(rank: int) -> list[dict[str, Any]]:
    return [learned(case) for case in (texts, masks, tags, language)]


def agree(alone: list[dict[str, Any]], parts: list[list[dict[str, Any]]]) -> None:
    for i, whole in enumerate(alone):
        for part in parts:
            assert part[i].keys() == whole.keys()
            for name, value in whole.items():
                if name == "labels":
                    assert part[i][name] == value
                    continue
                torch.testing.assert_close(
                    part[i][name], value, rtol=1e-4, atol=1e-4, msg=f"{i} {name}"
                )
                assert torch.equal(part[i][name], parts[0][i][name])


def test_two_processes_equal_one() -> None:
    agree(fast(0), run_local(fast, 2))


@pytest.mark.parametrize("case", [pictures, sequences, graphs, nodes, texts])
def test_gradient_of_chunks(case: Callable[[], Case]) -> None:
    """The gradient of the mean loss is the sum over chunks of rows."""
    model, X, y = case()
    model.set_params(max_epochs=1).fit(X, y)
    seen: list[Problem] = []
    model.callbacks = [Keep(seen)]
    model.fit(X, y)
    theta = [p for p in model.energy_.parameters() if p.requires_grad]
    problem = seen[0]
    value, whole = problem.value_and_gradient(theta, 10**6)
    for rows in (7, 29):
        loss, gradient = problem.value_and_gradient(theta, rows)
        assert abs(loss - value) < 1e-6
        torch.testing.assert_close(gradient, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_two_processes_equal_one_for_texts_and_masks() -> None:
    agree(slow(0), run_local(slow, 2))
