"""Results print in a few lines, whatever they hold, and as HTML in notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from groundstate import KMeans, LogisticRegression
from groundstate.energy import CentroidEnergy, LinearEnergy
from groundstate.infer import marginalise, minimise, sample
from groundstate.learn import L2, SoftMin, elbo, fit, learn_population
from groundstate.math.optim import minimize

N = 600


def _linear() -> tuple[LinearEnergy, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 3, generator=generator)
    return LinearEnergy(3, 2, scale=1.0), {"x": x, "y": (x[:, 0] > 0).long()}


def _minimum() -> Any:
    energy, data = _linear()
    return minimise(energy, "y", {"x": data["x"]})


def _free() -> Any:
    energy, data = _linear()
    return marginalise(energy, "y", {"x": data["x"]})


def _draws() -> Any:
    energy, data = _linear()
    return sample(energy, "y", {"x": data["x"]}, n=50, generator=torch.Generator().manual_seed(0))


def _history() -> Any:
    energy, data = _linear()
    return fit(energy, data, SoftMin(), penalty=L2(1.0))


def _population() -> Any:
    _, data = _linear()
    return learn_population(
        lambda generator: LinearEnergy(3, 2), {"lr": [0.01, 0.1, 1.0]}, data, epochs=2, seed=0
    )


def _elbo() -> Any:
    energy = CentroidEnergy(4, 3)
    return elbo(energy, torch.full((N, 4), 0.25), {"x": torch.zeros(N, 3)})


def _optimum() -> Any:
    return minimize(lambda x: (x**2).sum(), torch.ones(500))


def _model_history() -> Any:
    _, data = _linear()
    return LogisticRegression().fit(data["x"].numpy(), data["y"].numpy()).history_


def _clusters_history() -> Any:
    return KMeans(3, random_state=0).fit(_linear()[1]["x"].numpy()).history_


RESULTS = [
    _minimum, _free, _draws, _history, _population, _elbo, _optimum, _model_history,
    _clusters_history,
]  # fmt: skip


@pytest.mark.parametrize("make", RESULTS, ids=lambda make: make.__name__.strip("_"))
def test_a_result_prints_in_a_few_lines(make: Callable[[], Any]) -> None:
    result = make()
    text = repr(result)
    assert len(text) <= 800 and text.count("\n") <= 10, text
    assert text.startswith(type(result).__name__)
    assert "tensor(" not in text and "array(" not in text
    html = result._repr_html_()
    assert "<" in html and len(html) < 4000
