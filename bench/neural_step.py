"""Training steps of networks: the trainer, the loop written by hand, and other libraries' loops.

All take the same number of Adam steps from the same kind of start on the same rows; the score is
the training loss at the end. Steps of less than a million multiply-adds run on one thread.
"""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

RATE = 1e-3
# layer sizes, batch, rows, epochs
CASES = {
    "20-100-3": ((20, 100, 3), 200, 20_000, 10),
    "50-256-128-10": ((50, 256, 128, 10), 256, 25_600, 4),
    "784-1024-1024-10": ((784, 1024, 1024, 10), 512, 10_240, 2),
}


def data(case: tuple[Any, ...], seed: int) -> dict[str, Any]:
    import torch

    sizes, batch, rows, epochs = case
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, sizes[0], generator=generator)
    hidden = torch.tanh(x @ torch.randn(sizes[0], 16, generator=generator) / sizes[0] ** 0.5)
    y = (hidden @ torch.randn(16, sizes[-1], generator=generator)).argmax(1)
    return {"x": x, "y": y, "sizes": sizes, "batch": batch, "epochs": epochs}


def _threads(data: dict[str, Any]) -> Any:
    from itertools import pairwise

    from groundstate.compute.thread_policy import for_steps

    return for_steps(data["batch"] * sum(a * b for a, b in pairwise(data["sizes"])))


def _net(data: dict[str, Any]) -> Any:
    from itertools import pairwise

    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers: list[torch.nn.Module] = []
        for a, b in pairwise(data["sizes"]):
            layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])


def _loss(data: dict[str, Any], net: Any) -> float:
    import torch
    from torch.nn.functional import cross_entropy

    with torch.no_grad():
        return float(cross_entropy(net(data["x"]), data["y"]))


def ours(data: dict[str, Any]) -> float:
    from groundstate.energy import NetClassEnergy
    from groundstate.learn import SoftMin, Stochastic, fit

    net = _net(data)
    energy = NetClassEnergy(data["sizes"][0], data["sizes"][-1], net)
    solver = Stochastic(lr=RATE, batch_size=data["batch"], max_epochs=data["epochs"], tol=None)
    fit(energy, {"x": data["x"], "y": data["y"]}, SoftMin(), solver, random_state=0)
    return _loss(data, net)


def by_hand(data: dict[str, Any]) -> float:
    import torch
    from torch.nn.functional import cross_entropy

    net, batch, n = _net(data), data["batch"], len(data["x"])
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(0)
    with _threads(data):
        for _ in range(data["epochs"]):
            order = torch.randperm(n, generator=generator)
            x, y = data["x"][order], data["y"][order]
            for at in range(0, n, batch):
                loss = cross_entropy(net(x[at : at + batch]), y[at : at + batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return _loss(data, net)


def loader(data: dict[str, Any]) -> float:
    import torch
    from torch.nn.functional import cross_entropy

    net = _net(data)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, fused=True)
    rows = torch.utils.data.TensorDataset(data["x"], data["y"])
    batches = torch.utils.data.DataLoader(rows, data["batch"], shuffle=True)
    with _threads(data):
        for _ in range(data["epochs"]):
            for x, y in batches:
                loss = cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return _loss(data, net)


def sklearn(data: dict[str, Any]) -> float:
    import warnings

    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import log_loss
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        data["sizes"][1:-1], alpha=0.0, batch_size=data["batch"], learning_rate_init=RATE,
        max_iter=data["epochs"], n_iter_no_change=10**6, random_state=0,
    )  # fmt: skip
    x, y = data["x"].numpy(), data["y"].numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y)
    return float(log_loss(y, model.predict_proba(x), labels=np.arange(data["sizes"][-1])))


def skorch(data: dict[str, Any]) -> float:
    import torch
    from skorch import NeuralNetClassifier

    model = NeuralNetClassifier(
        _net(data), criterion=torch.nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=RATE,
        optimizer__fused=True, batch_size=data["batch"], max_epochs=data["epochs"],
        iterator_train__shuffle=True, train_split=None, verbose=0,
    )  # fmt: skip
    with _threads(data):
        model.fit(data["x"].numpy(), data["y"].numpy())
    return _loss(data, model.module_)


def keras(data: dict[str, Any]) -> float:
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras as library

    sizes = data["sizes"]
    library.utils.set_random_seed(0)
    model = library.Sequential(
        [library.Input((sizes[0],))]
        + [library.layers.Dense(n, activation="relu") for n in sizes[1:-1]]
        + [library.layers.Dense(sizes[-1])]
    )
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(library.optimizers.Adam(RATE), loss)
    x, y = data["x"].numpy(), data["y"].numpy()
    with _threads(data):
        model.fit(x, y, batch_size=data["batch"], epochs=data["epochs"], verbose=0)
        return float(model.evaluate(x, y, batch_size=4096, verbose=0))


NEURAL_STEP = Benchmark(
    name="neural-step",
    title="Adam steps on networks: the trainer, a hand-written loop and other libraries",
    sizes=CASES,
    data=data,
    ours=ours,
    peers={
        "torch loop": Peer(by_hand, "torch", "torch"),
        "torch DataLoader": Peer(loader, "torch", "torch"),
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        "skorch": Peer(skorch, "skorch", "skorch"),
        "Keras": Peer(keras, "keras", "keras"),
    },
    score=lambda data, loss: float(loss),
    score_name="training loss",
    target=1 / 1.05,
)
