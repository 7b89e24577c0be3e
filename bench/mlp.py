"""Multilayer perceptrons against scikit-learn and skorch: the same number of steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from groundstate.bench import Benchmark, Peer

EPOCHS = 20
SIZES = {
    "1000x20 h100": (1_000, 20, (100,)),
    "10000x50 h100-100": (10_000, 50, (100, 100)),
    "20000x100 h256-256": (20_000, 100, (256, 256)),
}


def data(size: tuple[int, int, tuple[int, ...]], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_classification

    n, d, hidden = size
    X, y = make_classification(
        n, d, n_informative=min(10, d), n_classes=3, class_sep=0.7, random_state=seed
    )
    return {"X": X.astype("float32"), "y": y, "hidden": hidden}


def values(size: tuple[int, int, tuple[int, ...]], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_regression

    n, d, hidden = size
    X, y = make_regression(n, d, n_informative=min(10, d), noise=1.0, random_state=seed)
    return {"X": X.astype("float32"), "y": (y / y.std()).astype("float32"), "hidden": hidden}


def settings(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "hidden_layer_sizes": data["hidden"], "max_iter": EPOCHS, "batch_size": 200,
        "random_state": 0,
    }  # fmt: skip


def ours(data: dict[str, Any]) -> Any:
    from groundstate import MLPClassifier

    model = MLPClassifier(n_iter_no_change=float("inf"), **settings(data))
    return model.fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    import warnings

    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier(n_iter_no_change=EPOCHS, **settings(data))
        return model.fit(data["X"], data["y"])


def our_values(data: dict[str, Any]) -> Any:
    from groundstate import MLPRegressor

    model = MLPRegressor(n_iter_no_change=float("inf"), **settings(data))
    return model.fit(data["X"], data["y"])


def sklearn_values(data: dict[str, Any]) -> Any:
    import warnings

    from sklearn.neural_network import MLPRegressor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPRegressor(n_iter_no_change=EPOCHS, **settings(data))
        return model.fit(data["X"], data["y"])


def skorch(data: dict[str, Any]) -> Any:
    import torch
    from skorch import NeuralNetClassifier
    from torch import nn

    torch.manual_seed(0)
    sizes = (data["X"].shape[1], *data["hidden"])
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(sizes[-1], 3))
    model = NeuralNetClassifier(
        net, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=1e-3, batch_size=200,
        max_epochs=EPOCHS, train_split=None, iterator_train__shuffle=True, verbose=0,
    )  # fmt: skip
    return model.fit(data["X"], data["y"])


CLASSIFIER = Benchmark(
    name="mlp-classifier",
    title="MLPClassifier.fit, 20 epochs of batches of 200",
    sizes=SIZES,
    data=data,
    ours=ours,
    peers={
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        "skorch": Peer(skorch, "skorch", "skorch"),
    },
    score=lambda data, model: float(model.score(data["X"], data["y"])),
    score_name="accuracy",
    target=1.0,
)

REGRESSOR = Benchmark(
    name="mlp-regressor",
    title="MLPRegressor.fit, 20 epochs of batches of 200",
    sizes=SIZES,
    data=values,
    ours=our_values,
    peers={"scikit-learn": Peer(sklearn_values, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.score(data["X"], data["y"])),
    score_name="r2",
    target=1.0,
)
