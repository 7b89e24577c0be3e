"""Distances and kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests.contracts.math_rows.base import Row
from torch import Tensor

from groundstate import distances, kernels


def two(rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.normal(size=(6, 3)), rng.normal(size=(4, 3))


def three(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    B = rng.normal(size=(3, 3))
    return rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), B @ B.T + np.eye(3)


def free(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    return rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.normal(size=(3, 3))


def definite(x: Tensor, y: Tensor, B: Tensor) -> tuple[Tensor, ...]:
    return x, y, B @ B.mT + torch.eye(3)


def process(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    return rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(3, 2))


ROWS = [
    Row("distances.mahalanobis", lambda X, Y, S: distances.mahalanobis(X, Y, cov=S), three,
        ("X", "Y", "cov"), valid=definite, free=free),
    Row("distances.mahalanobis by precision", lambda X, Y, S: distances.mahalanobis(X, Y, precision=S),
        three, ("X", "Y", "precision"), valid=definite, free=free),
    Row("distances.chi2_pvalue", lambda d: distances.chi2_pvalue(d, 3),
        lambda rng: (rng.uniform(0.5, 3, 4),), ("distance",)),
    Row("distances.hausdorff", distances.hausdorff, two, ("X", "Y")),
    Row("distances.hausdorff soft", lambda X, Y: distances.hausdorff(X, Y, soft=0.5), two, ("X", "Y")),
    Row("distances.contrast", distances.curse.contrast, two, ("X", "queries"), batched=False),
    Row("kernels.condition", lambda X, y, Xs: kernels.condition(kernels.RBF(0.8), X, y, Xs, 0.1),
        process, ("X", "y", "Xs"), batched=False),
    Row("kernels.smooth", lambda X, y, Xs: kernels.smooth(kernels.RBF(0.8), X, y, Xs), process,
        ("X", "y", "Xs"), batched=False),
]  # fmt: skip
