"""Constructors run for shapes alone, and files open without the compiler being imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from groundstate import GaussianMixture, GaussianNB, KMeans, NearestNeighbors
from groundstate.energy import Energy
from groundstate.registry import energies
from groundstate.store.shapes import shapes_only

X = np.random.default_rng(0).normal(size=(30, 3))


def test_small_files_open_without_the_compiler(tmp_path: Path) -> None:
    models = [
        GaussianNB().fit(X, X[:, 0] > 0),
        GaussianMixture(2, random_state=0).fit(X),
        KMeans(2, random_state=0).fit(X),
        NearestNeighbors(metric="mahalanobis", metric_params={"VI": np.eye(3)}).fit(X),
    ]
    paths = [str(model.save(tmp_path / f"{k}.gs")) for k, model in enumerate(models)]
    code = f"""
import sys, groundstate
for path in {paths!r}:
    print(type(groundstate.load(path)).__name__)
    assert "torch._dynamo" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [type(model).__name__ for model in models]


@pytest.mark.parametrize("name", energies.names())
def test_shapes_are_those_of_the_real_thing(name: str) -> None:
    make = energies[name].make
    assert make is not None
    energy: Energy = make()
    try:
        with shapes_only():
            empty = type(energy)(**energy.config())  # type: ignore[operator]
    except (NotImplementedError, RuntimeError):
        return  # its constructor asks for values
    found = {k: v.shape for k, v in empty.state_dict().items()}
    assert found == {k: v.shape for k, v in energy.state_dict().items()}


def test_layers_have_neither_memory_nor_values() -> None:
    with shapes_only():
        layers = nn.Linear(10**6, 10**6), nn.Embedding(10**7, 10**4), nn.GRU(10**5, 10**5)
        square = 2.0 * torch.eye(10**6, 3)
    assert all(p.is_meta for layer in layers for p in layer.parameters())
    assert layers[0].weight.shape == (10**6, 10**6) and square.shape == (10**6, 3)


def test_tensors_that_exist_keep_their_values() -> None:
    real = torch.tensor([1.0, -2.0])
    with shapes_only():
        assert bool((real < 0).any()) and (2.0 * real).tolist() == [2.0, -4.0]
        with pytest.raises(RuntimeError, match="asks for values"):
            (torch.ones(3) > 0).all()
