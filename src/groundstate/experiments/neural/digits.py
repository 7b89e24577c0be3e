"""Handwritten digits for the experiments on networks: rows, and how well an energy does on others."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import Energy
from groundstate.learn import NLL

Rows = dict[str, Tensor]


def digits(key: Key, train: int) -> tuple[Rows, Rows]:
    """The 8 × 8 digits in a random order: ``train`` rows to learn from, the others to judge by."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = key.numpy().permutation(len(X))
    x = torch.from_numpy((X[order] / 16).astype(np.float32))
    labels = torch.from_numpy(y[order])
    return {"x": x[:train], "y": labels[:train]}, {"x": x[train:], "y": labels[train:]}


def cross_entropy(energy: Energy, rows: Rows) -> float:
    """Mean of −log p(y | x), in evaluation mode."""
    training = energy.training
    with torch.no_grad():
        loss = NLL()(energy.eval(), rows).loss.double().mean()
    energy.train(training)
    return float(loss)


def share_right(energy: Energy, rows: Rows) -> float:
    """Share of rows whose label has the least energy, in evaluation mode; broken nets are wrong."""
    training = energy.training
    with torch.no_grad():
        e = energy.eval().table("y", x=rows["x"])
    energy.train(training)
    right = (e.argmin(1) == rows["y"]) & e.isfinite().all(1)
    return float(right.double().mean())
