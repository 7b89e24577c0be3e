"""Few eigenvalues and singular values of matrices that are known by their products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import random_array
from torch import Tensor

from groundstate.math.linalg.lanczos import lanczos
from groundstate.math.linalg.range_finder import CentredRows, orthonormal, randomized_svd
from groundstate.models.arrays import tensor


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def symmetric(kind: str, n: int) -> Tensor:
    if kind == "random":
        A = torch.randn(n, n, generator=generator(), dtype=torch.float64)
        return A @ A.T
    if kind == "rank three":
        B = torch.randn(n, 3, generator=generator(), dtype=torch.float64)
        return B @ B.T
    if kind == "repeated":
        values = torch.cat([torch.full((3,), 5.0), torch.rand(n - 3, generator=generator())])
        return torch.diag(values.double())
    return torch.diag(torch.linspace(1, 2, n).double())  # flat


@pytest.mark.parametrize(("kind", "n", "k"), [
    ("random", 50, 5), ("random", 30, 30), ("random", 400, 60), ("rank three", 100, 6),
    ("repeated", 500, 4), ("flat", 2000, 5), ("random", 1, 1),
])  # fmt: skip
def test_lanczos(kind: str, n: int, k: int) -> None:
    A = symmetric(kind, n)
    start = torch.randn(n, generator=generator(1), dtype=torch.float64)
    values, V, converged = lanczos(lambda v: A @ v, start, k)
    expected = torch.linalg.eigvalsh(A).flip(0)[:k]
    scale = float(expected[0])
    assert converged
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-10 * scale)
    torch.testing.assert_close(A @ V, V * values, rtol=0, atol=1e-7 * scale)
    torch.testing.assert_close(V.T @ V, torch.eye(k).double(), rtol=0, atol=1e-10)


def test_lanczos_says_when_it_ran_out_of_products() -> None:
    A = symmetric("flat", 2000)
    start = torch.randn(2000, generator=generator(1), dtype=torch.float64)
    assert not lanczos(lambda v: A @ v, start, 5, max_iter=20)[2]


@pytest.mark.parametrize("shape", [(80, 30), (30, 80)])
def test_randomized_svd(shape: tuple[int, int]) -> None:
    U, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(shape[0], 30)))
    V, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(shape[1], 30)))
    X = torch.from_numpy((U * 0.5 ** np.arange(30)) @ V.T)
    u, s, vt = randomized_svd(X, 4, generator=generator())
    np.testing.assert_allclose(s, 0.5 ** np.arange(4), rtol=1e-8)
    left = X - (u * s) @ vt
    assert float(left.norm()) == pytest.approx(np.sqrt((0.25 ** np.arange(4, 30)).sum()), rel=0.01)


def test_rows_are_centred_without_being_filled() -> None:
    S = random_array((40, 25), density=0.2, rng=np.random.default_rng(0), format="csr")
    X = torch.from_numpy(S.toarray())
    w = torch.rand(40, generator=generator(), dtype=torch.float64)
    dense = w.sqrt()[:, None] * (X - X.mean(0))
    sparse = CentredRows(tensor(S, torch.device("cpu")), X.mean(0), w.sqrt())
    for V in (torch.randn(25, 3).double(), torch.randn(25).double()):
        torch.testing.assert_close(sparse.dot(V), dense @ V)
    for U in (torch.randn(40, 3).double(), torch.randn(40).double()):
        torch.testing.assert_close(sparse.tdot(U), dense.T @ U)


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_smaller_gram_matrix_is_never_formed(
    shape: tuple[int, int], centred: bool, weighted: bool
) -> None:
    S = random_array(shape, density=0.2, rng=np.random.default_rng(0), format="csr")
    X = torch.from_numpy(S.toarray())
    root = torch.rand(shape[0], generator=generator(), dtype=torch.float64) if weighted else None
    mean = X.mean(0) if centred else None
    dense = X if mean is None else X - mean
    dense = dense if root is None else root[:, None] * dense
    v = torch.randn(25, generator=generator(), dtype=torch.float64)
    gram = dense.T @ dense if shape[0] > shape[1] else dense @ dense.T
    sparse = CentredRows(tensor(S, torch.device("cpu")), mean, root)
    torch.testing.assert_close(sparse.gram(v), gram @ v)
    torch.testing.assert_close(CentredRows(X, mean, root).gram(v), gram @ v)


def test_tall_blocks_become_orthonormal() -> None:
    Y = torch.randn(2**14, 6, generator=generator(), dtype=torch.float64)
    Y[:, 5] = Y[:, 4] + 1e-5 * Y[:, 5]
    Q = orthonormal(Y)
    torch.testing.assert_close(Q.T @ Q, torch.eye(6).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(Q @ (Q.T @ Y), Y)
    Y[:, 5] = Y[:, 4]  # no Cholesky factor
    torch.testing.assert_close(
        orthonormal(Y).T @ orthonormal(Y), torch.eye(6).double(), rtol=0, atol=1e-12
    )
