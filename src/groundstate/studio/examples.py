"""Small fits to begin with: seconds each, on data that scikit-learn ships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_moons

from groundstate.registry import models
from groundstate.studio.jobs import Fit

Data = Callable[[], tuple[Any, Any]]


@dataclass(frozen=True)
class Example:
    """Data, a model and its settings.

    Attributes
    ----------
    name, title, words : how it is called, what it is
    model : registered name
    data : rows and labels
    settings : parameters of the model
    labelled : whether the model learns from the labels; they colour the points anyway
    epochs, rate : names of the parameters that count epochs and set the learning rate
    """

    name: str
    title: str
    words: str
    model: str
    data: Data
    settings: dict[str, Any]
    epochs: str
    rate: str
    labelled: bool = False

    def fit(self, settings: dict[str, float]) -> Fit:
        """The fit with these epochs, learning rate and seed in place of its own."""
        own = {
            **self.settings,
            **({self.epochs: int(settings["epochs"])} if "epochs" in settings else {}),
            **({self.rate: float(settings["rate"])} if "rate" in settings else {}),
            "random_state": int(settings.get("seed", 0)),
        }

        def run(callbacks: list[Any]) -> tuple[Any, Any, Any]:
            X, y = self.data()
            model = models[self.model].obj(**own, callbacks=callbacks)
            return model.fit(X, y if self.labelled else None), X, y

        return run


def _pictures() -> tuple[Any, Any]:
    """Digits of 16 x 16 pixels: the 8 x 8 ones, drawn larger, so that layers have maps to show."""
    from scipy.ndimage import zoom

    digits = load_digits()
    large = zoom(digits.images / 16.0, (1, 2, 2), order=1, grid_mode=True, mode="nearest")
    return np.clip(large, 0, 1)[:, None].astype(np.float32), digits.target


def _digits() -> tuple[Any, Any]:
    digits = load_digits()
    return (digits.images / 16.0).astype(np.float32), digits.target


def _moons() -> tuple[Any, Any]:
    X, y = make_moons(600, noise=0.09, random_state=0)
    return X, y


EXAMPLES: dict[str, Example] = {
    example.name: example
    for example in (
        Example(
            "digits-classifier",
            "Digits, named by a convolutional network",
            "1,797 pictures of 16 × 16 pixels; then draw a digit and look inside.",
            "ImageClassifier",
            _pictures,
            {
                "network": "cnn",
                "network_params": {"channels": (8, 16, 32), "head": "gap"},
                "max_epochs": 10,
                "lr": 1e-2,
                "batch_size": 64,
            },
            "max_epochs",
            "lr",
            labelled=True,
        ),
        Example(
            "digits-vae",
            "Digits, as two numbers and back: a VAE",
            "1,797 pictures of 8 × 8 pixels; then move in the plane of codes.",
            "VAE",
            _digits,
            {
                "n_components": 2,
                "likelihood": "bernoulli",
                "hidden_layer_sizes": (128, 64),
                "learning_rate_init": 3e-3,
                "max_iter": 60,
            },
            "max_iter",
            "learning_rate_init",
        ),
        Example(
            "moons-flow",
            "Two moons, as the density of a flow",
            "600 points of the plane; then see the energy and how inference descends it.",
            "NormalizingFlow",
            _moons,
            {"max_iter": 40, "learning_rate_init": 5e-3},
            "max_iter",
            "learning_rate_init",
        ),
    )
}
