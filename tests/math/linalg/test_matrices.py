"""Matrix functions, factors, eigenvalues and questions about matrices, with the numbers of the notes."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.linalg
import torch
from scipy.stats import ortho_group
from torch import Tensor

from groundstate import linalg
from groundstate.errors import Unreliable, Unsupported

A0 = np.array([[3.0, 1.0], [1.0, 2.0]])
JORDAN = np.array([[1.0, 1.0], [0.0, 1.0]])
RNG = np.random.default_rng(0)


def definite(n: int, *batch: int) -> np.ndarray:
    B = RNG.normal(size=(*batch, n, n))
    return B @ B.swapaxes(-1, -2) + 0.1 * np.eye(n)


def test_values_of_the_notes() -> None:
    log = [[1.0199234, 0.4304089], [0.4304089, 0.5895145]]
    np.testing.assert_allclose(linalg.logm(A0), log, atol=5e-8)
    near = [[0.1781156, 0.0961908], [0.0961908, -0.1104569]]
    np.testing.assert_allclose(linalg.logm([[1.2, 0.1], [0.1, 0.9]]), near, atol=5e-8)
    root = [[1.7013016, 0.3249197], [0.3249197, 1.3763819]]
    np.testing.assert_allclose(linalg.sqrtm(A0), root, atol=5e-8)
    inverse = [[0.6155367, -0.1453085], [-0.1453085, 0.7608452]]
    np.testing.assert_allclose(linalg.inv_sqrtm(A0), inverse, atol=5e-8)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_functions_are_those_of_scipy(n: int) -> None:
    A = definite(n)
    np.testing.assert_allclose(linalg.logm(A), scipy.linalg.logm(A), atol=1e-10)
    np.testing.assert_allclose(linalg.sqrtm(A), scipy.linalg.sqrtm(A), atol=1e-10)
    np.testing.assert_allclose(
        linalg.powm(A, -0.7), scipy.linalg.fractional_matrix_power(A, -0.7), atol=1e-9
    )
    np.testing.assert_allclose(linalg.inv_sqrtm(A) @ linalg.sqrtm(A), np.eye(n), atol=1e-10)
    np.testing.assert_allclose(scipy.linalg.expm(linalg.logm(A)), A, atol=1e-10)


def test_general_matrices_go_to_scipy_and_have_no_gradient() -> None:
    A = np.array([[2.0, 1.0], [0.3, 3.0]])
    for ours, theirs in ((linalg.logm, scipy.linalg.logm), (linalg.sqrtm, scipy.linalg.sqrtm)):
        np.testing.assert_allclose(ours(A), theirs(A), atol=1e-12)
        np.testing.assert_allclose(ours(np.stack([A, A.T]))[1], theirs(A.T), atol=1e-12)
    np.testing.assert_allclose(linalg.powm(A, 0.5), scipy.linalg.sqrtm(A), atol=1e-12)
    np.testing.assert_allclose(linalg.inv_sqrtm(A) @ linalg.sqrtm(A), np.eye(2), atol=1e-12)
    turn = linalg.rotation(3.0)  # eigenvalues near the cut, not on it
    np.testing.assert_allclose(linalg.logm(turn), [[0, -3], [3, 0]], atol=1e-12)
    with pytest.raises(Unsupported, match="symmetric positive definite matrices only"):
        linalg.logm(torch.tensor(A, requires_grad=True))
    with pytest.raises(np.linalg.LinAlgError, match="at or below zero"):
        linalg.sqrtm([[1.0, 2.0], [0.0, -1.0]])


@pytest.mark.parametrize("bad", [np.diag([1.0, 0.0]), np.diag([1.0, -1.0]), np.ones((3, 3))])
def test_eigenvalues_must_be_positive(bad: np.ndarray) -> None:
    for function in (linalg.logm, linalg.sqrtm, linalg.inv_sqrtm):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            function(bad)


def test_the_gradient_is_finite_where_eigenvalues_repeat() -> None:
    weight = torch.tensor(RNG.normal(size=(3, 3)))

    def value(E: Tensor) -> Tensor:
        A = torch.eye(3) * 2.0 + 0.5 * (E + E.T)
        return (linalg.logm(A) * weight).sum() + (linalg.sqrtm(A) @ weight).trace()

    E = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(value, (E,))
    assert torch.autograd.gradgradcheck(value, (E,), atol=1e-5)
    plain = (torch.eye(3, dtype=torch.float64)).requires_grad_()
    values, Q = torch.linalg.eigh(plain)
    ((Q * values.log()) @ Q.mH * weight).sum().backward()
    assert plain.grad is not None and not bool(torch.isfinite(plain.grad).all())


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2, 1.0])
def test_divided_differences_are_right_at_every_gap(gap: float) -> None:
    Q = ortho_group.rvs(4, random_state=1)
    A = torch.tensor((Q * np.array([1.0, 1.0 + gap, 1.0 + 2 * gap, 3.0])) @ Q.T)
    E = torch.tensor(definite(4))
    X = torch.nn.Parameter(A)
    (slope,) = torch.autograd.grad((linalg.sqrtm(X) * E).sum(), X, create_graph=True)
    exact = scipy.linalg.solve_sylvester(*(2 * [linalg.sqrtm(A).numpy()]), E.numpy())
    np.testing.assert_allclose(slope.detach(), exact, rtol=1e-9, atol=1e-9)
    (second,) = torch.autograd.grad((slope * E).sum(), X)
    R = linalg.sqrtm(A).numpy()  # R' R + R R' = E, so R'' R + R R'' = -2 R'R' for one direction E
    curved = scipy.linalg.solve_sylvester(R, R, -2 * exact @ exact)
    t = 1e-4
    by_steps = (
        (linalg.sqrtm(A + t * E) - 2 * linalg.sqrtm(A) + linalg.sqrtm(A - t * E)) / t**2
    ).numpy()
    np.testing.assert_allclose(curved, by_steps, atol=1e-4)
    # <E, D²f[E, E]> is the same number as the gradient of <E, Df[E]> in the direction E
    assert float((second * E).sum()) == pytest.approx(float((E.numpy() * curved).sum()), rel=1e-6)


def test_second_order_gradients() -> None:
    B = torch.tensor(RNG.normal(size=(2, 3, 3)), requires_grad=True)

    def value(B: Tensor) -> Tensor:
        return linalg.spd_function(B @ B.mT + torch.eye(3), torch.log, torch.reciprocal)

    assert torch.autograd.gradgradcheck(value, (B,), atol=1e-5)


def test_hermitian_matrices() -> None:
    B = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    A = torch.tensor(B @ B.conj().T + np.eye(3))
    R = linalg.sqrtm(A)
    torch.testing.assert_close(R @ R, A)
    free = torch.tensor(B, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda B: torch.view_as_real(linalg.logm(B @ B.mH + torch.eye(3))), (free,)
    )


def test_spd_function_wants_symmetric_matrices() -> None:
    with pytest.raises(ValueError, match="must be symmetric"):
        linalg.spd_function(JORDAN, torch.log)
    found = linalg.spd_function(np.diag([1.0, -2.0]), torch.exp, positive=False)
    np.testing.assert_allclose(found, np.diag(np.exp([1.0, -2.0])))
    for function in (linalg.logm, linalg.adjugate, linalg.cholesky_jitter, linalg.eig_report):
        with pytest.raises(ValueError, match=r"A must be square.*\(2, 3\)"):
            function(np.ones((2, 3)))
        with pytest.raises(ValueError, match="A must be a matrix"):
            function(np.ones(3))


def test_series() -> None:
    assert abs(linalg.exp_series([[1.0]], 20)[0, 0] - np.e) < 1e-15
    expm = torch.linalg.matrix_exp(torch.tensor(A0)).numpy()
    np.testing.assert_allclose(linalg.exp_series(A0, 40), expm, rtol=1e-12)
    sums = linalg.exp_series(A0, 5, partial=True)
    assert sums.shape == (5, 2, 2) and (sums[0] == np.eye(2)).all()
    np.testing.assert_allclose(sums[-1], linalg.exp_series(A0, 5))
    near = np.array([[1.2, 0.1], [0.1, 0.9]])
    np.testing.assert_allclose(linalg.log_series(near, 60), linalg.logm(near), atol=1e-12)
    with pytest.warns(Unreliable, match="spectral radius 2.618"):
        assert np.abs(linalg.log_series(A0, 60)).max() > 1e20
    for series in (linalg.exp_series, linalg.log_series):
        with pytest.raises(ValueError, match="terms must be at least 1"):
            series(near, 0)


def test_matrix_exponential() -> None:
    E = torch.linalg.matrix_exp(torch.tensor(A0))
    np.testing.assert_allclose(E, [[28.0654508, 14.8839437], [14.8839437, 13.1815071]], atol=5e-8)
    assert float(torch.linalg.det(E)) == pytest.approx(np.exp(5)) == pytest.approx(148.4131591)
    back = torch.linalg.matrix_exp(-torch.tensor(A0))
    torch.testing.assert_close(E @ back, torch.eye(2, dtype=torch.float64))


def test_cholesky_and_its_jitter() -> None:
    L, jitter = linalg.cholesky_jitter(A0)
    np.testing.assert_allclose(L, [[1.7320508, 0], [0.5773503, 1.2909944]], atol=5e-8)
    assert jitter == 0.0
    flat = np.ones((2, 2))
    L, jitter = linalg.cholesky_jitter(flat)
    assert jitter == 1e-10
    np.testing.assert_allclose(L @ L.T, flat + jitter * np.eye(2), atol=1e-15)
    assert linalg.cholesky_jitter(flat, jitter=0.5)[1] == 0.5
    batch = np.stack([A0, flat, 100 * flat])
    factors, used = linalg.cholesky_jitter(batch)
    np.testing.assert_allclose(used, [0.0, 1e-10, 1e-8])
    np.testing.assert_array_equal(factors[0], linalg.cholesky_jitter(A0)[0])
    assert linalg.cholesky_jitter(np.float32(flat))[1] == pytest.approx(1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite, even with 1e-07"):
        linalg.cholesky_jitter(np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match="must be symmetric"):
        linalg.cholesky_jitter(JORDAN)
    with pytest.raises(ValueError, match="jitter must not be negative"):
        linalg.cholesky_jitter(A0, jitter=-1.0)


def test_lu_without_pivoting() -> None:
    L, U = linalg.lu_nopivot(A0)
    np.testing.assert_allclose(L, [[1, 0], [1 / 3, 1]])
    np.testing.assert_allclose(U, [[3, 1], [0, 5 / 3]])
    with pytest.raises(np.linalg.LinAlgError, match="pivot 0 is zero"):
        linalg.lu_nopivot([[0.0, 1.0], [1.0, 0.0]])
    A = RNG.normal(size=(7, 7)) + 8 * np.eye(7)
    L, U = linalg.lu_nopivot(A)
    np.testing.assert_allclose(L @ U, A, atol=1e-13)
    assert (np.diag(L) == 1).all() and (np.triu(L, 1) == 0).all() and (np.tril(U, -1) == 0).all()
    assert np.prod(np.diag(U)) == pytest.approx(np.linalg.det(A))
    dominated = np.array([[1.0, 2.0], [3.0, 4.0]])  # dominance is enough, not needed
    L, U = linalg.lu_nopivot(dominated)
    np.testing.assert_allclose(L @ U, dominated)
    assert linalg.lu_nopivot([[1.0, 2.0], [2.0, 4.0]])[1][1, 1] == 0.0


def minors(A: np.ndarray) -> np.ndarray:
    n = len(A)
    out = np.empty((n, n))
    for i, j in product(range(n), repeat=2):
        rest = np.delete(np.delete(A, j, 0), i, 1)
        out[i, j] = (-1) ** (i + j) * (np.linalg.det(rest) if n > 1 else 1.0)
    return out


def test_adjugate() -> None:
    np.testing.assert_allclose(linalg.adjugate(A0), [[2, -1], [-1, 3]], atol=1e-14)
    for n in (1, 2, 3, 5):
        A = RNG.normal(size=(n, n))
        np.testing.assert_allclose(linalg.adjugate(A), minors(A), atol=1e-12)
        np.testing.assert_allclose(A @ linalg.adjugate(A), np.linalg.det(A) * np.eye(n), atol=1e-12)
    for rank in (3, 2, 1):
        A = RNG.normal(size=(4, rank)) @ RNG.normal(size=(rank, 4))
        found = linalg.adjugate(A)
        np.testing.assert_allclose(found, minors(A), atol=1e-12)
        np.testing.assert_allclose(A @ found, 0, atol=1e-12)
        assert np.linalg.matrix_rank(found, tol=1e-9) == (1 if rank == 3 else 0)


def test_the_gradient_of_the_determinant_is_the_adjugate_transposed() -> None:
    A = torch.tensor(RNG.normal(size=(4, 4)), requires_grad=True)
    (slope,) = torch.autograd.grad(torch.linalg.det(A), A)
    np.testing.assert_allclose(slope, linalg.adjugate(A).detach().T, atol=1e-12)
    for special in (
        torch.eye(3),
        torch.zeros(3, 3),
        torch.ones(3, 3),
        torch.diag(torch.arange(3.0)),
    ):
        assert torch.autograd.gradcheck(linalg.adjugate, (special.double().requires_grad_(),))


def test_eigenvalues() -> None:
    report = linalg.eig_report(A0)
    np.testing.assert_allclose(report.values, [1.3819660113, 3.6180339887], atol=5e-11)
    assert report.condition == pytest.approx(1.0) and not report.defective
    A = RNG.normal(size=(5, 5))
    report = linalg.eig_report(A)
    assert np.iscomplexobj(report.values) and report.residual < 1e-13
    assert report.values.sum() == pytest.approx(np.trace(A))
    assert np.prod(report.values) == pytest.approx(np.linalg.det(A))
    with pytest.warns(Unreliable, match="is defective"):
        assert linalg.eig_report(JORDAN).defective
    assert "defective=False" in repr(linalg.eig_report(A0))


@pytest.mark.parametrize("e", [1e-4, 1e-8, 1e-12])
def test_eigenvectors_of_a_disturbed_jordan_block(e: float) -> None:
    condition = linalg.eig_report(JORDAN + np.array([[0, 0], [e, 0]])).condition
    assert condition * np.sqrt(e) == pytest.approx(1.0, rel=0.02)


def test_singular_values() -> None:
    golden = (1 + np.sqrt(5)) / 2
    np.testing.assert_allclose(np.linalg.svd(JORDAN)[1], [golden, golden - 1])
    np.testing.assert_allclose(golden, 1.6180339887)
    np.testing.assert_allclose(np.linalg.svd(A0)[1], linalg.eig_report(A0).values[::-1])
    A = torch.tensor(RNG.normal(size=(6, 4)))
    U, s, Vh = torch.linalg.svd(A, full_matrices=False)
    U, Vh = linalg.svd_flip(U, Vh)
    torch.testing.assert_close((U * s) @ Vh, A, atol=1e-13, rtol=0)
    assert bool((U.gather(0, U.abs().argmax(0, keepdim=True)) > 0).all())
    for sign in (-1, 1):  # whatever the signs were
        again = linalg.svd_flip(sign * U, sign * Vh)
        torch.testing.assert_close(again[0], U)
    torch.testing.assert_close(A @ A.T @ U, U * s.square())
    torch.testing.assert_close(A.T @ A @ Vh.T, Vh.T * s.square())
    C = torch.tensor(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))
    U, s, Vh = torch.linalg.svd(C)
    turned, back = linalg.svd_flip(U, Vh)
    torch.testing.assert_close((turned * s) @ back, C)
    lead = turned.gather(0, turned.abs().argmax(0, keepdim=True))
    assert float(lead.imag.abs().max()) < 1e-15 and float(lead.real.min()) > 0
    with pytest.raises(ValueError, match="are needed"):
        linalg.svd_flip(np.ones((2, 3)), np.ones((2, 2)))


def test_five_singularity_tests_agree() -> None:
    seen = set()
    for seed in range(60):
        A = np.random.default_rng(seed).integers(-2, 3, size=(3, 3)).astype(float)
        singular = linalg.is_singular(A)
        by_eigenvalue = np.abs(np.linalg.eigvals(A)).min() < 1e-5
        by_null_space = scipy.linalg.null_space(A).shape[1] > 0
        by_determinant = abs(round(np.linalg.det(A))) == 0
        by_rank = np.linalg.matrix_rank(A) < 3
        assert singular == by_eigenvalue == by_null_space == by_determinant == by_rank
        seen.add(singular)
    assert seen == {True, False}


def test_positive_definite_three_ways() -> None:
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        B = rng.normal(size=(4, 4))
        A = B + B.T + 3 * np.eye(4)
        found = linalg.is_positive_definite(A)
        leading = all(np.linalg.det(A[:k, :k]) > 0 for k in range(1, 5))
        assert found == (np.linalg.eigvalsh(A).min() > 0) == leading
        seen.add(found)
    assert seen == {True, False}
    A, B = definite(4), definite(4)
    assert linalg.is_positive_definite(A + B) and linalg.is_positive_definite(A[1:3, 1:3])
    assert not linalg.is_positive_definite(JORDAN)  # x'Ax > 0 needs a symmetric A here
    assert not linalg.is_positive_definite(np.ones((2, 3)))
    assert np.linalg.det(A) == pytest.approx(np.prod(np.linalg.eigvalsh(A)))


def test_questions() -> None:
    assert not linalg.is_diagonalizable(JORDAN) and linalg.is_diagonalizable(A0)
    assert linalg.is_diagonalizable([[0.0, -1.0], [1.0, 0.0]])  # over the complex numbers
    shear = [[1.0, 0.7], [0.0, 1.0]]
    assert np.linalg.det(shear) == 1.0 and not linalg.is_orthogonal(shear)
    Q = ortho_group.rvs(50, random_state=0)
    assert linalg.is_orthogonal(Q) and linalg.is_orthogonal(Q[:, :7])
    assert not linalg.is_orthogonal(Q[:7])
    assert abs(abs(np.linalg.det(Q)) - 1) < 1e-12
    assert not linalg.is_diagonally_dominant([[1.0, 2.0], [3.0, 4.0]])
    assert linalg.is_symmetric(A0) and not linalg.is_symmetric(shear)
    assert linalg.is_symmetric([[0.0, 1j], [-1j, 0.0]]) and not linalg.is_symmetric(np.ones((2, 3)))
    assert linalg.is_symmetric(shear, tol=1.0)
    answers = linalg.is_symmetric(np.stack([A0, np.array(shear)]))
    assert answers.dtype == bool and answers.tolist() == [True, False]


def test_rotations() -> None:
    a, b = 0.3, 1.1
    np.testing.assert_allclose(linalg.rotation(a) @ linalg.rotation(b), linalg.rotation(a + b))
    assert linalg.is_orthogonal(linalg.rotation(np.linspace(0, 6, 7))).all()
    assert linalg.rotation(np.zeros((2, 3))).shape == (2, 3, 2, 2)


def test_norms_and_losses() -> None:
    from torch.nn.functional import cosine_similarity

    a, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 7.0])
    assert float(torch.linalg.vector_norm(a - b, 1)) == 6.0
    assert float(torch.linalg.vector_norm(a - b) ** 2) == pytest.approx(20.0)
    assert float((a - b).square().mean()) == pytest.approx(20 / 3)
    x = torch.tensor([0.0, 1.0, 2.0, 10.0, 12.0])
    grid = torch.linspace(-1, 13, 14001)
    apart = grid[:, None] - x
    assert float(grid[apart.abs().sum(1).argmin()]) == pytest.approx(float(x.median()), abs=1e-3)
    assert float(grid[apart.square().sum(1).argmin()]) == pytest.approx(float(x.mean()), abs=1e-3)
    f = torch.tensor(RNG.normal(size=(200, 9)))
    g = torch.tensor(RNG.normal(size=(200, 9)))
    assert bool((cosine_similarity(f, g).abs() < 1).all())
    torch.testing.assert_close(cosine_similarity(f, -2 * f), -torch.ones(200, dtype=torch.float64))


def test_no_warning_where_nothing_is_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linalg.eig_report(np.stack([A0, A0]))
        linalg.log_series(np.eye(2))
