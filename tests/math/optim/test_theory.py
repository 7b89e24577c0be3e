"""What theory says of descent: step lengths, searches, curvature, landscapes, implicit bias."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import rosen
from torch import Tensor

from groundstate import optim
from groundstate.math.optim.curvature import lanczos
from groundstate.math.optim.flat import Flat

F64 = torch.float64
A = torch.tensor([1.0, 10.0], dtype=F64)


def t(values: Any) -> Tensor:
    return torch.tensor(values, dtype=F64)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def valley(x: Any) -> Any:
    return (0.5 * A * x**2).sum()


def rosenbrock(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


# --- gradient descent ------------------------------------------------------------------------


def test_descent_on_half_a_square() -> None:
    def f(x: Any) -> Any:
        return 0.5 * x**2

    found = optim.minimize(f, 1.0, step=0.1, max_iter=3)
    assert found.path.tolist() == pytest.approx([1, 0.9, 0.81, 0.729])
    for rate in (0.1, 0.9, 1.0, 1.5, 1.9):
        end = optim.minimize(f, 1.0, step=rate, max_iter=300)
        assert end.converged and abs(end.x) <= 1e-4
        powers = (1 - rate) ** np.arange(min(9, end.nit + 1))
        assert end.path[: len(powers)] == pytest.approx(powers)
    for rate in (2.0, 2.1):
        end = optim.minimize(f, 1.0, step=rate, max_iter=300)
        assert not end.converged and "max_iter=300" in end.reason
    unit = optim.minimize(
        lambda x: (x**2).sum(), t([3.0, 4.0]), step=0.5, normalized=True, max_iter=4
    )
    assert [float(s.norm()) for s in unit.path.diff(dim=0)] == pytest.approx([0.5] * 4)


def test_the_gradient_is_the_steepest_direction() -> None:
    x = t([-0.5, 1.3])
    leaf = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(rosenbrock(leaf), leaf)
    angles = torch.linspace(-math.pi, math.pi, 100_001, dtype=F64)
    gaps = []
    for eta in (1e-1, 1e-2, 1e-3):
        moved = x[:, None] + eta * torch.stack([angles.cos(), angles.sin()])
        best = angles[int(rosenbrock(moved).argmin())]
        gap = best - torch.atan2(-g[1], -g[0])
        gaps.append(abs(math.remainder(gap.item(), 2 * math.pi)))
    assert gaps[2] < 1e-2 and gaps[2] < gaps[1] < gaps[0]


def test_second_order_taylor_error_falls_eightfold() -> None:
    def f(x: Any) -> Any:
        return torch.exp(x[0]) + torch.sin(x[1]) * x[0]

    x, d = t([0.3, 0.7]), t([0.6, -0.8])
    model = optim.taylor(f, x)
    errors = [abs(float(f(x + h * d)) - model(x + h * d)) for h in (0.1, 0.05, 0.025, 0.0125)]
    assert [a / b for a, b in pairwise(errors)] == pytest.approx([8, 8, 8], rel=0.1)


# --- line searches ---------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["bracket", "armijo", "wolfe", "exact"])
@pytest.mark.parametrize("method", ["gd", "cg", "bfgs", "lbfgs"])
def test_searched_steps_never_rise(method: str, search: str) -> None:
    found = optim.minimize(rosenbrock, t([-1.2, 1.0]), method, line_search=search, max_iter=60)
    values = [float(rosenbrock(x)) for x in found.path]
    assert optim.is_descent(values, tol=1e-12)
    assert values[-1] < values[0]
    assert found.nfev >= found.nit and found.njev >= found.nit


def test_exact_steps() -> None:
    found = optim.minimize(valley, t([3.0, -1.0]), step="exact", max_iter=10)
    for a, b in pairwise(found.path.diff(dim=0)):
        assert abs(float(a @ b)) < 1e-10 * float(a.norm() * b.norm()) + 1e-14
    for search, tol in (("exact", 1e-12), ("bracket", 5e-3)):
        step = optim.line_search(lambda x: 3 * (x - 2) ** 2, 5.0, -1.0, search)  # type: ignore[arg-type]
        assert step.alpha == pytest.approx(3.0, abs=tol)
    wide = optim.line_search(lambda x: (x - 2) ** 2, 1000.0, -1.0, "bracket")
    tiny = optim.line_search(lambda x: (x - 2) ** 2, 2.0 + 1e-4, -1.0, "bracket")
    assert wide.alpha == pytest.approx(998, rel=2e-3) and tiny.alpha == pytest.approx(
        1e-4, rel=2e-3
    )
    assert wide.njev == 1 and wide.nfev > 10  # values alone, but for the slope at the start
    endless = optim.line_search(lambda x: -x, 0.0, 1.0, "bracket")
    assert not endless.ok and endless.reason == "f falls without end along p"


# --- other methods ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in optim.METHODS if m != "gd"])
def test_every_method_finds_the_valley(method: str) -> None:
    found = optim.minimize(rosenbrock, [-1.2, 1.0], method, tol=1e-8)
    assert found.x == pytest.approx([1, 1], abs=1e-3)
    assert found.path.shape[1:] == (2,) and found.converged
    assert optim.METHODS[method].cost.startswith(("O(", "15"))


def test_newton() -> None:
    H = t([[3.0, 1.0], [1.0, 2.0]])
    one = optim.minimize(
        lambda x: 0.5 * x @ H @ x - x.sum(), t([5.0, -7.0]), "newton", damping="none"
    )
    assert one.nit == 1 and one.converged
    saddle = optim.minimize(lambda x: x[0] ** 2 - x[1] ** 2, [1.0, 1.0], "newton", damping="none")
    assert saddle.x.tolist() == [0, 0]
    assert optim.METHODS["newton"].cost == "O(d³) per step"
    with pytest.raises(ValueError, match="method must be one of gd, cg, bfgs"):
        optim.minimize(valley, [1.0, 1.0], "adam")


def test_genetic_needs_no_gradient() -> None:
    found = optim.minimize(
        lambda x: float(rosen(np.asarray(x))),
        [-1.2, 1.0],
        "genetic",
        bounds=[(-2, 2), (-2, 2)],
        seed=1,
    )
    assert found.x == pytest.approx([1, 1], abs=1e-2) and found.njev == 0
    again = optim.minimize(
        lambda x: float(rosen(np.asarray(x))),
        [-1.2, 1.0],
        "genetic",
        bounds=[(-2, 2), (-2, 2)],
        seed=1,
    )
    assert np.array_equal(found.path, again.path)


# --- the descent lemma -----------------------------------------------------------------------


def test_descent_lemma_on_the_valley() -> None:
    x = t([1.0, 1.0])
    g = A * x
    assert float(valley(x)) == 5.5
    assert float(valley(x - 0.1 * g)) == pytest.approx(0.405)
    bound = optim.descent_bound(5.5, float(g @ g), 10.0, 0.1)
    assert bound == pytest.approx(0.45)
    want = {
        0.05: "2.96e-03",
        0.1: "1.33e-05",
        0.15: "4.4e-08",
        0.19: "1.3e-04",
        0.2: "5.0e+00",
        0.21: "6.9e+04",
    }
    for rate, digits in want.items():
        path = optim.gradient_descent(valley, t([1.0, 1.0]), rate, max_iter=50, tol=0.0).path
        values = [float(valley(p)) for p in path]
        assert f"{values[-1]:.{len(digits) - 6}e}" == digits
        assert optim.is_descent(values, tol=1e-12) == (rate <= 0.2)
    assert optim.largest_step(1.0, 10.0) == 0.2


def softmax_loss(W: Tensor, X: Tensor, y: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(X @ W, y)


def test_lipschitz_constants() -> None:
    assert optim.lipschitz(valley, t([1.0, 1.0])) == pytest.approx(10.0, rel=1e-6)
    X, y = normal(50, 4), torch.arange(50) % 3
    upper = optim.softmax_lipschitz(X)
    for seed in range(5):
        W = normal(4, 3, seed=seed)
        here = optim.lipschitz(softmax_loss, W, X, y)
        H = torch.func.jacrev(torch.func.jacrev(softmax_loss))(W, X, y).reshape(12, 12)
        assert here == pytest.approx(torch.linalg.eigvalsh(H).max().item(), rel=1e-4)
        assert here <= upper * (1 + 1e-9)
    assert upper == pytest.approx(torch.linalg.eigvalsh(X.T @ X).max().item() / 100)
    named = optim.lipschitz(
        lambda p: valley(p["a"]) + 3 * p["b"].square().sum(), {"a": t([1.0, 1.0]), "b": t([1.0])}
    )
    assert named == pytest.approx(10.0, rel=1e-6)
    assert optim.lipschitz(lambda x: x.sum(), t([1.0, 2.0])) == 0.0


def test_the_lemma_holds_for_softmax_regression() -> None:
    X, y = normal(40, 3), torch.arange(40) % 3
    L = optim.softmax_lipschitz(X)
    for seed in range(100):
        W = 2 * normal(3, 3, seed=seed)
        g = torch.func.grad(softmax_loss)(W, X, y)
        step = (0.05 + 2 * seed / 100) / L
        after = float(softmax_loss(W - step * g, X, y))
        bound = optim.descent_bound(float(softmax_loss(W, X, y)), float(g.square().sum()), L, step)
        assert after <= bound + 1e-12


def test_noisy_steps_descend_in_expectation() -> None:
    """One of two gradients, ∇f ± s: the expected value is the bound itself on an isotropic bowl."""
    L, x, s = 4.0, t([1.0, 2.0]), t([3.0, -1.0])
    g = L * x

    def f(x: Tensor) -> float:
        return float(0.5 * L * x.square().sum())

    grad2 = float(g.square().sum())
    moment = grad2 + float(s.square().sum())
    for step in (0.1, 0.3, 0.49):
        mean = 0.5 * (f(x - step * (g + s)) + f(x - step * (g - s)))
        assert mean == pytest.approx(optim.descent_bound(f(x), grad2, L, step, moment))
        assert (mean < f(x)) == (step < optim.largest_step(grad2, L, moment))
    with pytest.raises(ValueError, match="second moment of at least grad2"):
        optim.descent_bound(1.0, 2.0, 1.0, 0.1, second_moment=1.0)
    with pytest.raises(ValueError, match="need L > 0"):
        optim.largest_step(1.0, 0.0)
    assert not optim.is_descent([1.0, math.nan])


# --- curvature -------------------------------------------------------------------------------


def test_scaling_brings_the_condition_to_one() -> None:
    g = torch.Generator().manual_seed(0)
    raw = torch.randn(500, 2, generator=g, dtype=F64) @ t([[3.0, 1.0], [0.0, 0.5]]) + t([5.0, -2.0])

    def kappa(X: Tensor) -> float:
        def loss(w: Tensor) -> Tensor:
            return 0.5 * (X @ w[1:] + w[0]).square().mean()

        return optim.hessian_spectrum(loss, torch.zeros(3, dtype=F64)).condition_number

    centred = raw - raw.mean(0)
    standard = centred / centred.std(0, correction=0)
    white = torch.as_tensor(optim.ZCAWhitener().fit_transform(raw.numpy()))
    falls = [kappa(X) for X in (raw, centred, standard, white)]
    assert all(a > b for a, b in pairwise(falls))
    assert falls[-1] == pytest.approx(1.0, abs=1e-9)
    assert falls[0] == pytest.approx(optim.hessian_condition(raw.numpy()), rel=1e-6)


def test_critical_points() -> None:
    cases = {
        "saddle": lambda x: x[0] ** 2 - x[1] ** 2,
        "minimum": lambda x: x[0] ** 2 + 3 * x[1] ** 2,
        "maximum": lambda x: -(x[0] ** 2) - x[1] ** 4 - x[1] ** 2,
        "degenerate": lambda x: x[0] ** 2 + x[1] ** 4,
    }
    for kind, f in cases.items():
        found = optim.critical_point(f, torch.zeros(2, dtype=F64))
        assert found.kind == kind and found.is_stationary
    still = optim.minimize(cases["saddle"], t([0.0, 0.0]), step=0.1)
    assert still.nit == 0 and still.converged  # descent does not leave a saddle
    assert not optim.critical_point(cases["minimum"], torch.ones(2, dtype=F64)).is_stationary


def test_least_squares_is_convex() -> None:
    X, y = normal(30, 5), normal(30, seed=1)
    values = optim.hessian_spectrum(
        lambda w, X, y: (X @ w - y).square().mean(), normal(5), X, y
    ).values
    assert float(values.min()) >= 0


def test_curvature_of_squared_error_and_of_cross_entropy() -> None:
    """½(σ(w) − 1)² has curvature down to −.0601; cross-entropy is never below 0."""
    w = torch.linspace(-8, 8, 4001, dtype=F64)

    def second(f: Any) -> Tensor:
        return torch.func.vmap(torch.func.grad(torch.func.grad(f)))(w)

    squared = second(lambda w: 0.5 * (torch.sigmoid(w) - 1).square())
    assert float(squared.min()) == pytest.approx(-0.0601, abs=5e-5)
    assert float(second(lambda w: torch.nn.functional.softplus(-w)).min()) >= 0


def test_lanczos_finds_both_ends() -> None:
    d = 2500
    eigen = torch.linspace(-1, 50, d, dtype=F64)
    eigen[-1], eigen[0] = 80.0, -7.0
    big = optim.hessian_spectrum(
        lambda x: 0.5 * (eigen * x**2).sum(), torch.zeros(d, dtype=F64), k=40
    )
    assert not big.is_full and len(big.values) == 40
    assert float(big.values[-1]) == pytest.approx(80, rel=1e-6)
    assert float(big.values[0]) == pytest.approx(-7, rel=1e-6)
    default = optim.hessian_spectrum(
        lambda x: 0.5 * (eigen * x**2).sum(), torch.zeros(d, dtype=F64)
    )
    assert len(default.values) == 20
    assert (
        optim.critical_point(lambda x: 0.5 * (eigen * x**2).sum(), torch.zeros(d, dtype=F64)).kind
        == "saddle"
    )
    M = normal(6, 6)
    S = M + M.T
    assert torch.allclose(lanczos(lambda v: S @ v, normal(6, seed=1), 6), torch.linalg.eigvalsh(S))
    assert len(lanczos(lambda v: 2 * v, normal(6, seed=1), 6)) == 1  # one step spans all it can
    assert optim.condition_number(t([0.0, 1.0])) == math.inf


# --- landscapes ------------------------------------------------------------------------------


def regression(p: dict[str, Tensor], X: Tensor, y: Tensor) -> Tensor:
    return (torch.tanh(X @ p["U"].T) @ p["w"] - y).square().mean()


def test_landscape_of_batches_averages_to_the_whole() -> None:
    X, y = normal(30, 3), normal(30, seed=1)
    p = {"U": normal(4, 3, seed=2), "w": normal(4, seed=3)}
    rows = (slice(0, 10), slice(10, 30))
    plane = optim.landscape(
        regression, p, X, y, n=11, batches=[(X[r], y[r]) for r in rows], chunk=50
    )
    mean = (10 * plane.batches[0] + 20 * plane.batches[1]) / 30
    assert torch.allclose(mean, plane.values, atol=1e-6)
    assert plane.values[5, 5].item() == pytest.approx(regression(p, X, y).item())
    flat = Flat(p)
    u = flat.shaped(plane.directions[0])
    assert torch.allclose(u["U"].norm(dim=1), p["U"].norm(dim=1))  # filter by filter
    point = flat.shaped(
        plane.origin + plane.a[2] * plane.directions[0] + plane.b[7] * plane.directions[1]
    )
    assert plane.values[7, 2].item() == pytest.approx(regression(point, X, y).item())
    again = optim.landscape(regression, p, X, y, n=11)
    assert torch.equal(again.directions, plane.directions)


def test_paths_on_a_landscape() -> None:
    steps = optim.gradient_descent(valley, t([1.0, 1.0]), 0.15, max_iter=30, tol=0.0).path
    plane = optim.landscape(
        valley, t([0.0, 0.0]), directions=(0, 1), extent=1.5, n=31, path=list(steps)
    )
    assert torch.allclose(plane.path, steps)
    assert optim.is_descent(plane.path_values.tolist())  # α < 2/L
    assert plane.minima.tolist() == [[0.0, 0.0]] and len(plane.saddles) == 0
    main = optim.landscape(valley, steps[-1], directions="pca", path=list(steps), n=5)
    assert torch.allclose(main.directions @ main.directions.T, torch.eye(2, dtype=F64), atol=1e-12)
    assert torch.allclose(main.origin + main.path @ main.directions, steps, atol=1e-10)


def test_minima_and_saddles_are_flagged() -> None:
    """Two wells at ±1 and the saddle between them."""
    plane = optim.landscape(
        lambda x: (x[0] ** 2 - 1) ** 2 + x[1] ** 2,
        t([0.0, 0.0]),
        directions=(0, 1),
        extent=1.5,
        n=31,
    )
    assert sorted(plane.minima.round(decimals=6).tolist()) == [[-1, 0], [1, 0]]
    assert plane.saddles.abs().max().item() < 1e-9 and len(plane.saddles) == 1
    ends = (t([1.0, 0.0]), t([0.0, 1.0]))
    between = optim.landscape(valley, t([-1.0, 0.0]), directions=ends, extent=(0.0, 1.0), n=3)
    assert between.values[0, -1].item() == pytest.approx(0.5)  # a = 1 is the first solution
    for bad, message in (
        ("grid", "directions must be"),
        ("pca", "at least 3 points"),
        ((0, 0), "two of 0 to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            optim.landscape(valley, t([0.0, 0.0]), directions=bad)  # type: ignore[arg-type]


# --- implicit regularisation -----------------------------------------------------------------


def test_modified_flow_follows_the_steps() -> None:
    def L(x: Any) -> Any:
        return 0.5 * x**2

    assert 1 - 0.1 * 1 == 0.9
    assert optim.flow(L, 1.0, 0.1) == pytest.approx(0.904837, abs=1e-6)
    assert optim.flow(optim.modified_loss(L, 0.1), 1.0, 0.1) == pytest.approx(0.900325, abs=1e-6)
    plain, modified = [], []
    for rate in (0.2, 0.1, 0.05):
        plain.append(abs(optim.flow(L, 1.0, rate) - (1 - rate)))
        modified.append(abs(optim.flow(optim.modified_loss(L, rate), 1.0, rate) - (1 - rate)))
    assert plain == pytest.approx([1.87e-2, 4.84e-3, 1.23e-3], rel=5e-3)
    assert modified == pytest.approx([2.52e-3, 3.25e-4, 4.11e-5], rel=5e-3)


def test_modified_loss_of_batches() -> None:
    centres = t([[1.0, 0.0], [-1.0, 2.0], [0.5, 0.5]])
    batches = [lambda x, c=c: 0.5 * (A * (x - c) ** 2).sum() for c in centres]
    x, rate = t([0.3, -0.4]), 0.05
    found = optim.modified_loss(None, rate, "sgd", batches)(x)
    g = torch.stack([A * (x - c) for c in centres])
    whole = torch.stack([b(x) for b in batches]).mean()
    assert found.item() == pytest.approx((whole + rate / 4 * g.square().sum(1).mean()).item())
    apart = (g - g.mean(0)).square().sum(1).mean()
    gd = optim.modified_loss(None, rate, "gd", batches)(x)
    assert (found - gd).item() == pytest.approx((rate / 4 * apart).item())
    assert not found.requires_grad
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(optim.modified_loss(None, rate, "gd", batches)(leaf), leaf)
    mean = g.mean(0)
    assert torch.allclose(slope, mean + rate / 2 * A * mean)
    with pytest.raises(ValueError, match="needs batches"):
        optim.modified_loss(valley, 0.1, "sgd")
    with pytest.raises(ValueError, match="kind must be"):
        optim.modified_loss(valley, 0.1, "adam")  # type: ignore[arg-type]


def test_flow_at_several_times() -> None:
    path = optim.flow(valley, np.array([1.0, 1.0]), [0.0, 0.5, 1.0])
    times = np.array([0.0, 0.5, 1.0])[:, None]
    assert path == pytest.approx(np.exp(-times * A.numpy()), abs=1e-8)
    assert torch.equal(optim.flow(valley, t([1.0, 1.0]), 0.0), t([1.0, 1.0]))
    with pytest.raises(ValueError, match="ascending"):
        optim.flow(valley, t([1.0, 1.0]), [1.0, 0.5])
