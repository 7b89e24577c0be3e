"""Operators, their adjoints, the dot test, and the table of identities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from groundstate import linalg
from groundstate.math.linalg import (
    Divergence,
    Fourier,
    Gradient,
    Interpolate,
    Laplacian,
    LinearOperator,
    Splat,
    dot_test,
    identities,
)

RNG = np.random.default_rng(0)
GRIDS: list[Any] = [7, (5, 4), (3, 4, 5), (1,), (2, 1)]
BOUNDARIES = ["periodic", "dirichlet"]


def of(A: Any) -> LinearOperator:
    return LinearOperator.of(A)


def test_algebra_is_that_of_matrices() -> None:
    A, B, C = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5)), RNG.normal(size=(4, 3))
    close = lambda op, M: np.testing.assert_allclose(op.to_dense(), M, atol=1e-12)
    close(of(A) @ of(B), A @ B)
    close((of(A) @ of(B)).H, (A @ B).T)
    close(of(B).H @ of(A).H, (A @ B).T)
    close(of(A) + of(C), A + C)
    close(of(A) - of(C), A - C)
    close(2.5 * of(A) * np.float64(2.0), 5 * A)
    close(-of(A), -A)
    close(of(A).T, A.T)
    close(of(A).H.H, A)
    close((of(A) + of(C)).H, (A + C).T)
    x, X = RNG.normal(size=3), RNG.normal(size=(2, 3, 6))
    np.testing.assert_allclose(of(A) @ x, A @ x)
    np.testing.assert_allclose(of(A) @ X, A @ X)
    np.testing.assert_allclose((of(A) @ of(B)) @ RNG.normal(size=(5, 2)) * 0, np.zeros((4, 2)))
    np.testing.assert_allclose(of(A).matvec(X[:, :, 0]), X[:, :, 0] @ A.T)
    np.testing.assert_allclose(of(A).rmatvec(A @ x), A.T @ (A @ x))


def test_complex_operators() -> None:
    A = np.array([[1, -2 - 1j, 5], [1 + 1j, 1j, 4 - 2j]])
    H = np.array([[1, 1 - 1j], [-2 + 1j, -1j], [5, 4 + 2j]])
    np.testing.assert_array_equal(of(A).H.to_dense(), H)
    F = Fourier(4)
    np.testing.assert_allclose(F.T.to_dense(), F.to_dense().T, atol=1e-15)
    np.testing.assert_allclose(F.T.H.to_dense(), F.to_dense().conj(), atol=1e-15)
    np.testing.assert_allclose((2j * F).H.to_dense(), (2j * F.to_dense()).conj().T, atol=1e-15)
    assert dot_test(1j * F @ F) < 1e-12 and dot_test(A) < 1e-12


def test_batches_tensors_and_gradients() -> None:
    A = torch.tensor(RNG.normal(size=(6, 4, 3)), requires_grad=True)
    x = torch.tensor(RNG.normal(size=(6, 3)))
    torch.testing.assert_close(of(A).matvec(x), torch.einsum("bij,bj->bi", A, x))
    assert isinstance(of(A).to_dense(), Tensor) and (of(A) @ of(A).H).shape == (6, 4, 4)
    of(A).matvec(x).sum().backward()
    assert A.grad is not None and bool((A.grad[:, 0] == x).all())
    assert (Laplacian((4, 5)) @ torch.ones(20)).dtype == torch.float32


def test_sparse_matrices_and_foreign_operators() -> None:
    M = scipy.sparse.random_array((5, 4), density=0.5, rng=1, format="csr")
    np.testing.assert_allclose(of(M).to_dense(), M.toarray())
    np.testing.assert_allclose(of(M).H.to_dense(), M.toarray().T)
    from scipy.sparse.linalg import aslinearoperator

    foreign = of(aslinearoperator(M))
    np.testing.assert_allclose(foreign @ np.ones((4, 3)), M @ np.ones((4, 3)))
    assert dot_test(foreign) < 1e-12 and dot_test(of(M)) < 1e-12


def test_an_adjoint_may_come_from_differentiation() -> None:
    op = LinearOperator((4, 5), lambda x: x[..., 1:] - x[..., :-1])
    assert dot_test(op) < 1e-12
    np.testing.assert_allclose(op.H.to_dense(), op.to_dense().T)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_gradient_divergence_laplacian(grid: Any, boundary: str) -> None:
    G, D, L = (kind(grid, boundary, 0.5) for kind in (Gradient, Divergence, Laplacian))
    for op in (G, D, L):
        assert dot_test(op) < 1e-12
    np.testing.assert_array_equal(D.to_dense(), -G.to_dense().T)
    np.testing.assert_allclose(L.to_dense(), -G.to_dense().T @ G.to_dense(), atol=1e-12)
    f = RNG.normal(size=(3, *G.in_shape))
    np.testing.assert_allclose(D(G(f)), L(f), atol=1e-12)
    assert G(f).shape == (3, *G.out_shape)
    assert L.H is L


def test_the_laplacian_has_the_known_spectrum() -> None:
    n = 8
    k = np.arange(1, n + 1)
    free = np.linalg.eigvalsh(-Laplacian(n, "dirichlet").to_dense())
    np.testing.assert_allclose(free, 4 * np.sin(k * np.pi / (2 * (n + 1))) ** 2, atol=1e-12)
    ring = np.linalg.eigvalsh(-Laplacian(n).to_dense())
    np.testing.assert_allclose(ring, np.sort(4 * np.sin(np.arange(n) * np.pi / n) ** 2), atol=1e-12)
    plane = Laplacian((4, 6), "dirichlet").to_dense()
    lines = [Laplacian(m, "dirichlet").to_dense() for m in (4, 6)]
    np.testing.assert_array_equal(
        plane, np.kron(lines[0], np.eye(6)) + np.kron(np.eye(4), lines[1])
    )


def test_a_mismatched_boundary_fails_the_dot_test() -> None:
    G = Gradient(9)
    wrong = LinearOperator(G.shape, G.matvec, lambda y: y.roll(1, -1).index_fill(-1, ZERO, 0.0) - y)
    with pytest.raises(ValueError, match="relative gap of"):
        dot_test(wrong)


ZERO = torch.tensor([0])


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("norm", ["ortho", "backward", "forward"])
def test_fourier(grid: Any, norm: str) -> None:
    F = Fourier(grid, norm)
    assert dot_test(F) < 1e-12
    n = F.shape[0]
    f = RNG.normal(size=F.in_shape)
    np.testing.assert_allclose(F(f), np.fft.fftn(f, norm=norm), atol=1e-12)
    if norm == "ortho":
        np.testing.assert_allclose((F.H @ F).to_dense(), np.eye(n), atol=1e-12)
    if norm == "backward":
        np.testing.assert_allclose((F.H @ F).to_dense(), n * np.eye(n), atol=1e-10)


def test_the_inverse_of_numpys_transform_is_not_its_adjoint() -> None:
    F = Fourier(8, "backward")
    plain = LinearOperator((8, 8), F.matvec, torch.fft.ifft, is_complex=True)
    with pytest.raises(ValueError, match="do not match"):
        dot_test(plain)
    f, g = RNG.normal(size=8), RNG.normal(size=8)
    assert np.vdot(g, plain @ f) / np.vdot(plain.H @ g, f) == pytest.approx(8.0)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("grid", [(6,), (5, 4), (3, 4, 2)])
def test_interpolate_and_splat(grid: tuple[int, ...], boundary: str) -> None:
    d = len(grid)
    inside = RNG.random((20, d)) * (np.array(grid) - 1)
    around = RNG.uniform(-2, 8, size=(20, d))
    for at in (inside, around):
        T, S = Interpolate(grid, at, boundary), Splat(grid, at, boundary)
        assert dot_test(T) < 1e-12 and dot_test(S) < 1e-12
        np.testing.assert_array_equal(S.to_dense(), T.to_dense().T)
    g = RNG.normal(size=20)
    assert Splat(grid, inside, boundary)(g).sum() == pytest.approx(g.sum())
    points = np.stack([m.ravel() for m in np.meshgrid(*map(np.arange, grid), indexing="ij")], 1)
    f = RNG.normal(size=grid)
    np.testing.assert_allclose(Interpolate(grid, points, boundary)(f), f.ravel())
    linear = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij")).sum(0).astype(float)
    np.testing.assert_allclose(Interpolate(grid, inside)(linear), inside.sum(1))
    if boundary == "periodic":
        moved = Interpolate(grid, inside + np.array(grid), boundary)
        np.testing.assert_allclose(moved(f), Interpolate(grid, inside, boundary)(f))


def test_interpolation_is_differentiable_in_positions_and_agrees_with_torch() -> None:
    at = torch.tensor(RNG.uniform(0.1, 0.9, size=(4, 2)) + np.array([1, 2]), requires_grad=True)
    f = torch.tensor(RNG.normal(size=(4, 5)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda at, f: Interpolate((4, 5), at)(f), (at, f))
    where = (2 * at / torch.tensor([3.0, 4.0]) - 1).flip(1)[None, None].detach()
    theirs = torch.nn.functional.grid_sample(f[None, None], where, align_corners=True)
    torch.testing.assert_close(Interpolate((4, 5), at)(f), theirs[0, 0, 0])


def test_a_shifted_splat_fails() -> None:
    at = RNG.random((10, 1)) * 4
    T, S = Interpolate(6, at), Splat(6, at + 0.5)
    with pytest.raises(ValueError, match="do not match"):
        dot_test(LinearOperator(T.shape, T.matvec, S.matvec))


def test_dot_test_of_matrices_and_functions() -> None:
    assert dot_test(RNG.normal(size=(5, 3))) < 1e-12
    assert dot_test(RNG.normal(size=(4, 5, 3))) < 1e-12
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh()).double()
    assert dot_test(net, np.ones((2, 3))) < 1e-12

    class Wrong(torch.autograd.Function):
        generate_vmap_rule = False

        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x**2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 3 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx: Any, u: Tensor) -> Tensor:
            return 2 * ctx.saved_tensors[0] * u

    with pytest.raises(ValueError, match="relative gap"):
        dot_test(Wrong.apply, np.ones(3))
    with pytest.raises(ValueError, match="needs the point x"):
        dot_test(torch.sin)
    with pytest.raises(ValueError, match="A is not a function"):
        dot_test(np.eye(2), np.ones(2))


def test_shapes_are_named() -> None:
    A = of(np.ones((4, 3)))
    with pytest.raises(ValueError, match="x must have 3 entries"):
        A @ np.ones(4)
    with pytest.raises(ValueError, match="cannot multiply an array of shape"):
        A @ np.ones((4, 4))
    with pytest.raises(ValueError, match="cannot be composed"):
        A @ A
    with pytest.raises(ValueError, match="cannot be added"):
        A + A.H
    with pytest.raises(ValueError, match="x holds NaN"):
        A @ np.array([np.nan, 0, 0])
    with pytest.raises(ValueError, match="multiplied by a number"):
        A * np.ones(2)
    with pytest.raises(ValueError, match="shape must be"):
        LinearOperator((0, 3), lambda x: x)
    with pytest.raises(ValueError, match="boundary must be one of"):
        Gradient(3, "neumann")
    with pytest.raises(ValueError, match="norm must be one of"):
        Fourier(3, "unit")
    with pytest.raises(ValueError, match="a grid has"):
        Gradient((3, 0))
    with pytest.raises(ValueError, match=r"positions must be \(n, 2\)"):
        Interpolate((3, 3), np.ones((4, 3)))
    with pytest.raises(ValueError, match="f must end in"):
        Gradient((3, 3))(np.ones((3, 4)))
    with pytest.raises(ValueError, match="A must be a matrix"):
        of(np.ones(3))
    assert repr(A) == "Dense(4, 3)" and repr(Gradient(3)) == "Gradient(3, 3)"


def test_operators_solve() -> None:
    P = LinearOperator((30, 30), lambda x: x - Laplacian(30, "dirichlet").matvec(x))
    b = RNG.normal(size=(30, 2))
    x = P.solve(b)
    np.testing.assert_allclose(x, np.linalg.solve(P.to_dense(), b), atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="must be symmetric positive definite"):
        Laplacian(30, "dirichlet").solve(b)


@pytest.mark.parametrize("name", list(identities))
def test_identities(name: str) -> None:
    for n in (1, 2, 3, 6):
        A, B, C = RNG.normal(size=(3, 4, n, n)) + 2 * np.eye(n)
        assert identities[name](A, B, C, 1.7).shape == (4,)
        assert identities[name](A, B, C, 1.7).max() < 1e-10
    assert identities[name].statement


def test_what_is_no_identity() -> None:
    A, B, C = RNG.normal(size=(3, 3, 3))
    assert abs(np.trace(A @ C @ B) - np.trace(A @ B @ C)) > 1e-3
    assert np.linalg.det(2 * A) == pytest.approx(8 * np.linalg.det(A))
    A0 = np.array([[3.0, 1.0], [1.0, 2.0]])
    assert np.linalg.det(A0) == pytest.approx(5) and np.trace(A0) == 5
    np.testing.assert_allclose(np.linalg.inv(A0), [[0.4, -0.2], [-0.2, 0.6]])
    wrong = linalg.Identity("Tr(ACB) = Tr(ABC)", lambda A, B, C, r: (A @ C @ B, A @ B @ C))
    assert wrong(A, B, C) > 1e-3
    with pytest.raises(ValueError, match="B holds NaN"):
        identities["product-outer"](A, np.full((3, 3), np.nan), C)
