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


def system(rng: np.random.Generator) -> tuple[Any, Any]:
    return definite(rng)[0], rng.normal(size=(3, 2))


def blocks(rng: np.random.Generator) -> tuple[Any, ...]:
    A = rng.normal(size=(5, 5)) + 5 * np.eye(5)
    return A[:3, :3], A[:3, 3:], A[3:, :3], A[3:, 3:]


def diagonal_and_low_rank(rng: np.random.Generator) -> tuple[Any, ...]:
    return 1 + rng.random(6), rng.normal(size=(6, 2))


def white(method: str) -> Row:
    def call(X: Any) -> Any:
        map = linalg.whitening(X, method)
        return map.mean, map.transform(X)

    return Row(f"linalg.whitening:{method}", call, lambda rng: (rng.normal(size=(7, 3)),), ("X",))


def solved(method: str) -> Row:
    return Row(
        f"linalg.solve:{method}",
        lambda A, b: linalg.solve(A, b, method, tol=1e-6 if single(A) else 1e-14)[0],
        system,
        ("A", "b"),
        valid=lambda B, b: (*to_definite(B), b),
        free=lambda rng: (*general(rng), rng.normal(size=(3, 2))),
    )


def single(A: Any) -> bool:
    return getattr(A, "dtype", None) in (np.float32, torch.float32)


ROWS = [
    *(solved(method) for method in ("auto", "cholesky", "lu", "qr", "svd", "cg")),
    *(white(method) for method in ("zca", "pca", "cholesky")),
    Row("linalg.schur", linalg.schur, blocks, ("A", "B", "C", "D")),
    Row("linalg.block_inverse", linalg.block_inverse, blocks, ("A", "B", "C", "D")),
    Row("linalg.logdet_lemma", linalg.logdet_lemma, diagonal_and_low_rank, ("d", "U")),
    Row(
        "linalg.woodbury_solve",
        linalg.woodbury_solve,
        lambda rng: (*diagonal_and_low_rank(rng), rng.normal(size=(6, 2))),
        ("d", "U", "b"),
    ),
    Row(
        "linalg.low_rank",
        lambda A: linalg.low_rank(A, 2, "exact"),
        lambda rng: (rng.normal(size=(5, 4)),),
        ("A",),
    ),
    Row(
        "linalg.low_rank:randomised",
        lambda A: linalg.low_rank(A, 2, "randomised").s,
        lambda rng: (rng.normal(size=(9, 7)),),
        ("A",),
    ),
    Row(
        "linalg.compress_image",
        lambda image: linalg.compress_image(image, 2).image,
        lambda rng: (rng.random((5, 4)),),
        ("image",),
        batched=False,
    ),
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
