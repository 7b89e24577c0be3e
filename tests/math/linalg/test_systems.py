"""Systems, low rank, blocks and whitening."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group
from torch import Tensor

from groundstate import linalg
from groundstate.errors import DataError
from groundstate.nn import Whiten

RNG = np.random.default_rng(0)


def spectrum(m: int, n: int, values: Any, seed: int = 0) -> np.ndarray:
    """A matrix with the given singular values."""
    values = np.asarray(values)
    U = ortho_group.rvs(m, random_state=seed)[:, : len(values)]
    V = ortho_group.rvs(n, random_state=seed + 1)[:, : len(values)]
    return (U * values) @ V.T


def spd(n: int, condition: float, seed: int = 0) -> np.ndarray:
    Q = ortho_group.rvs(n, random_state=seed)
    A = (Q * np.geomspace(1, condition, n)) @ Q.T
    return 0.5 * (A + A.T)


@pytest.mark.parametrize("rhs", [(), (3,)])
def test_methods_agree(rhs: tuple[int, ...]) -> None:
    A = spd(20, 1e3)
    x = RNG.normal(size=(20, *rhs))
    found = {m: linalg.solve(A, A @ x, m) for m in ("cholesky", "lu", "qr", "svd", "cg", "auto")}
    for method, (y, info) in found.items():
        assert y.shape == x.shape
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-9)
        assert info.residual < 1e-11 and info.condition == pytest.approx(1e3, rel=1e-2)
        if method != "cg":
            np.testing.assert_allclose(y, found["svd"][0], atol=1e-12)
    assert found["auto"][1].method == "cholesky"
    assert "method='cg'" in repr(found["cg"][1]) and found["cg"][1].steps <= 200


def test_auto_chooses() -> None:
    A = RNG.normal(size=(4, 4))
    assert linalg.solve(A, A[0])[1].method == "lu"
    assert linalg.solve(A @ A.T, A[0])[1].method == "cholesky"
    assert linalg.solve(A[:, :2], A[0])[1].method == "svd"
    assert linalg.solve(np.diag([1.0, -1.0]), np.ones(2))[1].method == "lu"
    assert linalg.solve(np.ones((2, 2)), np.ones(2))[1].method == "svd"
    batch = np.stack([A, A @ A.T, np.ones((4, 4))])
    b = RNG.normal(size=(3, 4))
    x, info = linalg.solve(batch, b)
    assert info.method.tolist() == ["lu", "cholesky", "svd"]
    for i in range(3):
        np.testing.assert_allclose(x[i], linalg.solve(batch[i], b[i])[0], atol=1e-12)
    assert info.residual.shape == (3,) and info.condition.shape == (3,)


@pytest.mark.parametrize("shape", [(6, 6), (9, 5), (5, 9)])
@pytest.mark.parametrize("rank", [2, 5])
def test_rank_deficient_systems_are_those_of_numpy(shape: tuple[int, int], rank: int) -> None:
    A = RNG.normal(size=(shape[0], rank)) @ RNG.normal(size=(rank, shape[1]))
    b = RNG.normal(size=(shape[0], 2))
    exact = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(linalg.solve(A, b)[0], exact, atol=1e-11)
    if shape == (9, 5) and rank == 5:
        np.testing.assert_allclose(linalg.solve(A, b, "qr")[0], exact, atol=1e-11)


def test_gradients_of_every_method() -> None:
    B = torch.tensor(RNG.normal(size=(2, 3, 3)), requires_grad=True)
    b = torch.tensor(RNG.normal(size=(2, 3)), requires_grad=True)
    for method in ("cholesky", "lu", "qr", "svd", "cg", "auto"):
        call = lambda B, b, m=method: linalg.solve(B @ B.mT + torch.eye(3), b, m)[0]
        assert torch.autograd.gradcheck(call, (B, b))
    call = lambda B, b: linalg.solve(B @ B.mT + torch.eye(3), b, "cg", tol=1e-14)[0]
    assert torch.autograd.gradgradcheck(call, (B, b), atol=1e-5)
    tall = torch.tensor(RNG.normal(size=(5, 2)), requires_grad=True)
    c = torch.tensor(RNG.normal(size=5), requires_grad=True)
    assert torch.autograd.gradcheck(lambda A, c: linalg.solve(A, c)[0], (tall, c))
    assert torch.autograd.gradcheck(lambda A, c: linalg.solve(A.mT, c[:2])[0], (tall, c))
    same = torch.eye(3).double().requires_grad_()  # repeated singular values
    assert torch.autograd.gradcheck(lambda A: linalg.solve(A, c.detach()[:3], "svd")[0], (same,))


def test_what_cannot_be_solved_says_so() -> None:
    A = np.ones((3, 3))
    for method in ("cholesky", "lu", "qr"):
        with pytest.raises(np.linalg.LinAlgError, match="svd"):
            linalg.solve(A if method != "qr" else np.zeros((3, 3)), np.ones(3), method)
    with pytest.raises(np.linalg.LinAlgError, match="symmetric positive definite"):
        linalg.solve([[2.0, 1.0], [0.0, 2.0]], [1.0, 1.0], "cholesky")
    with pytest.raises(np.linalg.LinAlgError, match="conjugate gradients stopped"):
        linalg.solve(spd(50, 1e8), np.ones(50), "cg", max_iter=3)
    with pytest.raises(ValueError, match="needs a square A"):
        linalg.solve(np.ones((3, 2)), np.ones(3), "lu")
    with pytest.raises(ValueError, match="b must have 3 rows"):
        linalg.solve(A, np.ones(4))
    with pytest.raises(ValueError, match="method must be one of"):
        linalg.solve(A, np.ones(3), "magic")
    with pytest.raises(ValueError, match="b holds NaN"):
        linalg.solve(A, [1.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="by method='cg'"):
        linalg.solve(linalg.Laplacian(3), np.ones(3), "lu")
    with pytest.raises(ValueError, match="for real systems"):
        linalg.solve(np.eye(2) * 1j, np.ones(2), "cg")


def test_conjugate_gradients_of_many_matrices() -> None:
    A = np.stack([spd(8, 10.0, seed) for seed in range(5)])
    b = RNG.normal(size=(5, 8, 2))
    x, info = linalg.solve(A, b, "cg")
    np.testing.assert_allclose(x, np.linalg.solve(A, b), atol=1e-10)
    assert info.condition.shape == (5,)
    zero = linalg.solve(np.eye(3), np.zeros(3), "cg")
    assert zero[0].tolist() == [0.0, 0.0, 0.0] and zero[1].condition == 1.0


def test_storage_of_the_photograph() -> None:
    image = RNG.random((450, 333))
    stored = {k: linalg.low_rank(image, k, "exact") for k in (1, 5, 20, 50)}
    assert [found.storage for found in stored.values()] == [784, 3920, 15680, 39200]
    s = np.linalg.svd(image, compute_uv=False)
    for k, found in stored.items():
        assert found.error == pytest.approx(np.sqrt((s[k:] ** 2).sum()), rel=1e-10)
        assert np.linalg.norm(image - found.to_dense()) == pytest.approx(found.error, rel=1e-10)
    assert image.size == 149850 and round(39200 / 149850, 4) == 0.2616
    even = max(k for k in range(1, 333) if k * (1 + 450 + 333) <= image.size)
    assert even == 191
    assert linalg.low_rank(image, 333).error < 1e-10


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (400, 30), (30, 400)])
@pytest.mark.parametrize("method", ["exact", "randomised"])
def test_low_rank(shape: tuple[int, int], method: str) -> None:
    values = 1 / np.arange(1, 31)
    A = spectrum(*shape, values)
    U, s, V = found = linalg.low_rank(A, 3, method)
    loss = 1e-10 if method == "exact" else 0.01
    tail = np.sqrt((values[3:] ** 2).sum())
    assert found.error == pytest.approx(tail, rel=loss)
    np.testing.assert_allclose(s, values[:3], rtol=loss)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
    assert np.linalg.norm(A - found.to_dense()) == pytest.approx(found.error, rel=1e-8)
    assert (np.take_along_axis(U, np.abs(U).argmax(0)[None], 0) > 0).all()
    assert "k=3" in repr(found)


def test_low_rank_of_a_matrix_that_is_of_low_rank() -> None:
    A = spectrum(300, 200, [5.0, 1.0, 1e-3])
    for method in ("exact", "randomised", "auto"):
        found = linalg.low_rank(A, 3, method)
        assert found.error < 1e-12
        np.testing.assert_allclose(found.s, [5.0, 1.0, 1e-3], rtol=1e-9)
    tall = spectrum(300, 20, np.geomspace(1, 1e-9, 20))  # squaring would lose the small ones
    np.testing.assert_allclose(
        linalg.low_rank(tall, 15).s, np.geomspace(1, 1e-9, 20)[:15], rtol=1e-5
    )


def test_low_rank_batches_seeds_and_gradients() -> None:
    A = RNG.normal(size=(2, 3, 80, 60))
    whole = linalg.low_rank(A, 4, "randomised")
    part = linalg.low_rank(A[1, 2], 4, "randomised")
    np.testing.assert_allclose(whole.s[1, 2], part.s, atol=1e-12)
    np.testing.assert_allclose(whole.to_dense()[1, 2], part.to_dense(), atol=1e-11)
    assert whole.error.shape == (2, 3)
    other = linalg.low_rank(A[1, 2], 4, "randomised", random_state=1)
    assert not np.array_equal(other.s, part.s)
    again = linalg.low_rank(A[1, 2], 4, "randomised", random_state=np.random.default_rng(3))
    assert again.s.shape == (4,)
    X = torch.tensor(spectrum(30, 25, 2.0 ** -np.arange(25)), requires_grad=True)
    (slope,) = torch.autograd.grad(linalg.low_rank(X, 2, "randomised").s.sum(), X)
    (exact,) = torch.autograd.grad(torch.linalg.svdvals(X)[:2].sum(), X)
    torch.testing.assert_close(slope, exact, atol=1e-9, rtol=0)
    assert torch.autograd.gradcheck(
        lambda X: linalg.low_rank(X, 2, "exact").to_dense(), (X[:4, :3].detach().requires_grad_(),)
    )
    C = torch.tensor(RNG.normal(size=(20, 8)) + 1j * RNG.normal(size=(20, 8)))
    full = linalg.low_rank(C, 8)
    torch.testing.assert_close(full.to_dense(), C)


def test_low_rank_bad_input() -> None:
    A = np.ones((4, 3))
    for k in (0, 4):
        with pytest.raises(ValueError, match="k must lie between 1 and 3"):
            linalg.low_rank(A, k)
    with pytest.raises(ValueError, match="method must be one of"):
        linalg.low_rank(A, 1, "fast")
    with pytest.raises(ValueError, match="must not be negative"):
        linalg.low_rank(A, 1, n_iter=-1)
    zero = linalg.low_rank(np.zeros((50, 40)), 2, "randomised")
    assert zero.error == 0.0 and zero.s.tolist() == [0.0, 0.0]


def test_images() -> None:
    grey, colour = RNG.random((30, 20)), RNG.random((30, 20, 3))
    found = linalg.compress_image(colour, 4)
    assert found.image.shape == colour.shape and found.storage == 3 * 4 * 51
    assert np.linalg.norm(found.image - colour) == pytest.approx(found.error)
    np.testing.assert_allclose(found.image[..., 1], linalg.low_rank(colour[..., 1], 4).to_dense())
    assert linalg.compress_image(grey, 20).error < 1e-12
    assert linalg.compress_image((255 * grey).astype(np.uint8), 2).image.dtype == np.float64
    with pytest.raises(ValueError, match="image must be"):
        linalg.compress_image(np.ones(3), 1)


def test_blocks() -> None:
    M = np.array(
        [[5.0, 8, 4], [8, 17, 8], [4, 8, 4]]
    )  # (x, z) for x = Wz + noise, W = (1, 2), sd 2
    W, latent = np.array([[1.0], [2.0]]), 4.0
    np.testing.assert_array_equal(M[:2, :2], latent * W @ W.T + np.eye(2))
    np.testing.assert_array_equal(M[:2, 2:], latent * W)
    parts = M[:2, :2], M[:2, 2:], M[2:, :2], M[2:, 2:]
    found = linalg.block_inverse(*parts)
    np.testing.assert_allclose(found.to_dense(), np.linalg.inv(M), atol=1e-12)
    S = linalg.schur(*parts)
    np.testing.assert_allclose(
        S, [[4 - latent * W[:, 0] @ np.linalg.solve(M[:2, :2], latent * W)[:, 0] / 1]]
    )
    assert np.linalg.det(M) == pytest.approx(np.linalg.det(M[:2, :2]) * np.linalg.det(S))
    A = RNG.normal(size=(6, 7, 7)) + 7 * np.eye(7)
    cut = A[:, :3, :3], A[:, :3, 3:], A[:, 3:, :3], A[:, 3:, 3:]
    np.testing.assert_allclose(linalg.block_inverse(*cut).to_dense(), np.linalg.inv(A), atol=1e-12)
    assert isinstance(linalg.block_inverse(*map(torch.tensor, cut)).to_dense(), Tensor)
    with pytest.raises(ValueError, match=r"B must be \(2, 1\)"):
        linalg.block_inverse(np.eye(2), np.ones((1, 2)), np.ones((1, 2)), np.eye(1))


@pytest.mark.parametrize("general", [False, True])
def test_woodbury(general: bool) -> None:
    d, U, b = 1 + RNG.random(9), RNG.normal(size=(9, 2)), RNG.normal(size=(9, 3))
    V, C = (RNG.normal(size=(9, 2)), RNG.normal(size=(2, 2))) if general else (None, None)
    A = np.diag(d) + (U @ C @ V.T if general else U @ U.T)
    np.testing.assert_allclose(
        linalg.woodbury_solve(d, U, b, V, C), np.linalg.solve(A, b), atol=1e-12
    )
    np.testing.assert_allclose(
        linalg.woodbury_solve(d, U, b[:, 0], V, C), np.linalg.solve(A, b[:, 0]), atol=1e-12
    )
    assert linalg.logdet_lemma(d, U, V, C) == pytest.approx(np.linalg.slogdet(A)[1])
    downdate = np.diag(d) - 0.05 * U @ U.T
    np.testing.assert_allclose(
        linalg.woodbury_solve(d, U, b, C=-0.05 * np.eye(2)),
        np.linalg.solve(downdate, b),
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="d must have 9 entries"):
        linalg.woodbury_solve(d[1:], U, b)
    with pytest.raises(ValueError, match="b must have 9 rows"):
        linalg.woodbury_solve(d, U, b[1:])
    with pytest.raises(ValueError, match=r"C must be \(2, 2\)"):
        linalg.logdet_lemma(d, U, C=np.eye(3))
    with pytest.raises(ValueError, match=r"V must be \(9, 2\)"):
        linalg.logdet_lemma(d, U, V=U[:, :1])
    with pytest.raises(np.linalg.LinAlgError, match="d has a zero"):
        linalg.logdet_lemma(0 * d, U)


TABLE = RNG.normal(size=(200, 3)) @ np.array([[5.0, 1, 0], [0, 1, 0.3], [0, 0, 0.1]]) + [10, -3, 7]


@pytest.mark.parametrize("method", ["zca", "pca", "cholesky"])
def test_whitening(method: str) -> None:
    map = linalg.whitening(TABLE, method)
    Z = map.transform(TABLE)
    np.testing.assert_allclose(Z.mean(0), 0, atol=1e-10)
    np.testing.assert_allclose(Z.T @ Z / len(Z), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(map.inverse_transform(Z), TABLE, atol=1e-10)
    W = map.matrix
    if method == "zca":
        np.testing.assert_allclose(W, W.T, atol=1e-12)
        np.testing.assert_allclose(W, linalg.inv_sqrtm(np.cov(TABLE.T, ddof=0)), atol=1e-8)
    if method == "cholesky":
        np.testing.assert_allclose(np.triu(W, 1), 0, atol=1e-12)
        np.testing.assert_allclose(map.inverse, np.linalg.cholesky(np.cov(TABLE.T, ddof=0)))
    weight = RNG.integers(1, 4, size=200).astype(float)
    repeated = linalg.whitening(np.repeat(TABLE, weight.astype(int), 0), method)
    np.testing.assert_allclose(
        linalg.whitening(TABLE, method, sample_weight=weight).matrix, repeated.matrix, atol=1e-9
    )
    layer = Whiten(3, method).double().fit(torch.tensor(TABLE))
    np.testing.assert_allclose(layer(torch.tensor(TABLE)), Z, atol=1e-8)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e8 / 3])
def test_a_constant_column_is_not_whitened(value: float) -> None:
    """Rounding of its mean gave it a spread of 1e-16, and W an entry of 1e15."""
    X = np.column_stack([TABLE[:100, 0], np.full(100, value)])
    with pytest.raises(DataError, match="rank 1 of 2"):
        linalg.whitening(X)
    assert np.isfinite(linalg.whitening(X, eps=1e-3).transform(X)).all()


def test_whitening_is_that_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    theirs = PCA(whiten=True).fit_transform(TABLE)
    ours = linalg.whitening(TABLE, "pca").transform(TABLE)
    scale = np.sqrt((len(TABLE) - 1) / len(TABLE))  # theirs has ddof=1
    np.testing.assert_allclose(np.abs(ours) * scale, np.abs(theirs), atol=1e-10)


def test_condition_falls_down_to_one() -> None:
    centred = TABLE - TABLE.mean(0)
    tables = [TABLE, centred, centred / centred.std(0), linalg.whitening(TABLE).transform(TABLE)]
    ones = np.ones((len(TABLE), 1))  # the column of the intercept
    numbers = [float(torch.linalg.cond(torch.tensor(np.hstack([ones, X])))) for X in tables]
    assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == 4
    assert numbers[-1] == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("method", ["zca", "pca", "cholesky"])
def test_whitening_has_a_gradient(method: str) -> None:
    X = torch.tensor(RNG.normal(size=(6, 2)) @ np.array([[3.0, 1], [0, 1]]), requires_grad=True)
    call = lambda X: linalg.whitening(X, method, 0.1).transform(X)
    assert torch.autograd.gradcheck(call, (X,))
    if method == "zca":  # white rows: all eigenvalues repeat
        white = linalg.whitening(X.detach()).transform(X.detach()).requires_grad_()
        assert torch.autograd.gradcheck(lambda X: linalg.whitening(X).transform(X), (white,))


def test_whitening_bad_input() -> None:
    flat = np.column_stack([TABLE, TABLE[:, 0]])
    with pytest.raises(ValueError, match="rank 3 of 4"):
        linalg.whitening(flat)
    ridge = linalg.whitening(flat, eps=0.1)
    C = np.cov(flat.T, ddof=0) + 0.1 * np.eye(4)
    np.testing.assert_allclose(ridge.matrix @ C @ ridge.matrix.T, np.eye(4), atol=1e-10)
    with pytest.raises(ValueError, match="rank 1 of 3"):
        linalg.whitening(TABLE[:2])
    with pytest.raises(ValueError, match="rank 3 of 4"):
        linalg.whitening(np.column_stack([TABLE, np.full(200, 1e6 / 3)]))
    far = np.column_stack([TABLE[:, 0] + 1e9, 1e-6 * TABLE[:, 1]])  # scales do not matter
    Z = linalg.whitening(far).transform(far)
    np.testing.assert_allclose(Z.T @ Z / 200, np.eye(2), atol=1e-5)
    with pytest.raises(ValueError, match="method must be one of"):
        linalg.whitening(TABLE, "svd")
    with pytest.raises(ValueError, match="eps must not be negative"):
        linalg.whitening(TABLE, eps=-1.0)
    with pytest.raises(ValueError, match="sample_weight must be 200 numbers"):
        linalg.whitening(TABLE, sample_weight=-np.ones(200))
    with pytest.raises(ValueError, match="X must have 3 columns"):
        linalg.whitening(TABLE).transform(TABLE[:, :2])
