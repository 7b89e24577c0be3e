"""Newton, line searches, quasi-Newton and conjugate gradients on problems with known answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch

from groundstate import optim
from groundstate.errors import Unsupported

A = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
S, B = np.array([[3.0, 2.0], [2.0, 6.0]]), np.array([2.0, -8.0])


def bowl(x: Any) -> Any:
    return 0.5 * x @ A @ x


def rosenbrock(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def saddle(x: Any) -> Any:
    return x[0] ** 2 - x[1] ** 2


MINIMISERS = {
    "newton": optim.newton,
    "bfgs": optim.bfgs,
    "lbfgs": optim.lbfgs,
    "nonlinear_cg": optim.nonlinear_cg,
    "newton_cg": optim.newton_cg,
}


# --- roots and Newton -----------------------------------------------------------------------


def test_digits_of_the_square_root_of_two_double() -> None:
    found = optim.newton_root(lambda x: x**2 - 2, 1.0)
    expected = [1, 1.5, 1.4166666667, 1.4142156862745, 1.4142135623747, 2**0.5]
    np.testing.assert_allclose(found.path[:6], expected, rtol=1e-10)
    assert isinstance(found.x, float) and found.x == pytest.approx(1.414213562373095, abs=1e-15)
    assert found.converged and found.nit == 5
    error = np.abs(found.path[:5] - 2**0.5)
    assert (error[1:] / error[:-1] ** 2 < 0.5).all()


def test_root_of_a_system_with_given_and_found_derivative() -> None:
    def f(x: Any) -> Any:
        return torch.stack([x[0] ** 2 + x[1] ** 2 - 4, x[0] - x[1]])

    found = optim.newton_root(f, [1.0, 2.0])
    np.testing.assert_allclose(found.x, [2**0.5] * 2, rtol=1e-12)
    given = optim.newton_root(np.cos, 1.0, fprime=lambda x: -np.sin(x))
    assert given.x == pytest.approx(math.pi / 2, abs=1e-12)
    assert scipy.optimize.newton(np.cos, 1.0) == pytest.approx(given.x)


def test_a_zero_derivative_is_reported() -> None:
    found = optim.newton_root(lambda x: x**2 - 2, 0.0)
    assert not found.converged and "derivative is zero" in found.reason and found.nit == 0


def test_a_quadratic_takes_one_newton_step() -> None:
    for damping in ("none", "auto"):
        found = optim.newton(lambda x: bowl(x - 3), [10.0, -7.0], damping=damping)
        assert found.nit == 1 and found.converged
        np.testing.assert_allclose(found.x, [3, 3], atol=1e-12)
        np.testing.assert_allclose(found.hessian, A.numpy())


def test_newton_in_one_dimension_is_descent_with_one_over_the_curvature() -> None:
    def f(x: Any) -> Any:
        return x.exp() - 2 * x

    newton = optim.newton(f, 1.0, damping="none", max_iter=1)
    descent = optim.gradient_descent(f, 1.0, 1 / math.exp(1.0), max_iter=1)
    assert newton.x == pytest.approx(descent.x, rel=1e-12)


def test_raw_newton_goes_to_the_saddle_and_damped_newton_leaves_it() -> None:
    raw = optim.newton(saddle, [1.0, 1.0], damping="none")
    np.testing.assert_array_equal(raw.x, [0, 0])
    for start in ([1.0, 1.0], [0.0, 0.0]):
        damped = optim.newton(saddle, start)
        assert damped.fun < -1e6 and damped.reason == "f falls without end"
    wells = optim.newton(lambda x: (x[0] ** 2 - 1) ** 2 + x[1] ** 2, [0.0, 0.0])
    assert wells.converged and abs(wells.x[0]) == pytest.approx(1)


def test_a_singular_hessian_raises_raw_and_is_damped() -> None:
    def valley(x: Any) -> Any:
        return x[0] ** 2 + 0 * x[1]

    with pytest.raises(optim.SingularError, match="singular here.*damping='auto'"):
        optim.newton(valley, [1.0, 1.0], damping="none")
    assert optim.newton(valley, [1.0, 1.0]).converged
    assert optim.newton(lambda x: x**4, 1.0).converged  # f'' vanishes at the minimum
    assert optim.newton(lambda x: -(x**2), 1.0).reason == "f falls without end"


def test_taylor_error_is_of_third_order() -> None:
    def f(x: Any) -> Any:
        return torch.sin(x[0]) * torch.exp(x[1])

    model = optim.taylor(f, [0.3, -0.2])
    u = np.array([0.6, 0.8])
    h = np.array([0.1, 0.05, 0.025, 0.0125])
    points = [np.array([0.3, -0.2]) + t * u for t in h]
    error = [abs(float(f(torch.from_numpy(p))) - model(p)) for p in points]
    slope = np.polyfit(np.log(h), np.log(error), 1)[0]
    assert slope == pytest.approx(3, abs=0.1)
    quadratic = optim.taylor(bowl, [4.0, 5.0])
    np.testing.assert_allclose(quadratic.stationary, [0, 0], atol=1e-14)


# --- line searches ---------------------------------------------------------------------------

FUNCTIONS = {
    "bowl": (bowl, [1.0, -2.0]),
    "rosenbrock": (rosenbrock, [-1.2, 1.0]),
    "steep": (lambda x: torch.cosh(5 * x).sum(), [1.0, 0.4]),
    "log": (lambda x: x.sum() - x.log().sum(), [6.0, 3.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_wolfe_conditions_hold(name: str, size: float) -> None:
    f, x = FUNCTIONS[name]
    start = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    value = f(start)
    (g,) = torch.autograd.grad(value, start)
    p = -size * g
    step = optim.line_search(f, x, p)
    slope0 = float(g @ p)
    assert step.ok and step.alpha > 0
    assert step.fun <= value.item() + 1e-4 * step.alpha * slope0
    assert abs(step.slope) <= 0.9 * abs(slope0)
    strict = optim.line_search(f, x, p, c2=0.01)
    assert abs(strict.slope) <= 0.01 * abs(slope0)
    short = optim.line_search(f, x, p, "armijo")
    assert short.ok and short.fun <= value.item() + 1e-4 * short.alpha * slope0
    assert math.log2(short.alpha).is_integer() and short.njev == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exact_search_ends_where_the_derivative_along_p_is_zero(name: str) -> None:
    f, x = FUNCTIONS[name]
    start = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(f(start), start)
    step = optim.line_search(f, x, -g, "exact")
    assert abs(step.slope) < 1e-9 * float(g @ g)


def test_exact_search_of_a_quadratic_and_orthogonal_steps() -> None:
    p = torch.tensor([-4.0, -3.0])
    closed = optim.line_search(bowl, [1.0, 1.0], p, "exact", A=A)
    searched = optim.line_search(bowl, [1.0, 1.0], p, "exact")
    assert closed.alpha == pytest.approx(25 / 90, rel=1e-14) == searched.alpha
    path = optim.gradient_descent(bowl, [1.0, 1.0], "exact", max_iter=6).path
    steps = np.diff(path, axis=0)
    inner = np.einsum("id,id->i", steps[1:], steps[:-1])
    assert np.abs(inner).max() < 1e-12


def test_grid_keeps_the_best_step() -> None:
    step = optim.line_search(bowl, [1.0, 1.0], [-4.0, -3.0], "grid", steps=[0.1, 0.3, 1.0])
    assert step.alpha == 0.3 and step.fun < float(bowl(torch.ones(2).double()))
    worse = optim.line_search(bowl, [1.0, 1.0], [-4.0, -3.0], "grid", steps=[10.0])
    assert not worse.ok and worse.alpha == 0 and "no step of the grid" in worse.reason


def test_a_direction_that_climbs_is_refused() -> None:
    for method in ("exact", "armijo", "wolfe"):
        with pytest.raises(ValueError, match="no direction of descent.*turn p round"):
            optim.line_search(bowl, [1.0, 1.0], [1.0, 1.0], method)
    with pytest.raises(ValueError, match="needs steps"):
        optim.line_search(bowl, [1.0, 1.0], [-1.0, -1.0], "grid")
    with pytest.raises(ValueError, match="exact, armijo, wolfe, grid, got 'magic'"):
        optim.line_search(bowl, [1.0, 1.0], [-1.0, -1.0], "magic")  # type: ignore[arg-type]


def test_search_agrees_with_scipy_on_the_conditions() -> None:
    def f(x: np.ndarray) -> float:
        return float(rosenbrock(x))

    def g(x: np.ndarray) -> np.ndarray:
        return np.asarray(scipy.optimize.rosen_der(x))

    x = np.array([-1.2, 1.0])
    ours = optim.line_search(f, x, -g(x), grad=g)
    theirs = scipy.optimize.line_search(f, g, x, -g(x))
    assert ours.fun <= theirs[3] * 1.05 and isinstance(ours.x, np.ndarray)


# --- quasi-Newton ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["hessian", "inverse"])
def test_bfgs_learns_the_hessian_of_a_quadratic(form: Any) -> None:
    found = optim.bfgs(bowl, [1.0, 1.0], form, line_search="exact")
    first = (found.path[1] - found.path[0]) / found.steps[0]
    np.testing.assert_allclose(first, [-4, -3], rtol=1e-12)
    np.testing.assert_allclose(found.steps, [0.277778, 0.72], atol=1e-6)
    np.testing.assert_allclose(found.path[1], [-0.111111, 0.166667], atol=1e-6)
    np.testing.assert_allclose(found.x, [0, 0], atol=1e-12)
    np.testing.assert_allclose(found.hessian, A.numpy(), atol=1e-12)
    assert found.nit == 2


def test_updates_satisfy_the_secant_equation_and_stay_definite() -> None:
    rng = np.random.default_rng(0)
    M = rng.normal(size=(5, 5))
    M = M @ M.T + np.eye(5)
    for _ in range(20):
        s, y = rng.normal(size=5), rng.normal(size=5)
        y = y if y @ s > 0 else -y
        H = optim.bfgs_update(M, s, y, "hessian")
        inverse = optim.bfgs_update(np.linalg.inv(M), s, y)
        np.testing.assert_allclose(H @ s, y, atol=1e-10)
        np.testing.assert_allclose(inverse @ y, s, atol=1e-9)
        np.testing.assert_allclose(inverse @ H, np.eye(5), atol=1e-7)
        assert np.linalg.eigvalsh(H).min() > 0
    flat = optim.bfgs_update(M, np.ones(5), -np.ones(5), "hessian")
    np.testing.assert_array_equal(flat, M)  # no positive curvature: skipped


def test_two_loop_is_the_product_with_the_inverse_matrix() -> None:
    g = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(4):
        s = torch.randn(6, generator=g, dtype=torch.float64)
        pairs.append((s, s * torch.rand(6, generator=g, dtype=torch.float64) + 0.1 * s))
    s, y = pairs[-1]
    matrix = torch.eye(6, dtype=torch.float64) * (s @ y) / (y @ y)
    for pair in pairs:
        matrix = optim.bfgs_update(matrix, *pair)
    v = torch.randn(6, generator=g, dtype=torch.float64)
    torch.testing.assert_close(optim.two_loop(v, pairs), matrix @ v, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MINIMISERS)
def test_rosenbrock(name: str) -> None:
    found = MINIMISERS[name](rosenbrock, [-1.2, 1.0])
    assert found.converged and found.grad_norm <= 1e-8
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-6)
    assert found.path.shape == (found.nit + 1, 2) and found.nfev >= found.nit
    values = [float(rosenbrock(p)) for p in found.path]
    assert (np.diff(values) <= 1e-12).all()
    if name in ("bfgs", "lbfgs"):
        assert found.nit <= 60


@pytest.mark.parametrize("name", MINIMISERS)
def test_many_parameters_as_scipy(name: str) -> None:
    g = torch.Generator().manual_seed(1)
    X = torch.randn(80, 12, generator=g, dtype=torch.float64)
    t = (torch.rand(80, generator=g, dtype=torch.float64) > 0.5).double()

    def loss(w: Any) -> Any:
        z = X @ w.reshape(-1)
        return torch.nn.functional.softplus(z).sum() - t @ z + 0.5 * w.square().sum()

    found = MINIMISERS[name](loss, torch.zeros(3, 4, dtype=torch.float64), tol=1e-7)
    assert found.converged and isinstance(found.x, torch.Tensor) and found.x.shape == (3, 4)
    peer = scipy.optimize.minimize(
        lambda w: float(loss(torch.from_numpy(w))), np.zeros(12), method="BFGS"
    )
    assert found.fun == pytest.approx(peer.fun, rel=1e-8)


def test_damped_newton_ends_where_a_trust_region_does() -> None:
    peer = scipy.optimize.minimize(
        scipy.optimize.rosen, [-1.2, 1.0], method="trust-exact",
        jac=scipy.optimize.rosen_der, hess=scipy.optimize.rosen_hess, options={"gtol": 1e-9},
    )  # fmt: skip
    np.testing.assert_allclose(optim.newton(rosenbrock, [-1.2, 1.0]).x, peer.x, atol=1e-8)


def test_descent_needs_many_steps_where_curvature_differs() -> None:
    fixed = optim.gradient_descent(rosenbrock, [-1.2, 1.0], 1e-3, max_iter=1001)
    assert not fixed.converged and "max_iter=1001" in fixed.reason
    searched = optim.gradient_descent(bowl, [1.0, 1.0], "armijo")
    small = optim.gradient_descent(bowl, [1.0, 1.0], 0.1)
    assert searched.njev < small.njev and searched.nfev / searched.njev > 1.5
    assert small.nfev == small.njev
    wild = optim.gradient_descent(bowl, [1.0, 1.0], 10.0, max_iter=2000)
    assert not wild.converged and "not finite" in wild.reason


# --- conjugate gradients -----------------------------------------------------------------------


def test_conjugate_gradients_end_after_n_steps() -> None:
    found = optim.cg(S, B, x0=[-2.0, -2.0])
    np.testing.assert_allclose(found.path, [[-2, -2], [0.08, -0.613333], [2, -2]], atol=1e-6)
    assert found.converged and found.nit == 2
    assert found.fun == pytest.approx(0.5 * B @ -found.x)


def test_steepest_descent_needs_31_steps() -> None:
    found = optim.steepest_descent(S, B, x0=[-2.0, -2.0], rtol=1e-8 / np.linalg.norm(B))
    assert found.nit == 31 and found.grad_norm <= 1e-8
    steps = np.diff(found.path, axis=0)
    assert abs(steps[1] @ steps[0]) < 1e-12 * (steps[0] @ steps[0])


@pytest.mark.parametrize("kind", ["matrix", "product", "sparse", "torch", "operator"])
def test_kinds_of_matrices_and_preconditioning(kind: str) -> None:
    n = 40
    rng = np.random.default_rng(0)
    M = np.diag(np.logspace(0, 4, n)) + 0.1 * np.ones((n, n))
    b = rng.normal(size=n)
    given = {
        "matrix": M,
        "product": lambda v: M @ v,
        "sparse": scipy.sparse.csr_array(M),
        "torch": torch.from_numpy(M),
        "operator": scipy.sparse.linalg.aslinearoperator(M),
    }[kind]
    plain = optim.cg(given, b)
    helped = optim.cg(given, b, M=lambda v: v / np.diag(M))
    expected = np.linalg.solve(M, b)
    for found in (plain, helped):
        assert found.converged
        np.testing.assert_allclose(found.x, expected, atol=1e-5 * np.abs(expected).max())
    assert helped.nit < plain.nit / 3


def test_indefinite_matrices_are_reported_with_a_direction() -> None:
    M = np.diag([1.0, -1.0])
    for solve in (optim.cg, optim.steepest_descent):
        with pytest.raises(optim.IndefiniteError, match="not positive definite") as caught:
            solve(M, np.array([1.0, 1.0]))
        d = caught.value.direction
        assert d @ M @ d <= 0 and caught.value.curvature == pytest.approx(d @ M @ d)
    singular = np.diag([1.0, 0.0])  # a line of minima: where it ends depends on the start
    ends = [optim.cg(singular, np.array([1.0, 0.0]), x0=[0.0, a]).x for a in (0.0, 5.0)]
    np.testing.assert_allclose(ends, [[1, 0], [1, 5]], atol=1e-12)


def test_nonlinear_cg_on_a_quadratic_is_cg() -> None:
    def f(x: Any) -> Any:
        return 0.5 * x @ torch.from_numpy(S) @ x - torch.from_numpy(B) @ x

    found = optim.nonlinear_cg(f, [-2.0, -2.0], line_search="exact")
    np.testing.assert_allclose(found.path[1:3], [[0.08, -0.613333], [2, -2]], atol=1e-6)


# --- what all share ------------------------------------------------------------------------------


def test_numpy_functions_bring_their_gradient() -> None:
    def f(x: np.ndarray) -> float:
        assert isinstance(x, np.ndarray)
        return float(np.sum((x - 1) ** 2))

    found = optim.bfgs(f, np.zeros(3), grad=lambda x: 2 * (x - 1))
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-8)
    with pytest.raises(Unsupported, match="not written in torch.*grad="):
        optim.bfgs(lambda x: float(np.sum(np.asarray(x))), np.zeros(3))
    with pytest.raises(Unsupported, match="needs hess="):
        optim.newton(f, np.zeros(3), grad=lambda x: 2 * (x - 1))
    given = optim.newton(f, np.zeros(3), grad=lambda x: 2 * (x - 1), hess=lambda x: 2 * np.eye(3))
    np.testing.assert_allclose(given.x, np.ones(3))


def test_bad_questions_are_answered_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="must return one number, got 2"):
        optim.bfgs(lambda x: x, [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN or infinity"):
        optim.newton(bowl, [math.nan, 0.0])
    with pytest.raises(ValueError, match="form must be"):
        optim.bfgs(bowl, [1.0, 1.0], "both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"A must be \(2, 2\)"):
        optim.cg(np.eye(3), B)
    with pytest.raises(ValueError, match="as many as x has"):
        optim.newton_root(lambda x: x.sum() * torch.ones(3), [1.0, 2.0])


def test_the_path_can_be_left_out() -> None:
    found = optim.lbfgs(rosenbrock, [-1.2, 1.0], keep_path=False)
    assert found.path.shape == (1, 2) and found.nit > 5 and found.converged


def test_float32_tensors_stay_float32() -> None:
    found = optim.lbfgs(lambda x: (x - 2).square().sum(), torch.zeros(3), tol=1e-5)
    assert found.x.dtype == torch.float32
    torch.testing.assert_close(found.x, torch.full((3,), 2.0))
