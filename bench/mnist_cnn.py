"""A small convolutional network on digits of 28 x 28 against skorch and Keras 3: same network and epochs."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

EPOCHS, BATCH, RATE = 2, 64, 1e-3


def data(size: int, seed: int) -> dict[str, Any]:
    import numpy as np
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).choice(len(X), size, replace=False)
    pictures = zoom(X[rows].reshape(-1, 8, 8) / 16, (1, 3.5, 3.5), order=1)
    return {"X": pictures[:, None].astype(np.float32), "y": y[rows].astype(np.int64)}


def network() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip


def ours(data: dict[str, Any]) -> Any:
    from groundstate import ImageClassifier

    return ImageClassifier(
        network, augment="none", max_epochs=EPOCHS, batch_size=BATCH, optimizer="adam", lr=RATE,
        weight_decay=0.0, val_fraction=0.0, schedule=None, random_state=0, device="cpu",
    ).fit(data["X"], data["y"]).predict  # fmt: skip


def skorch(data: dict[str, Any]) -> Any:
    import torch
    from skorch import NeuralNetClassifier
    from torch import nn

    torch.manual_seed(0)
    return NeuralNetClassifier(
        network(), criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=RATE,
        max_epochs=EPOCHS, batch_size=BATCH, train_split=None, iterator_train__shuffle=True,
        verbose=0,
    ).fit(data["X"], data["y"]).predict  # fmt: skip


def keras(data: dict[str, Any]) -> Any:
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras as library

    layers = library.layers
    library.utils.set_random_seed(0)
    first = {"data_format": "channels_first"}
    model = library.Sequential([
        library.Input((1, 28, 28)),
        layers.Conv2D(16, 3, padding="same", activation="relu", **first),
        layers.MaxPooling2D(2, **first),
        layers.Conv2D(32, 3, padding="same", activation="relu", **first),
        layers.MaxPooling2D(2, **first),
        layers.Flatten(),
        layers.Dense(10),
    ])  # fmt: skip
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(library.optimizers.Adam(RATE), loss)
    model.fit(data["X"], data["y"], batch_size=BATCH, epochs=EPOCHS, verbose=0)
    return lambda X: model.predict(X, verbose=0).argmax(1)


MNIST_CNN = Benchmark(
    name="mnist-cnn",
    title="two epochs of a small CNN on pictures of 28 x 28",
    sizes={"200": 200, "600": 600, "1700": 1_700},
    data=data,
    ours=ours,
    peers={"skorch": Peer(skorch, "skorch", "skorch"), "Keras": Peer(keras, "keras", "keras")},
    score=lambda data, predict: float((predict(data["X"]) == data["y"]).mean()),
    score_name="accuracy",
    better="high",
    target=1.0,
)
