"""Linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests.contracts.math_rows.base import Row
from torch import Tensor

from groundstate import linalg


def general(rng: np.random.Generator) -> tuple[Any]:
    return (rng.normal(size=(3, 3)) + 3 * np.eye(3),)


def definite(rng: np.random.Generator) -> tuple[Any]:
    B = rng.normal(size=(3, 3))
    return (B @ B.T + np.eye(3),)


def to_definite(B: Tensor) -> tuple[Tensor]:
    return (B @ B.T + torch.eye(3),)


def spd(name: str, call: Any) -> Row:
    return Row(name, call, definite, ("A",), valid=to_definite, free=general)


def asked(name: str, call: Any) -> Row:
    return Row(name, call, general, ("A",), gradient=False)


ROWS = [
    spd("linalg.logm", linalg.logm),
    spd("linalg.sqrtm", linalg.sqrtm),
    spd("linalg.inv_sqrtm", linalg.inv_sqrtm),
    spd("linalg.powm", lambda A: linalg.powm(A, 1.7)),
    spd("linalg.spd_function", lambda A: linalg.spd_function(A, torch.log1p)),
    spd("linalg.cholesky_jitter", linalg.cholesky_jitter),
    spd("linalg.eig_report", lambda A: linalg.eig_report(A).values),
    Row("linalg.lu_nopivot", linalg.lu_nopivot, general, ("A",)),
    Row("linalg.adjugate", linalg.adjugate, general, ("A",)),
    Row("linalg.exp_series", linalg.exp_series, general, ("A",)),
    Row(
        "linalg.log_series",
        linalg.log_series,
        lambda rng: (np.eye(3) + 0.1 * rng.normal(size=(3, 3)),),
        ("A",),
    ),
    asked("linalg.is_symmetric", linalg.is_symmetric),
    asked("linalg.is_orthogonal", linalg.is_orthogonal),
    asked("linalg.is_positive_definite", linalg.is_positive_definite),
    asked("linalg.is_diagonally_dominant", linalg.is_diagonally_dominant),
    asked("linalg.is_diagonalizable", linalg.is_diagonalizable),
    asked("linalg.is_singular", linalg.is_singular),
    Row("linalg.rotation", linalg.rotation, lambda rng: (rng.normal(size=4),), ("theta",)),
    Row(
        "linalg.svd_flip",
        linalg.svd_flip,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(3, 5))),
        ("U", "Vh"),
    ),
]
