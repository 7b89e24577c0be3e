"""Ordinary differential equations: orders, tolerances, rows of their own, and three gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import simpson, solve_ivp
from torch import Tensor, nn

from groundstate import ode
from groundstate.errors import Unsupported

RNG = np.random.default_rng(0)


def grow(t: Any, y: Any) -> Any:
    return y


def turn(t: Any, y: Any) -> Any:
    """A rotation, for arrays and tensors ``(..., 2)``."""
    out = [y[..., 1], -y[..., 0]]
    return torch.stack(out, -1) if isinstance(y, Tensor) else np.stack(out, -1)


def pendulum(t: Any, y: Tensor) -> Tensor:
    return torch.stack([y[..., 1], -torch.sin(y[..., 0]) - 0.1 * y[..., 1]], -1)


def test_one_step() -> None:
    at = lambda method, h: ode.integrate(grow, [1.0], [0.0, h], method)[-1, 0]
    assert at("euler", 0.1) == pytest.approx(1.1)
    assert at("rk4", 0.1) == pytest.approx(1.1051708333)
    assert at("rk4", 1.0) == pytest.approx(65 / 24)
    assert at("midpoint", 1.0) == at("heun", 1.0) == 2.5


@pytest.mark.parametrize(
    ("method", "errors"),
    [
        ("euler", [0.12454, 0.06498, 0.03322]),
        ("midpoint", [4.20e-3, 1.09e-3, 2.78e-4]),
        ("heun", [4.20e-3, 1.09e-3, 2.78e-4]),
        ("rk4", [2.084e-6, 1.358e-7, 8.67e-9]),
    ],
)
def test_errors_at_one(method: str, errors: list[float]) -> None:
    found = [
        np.e - ode.integrate(grow, [1.0], [0.0, 1.0], method, steps=n)[-1, 0] for n in (10, 20, 40)
    ]
    np.testing.assert_allclose(found, errors, rtol=3e-3)
    order = ode.FIXED[method].order
    assert np.log2(found[1] / found[2]) == pytest.approx(order, abs=0.06)


def test_rk4_is_simpsons_rule_where_f_depends_on_t_alone() -> None:
    t = np.linspace(0, 2, 9)
    f = lambda t, y: np.exp(-t) * np.ones_like(y)
    ours = ode.integrate(f, [0.0], t)[-1, 0]
    fine = np.linspace(0, 2, 17)
    assert ours == pytest.approx(simpson(np.exp(-fine), x=fine), rel=1e-14)


def test_steps_and_grids_are_the_same() -> None:
    t = np.linspace(0, 1, 4)
    fine = np.linspace(0, 1, 13)
    for method in ode.FIXED:
        few = ode.integrate(turn, [1.0, 0.0], t, method, steps=4)
        np.testing.assert_allclose(
            few, ode.integrate(turn, [1.0, 0.0], fine, method)[::4], atol=1e-14
        )
        assert few.shape == (4, 2)


def test_an_euler_step_of_one_is_a_residual_block() -> None:
    block = nn.Linear(3, 3).double()
    y = torch.tensor(RNG.normal(size=(5, 3)))
    out = ode.integrate(lambda t, y: block(y), y, torch.tensor([0.0, 1.0]), "euler")
    torch.testing.assert_close(out[-1], y + block(y))


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_backwards_in_time_comes_home(method: str) -> None:
    t = np.linspace(0, 3, 61)
    there = ode.integrate(turn, [1.0, 0.5], t, method, rtol=1e-10, atol=1e-12)
    back = ode.integrate(turn, there[-1], t[::-1], method, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(back[-1], [1.0, 0.5], atol=1e-8)
    np.testing.assert_allclose(back[::-1], there, atol=1e-8)


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize(
    ("f", "y0", "end"),
    [
        (turn, [1.0, 0.0], 20.0),
        (lambda t, y: np.stack([y[0] * (1 - y[1]), y[1] * (y[0] - 1)]), [2.0, 0.5], 12.0),
        (lambda t, y: np.stack([y[1], np.cos(t) - 0.1 * y[1] - np.sin(y[0])]), [1.0, 0.0], 10.0),
    ],
)
def test_dopri5_keeps_its_tolerance_as_scipy_does(f: Any, y0: Any, end: float, tol: float) -> None:
    t = np.linspace(0, end, 37)
    exact = solve_ivp(f, (0, end), y0, "DOP853", t_eval=t, rtol=1e-13, atol=1e-13).y.T
    theirs = solve_ivp(f, (0, end), y0, "RK45", t_eval=t, rtol=tol, atol=tol * 1e-2).y.T
    ours = ode.integrate(f, y0, t, "dopri5", rtol=tol, atol=tol * 1e-2)
    worst = np.abs(theirs - exact).max()
    assert np.abs(ours - exact).max() < max(3 * worst, 1e-11)
    np.testing.assert_allclose(ours, theirs, atol=300 * tol)


def test_stiffness() -> None:
    f = lambda t, y: -50 * y
    at = lambda method, h: ode.integrate(f, [1.0], np.arange(0, 1 + h / 2, h), method)[-1, 0]
    assert at("euler", 0.05) == pytest.approx(3325, abs=1)
    assert abs(at("rk4", 0.05)) < 1
    assert abs(ode.integrate(f, [1.0], 0.06 * np.arange(60), "rk4")[-1, 0]) > 1e3
    stiff = lambda t, y: np.stack([-0.04 * y[0] + 1e4 * y[1] * y[2],
                                   0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2,
                                   3e7 * y[1] ** 2])  # fmt: skip
    with pytest.raises(ValueError, match=r"max_steps=500.*method='radau'"):
        ode.integrate(stiff, [1.0, 0.0, 0.0], [0.0, 100.0], "dopri5", max_steps=500)
    found = ode.integrate(stiff, [1.0, 0.0, 0.0], [0.0, 40.0], "radau")[-1]
    np.testing.assert_allclose(found, [0.7158271, 9.1855e-6, 0.2841637], rtol=1e-4)
    y0 = torch.ones(1, requires_grad=True)
    with pytest.raises(Unsupported, match="has no gradient"):
        ode.integrate(lambda t, y: -y, y0, [0.0, 1.0], "radau")
    with torch.no_grad():
        assert float(ode.integrate(lambda t, y: -y, y0, [0.0, 1.0], "radau")[-1]) == pytest.approx(
            np.exp(-1), rel=1e-4
        )


def test_a_pole_is_named() -> None:
    with pytest.raises(ValueError, match="may have a pole"):
        ode.integrate(lambda t, y: y**2, [1.0], [0.0, 2.0], "dopri5")


def batch(n: int = 30) -> Tensor:
    g = torch.Generator().manual_seed(0)
    return 3 * torch.rand(n, 2, generator=g, dtype=torch.float64) - 1.5


def test_every_row_has_its_own_steps() -> None:
    y0, t = batch(), torch.linspace(0, 9, 14, dtype=torch.float64)
    together = ode.integrate(pendulum, y0, t, "dopri5")
    for i in (0, 7, 29):
        alone = ode.integrate(pendulum, y0[i], t, "dopri5")
        torch.testing.assert_close(together[:, i], alone, atol=1e-12, rtol=1e-12)
    shuffled = ode.integrate(pendulum, y0.flip(0), t, "dopri5")
    torch.testing.assert_close(shuffled.flip(1), together, atol=1e-12, rtol=1e-12)
    one_clock = ode.integrate(pendulum, y0, t, "dopri5", rows=False)
    torch.testing.assert_close(one_clock, together, atol=1e-4, rtol=1e-4)


def test_rows_may_have_parameters_and_times() -> None:
    rate = torch.tensor([0.1, 1.0, 30.0], dtype=torch.float64)
    f = lambda t, y: -rate[:, None] * y * (1 + 0 * t) + 0 * t
    t = torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)
    y0 = torch.ones(3, 2, dtype=torch.float64)
    out = ode.integrate(f, y0, t, "dopri5", rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(out[..., 0], torch.exp(-rate * t[:, None]), atol=1e-8, rtol=1e-8)
    shapes = []
    ode.integrate(lambda t, y: shapes.append(t.shape) or y, y0, t, "dopri5")
    assert set(shapes) == {(3, 1)}
    shapes.clear()
    ode.integrate(lambda t, y: shapes.append(t.shape) or y, y0, t, "dopri5", rows=False)
    assert set(shapes) == {()}
    flat = ode.integrate(
        lambda t, y: -rate * y + 0 * t, y0[:, 0], t, "dopri5", rows=True, rtol=1e-9
    )
    torch.testing.assert_close(flat, torch.exp(-rate * t[:, None]), atol=1e-7, rtol=1e-7)


def test_rows_that_mix_are_refused() -> None:
    from groundstate.math.linalg import Laplacian

    L = Laplacian((6, 5), "dirichlet")
    u = RNG.random((6, 5))
    with pytest.raises(ValueError, match="f mixes the rows of y0"):
        ode.integrate(lambda t, y: L(y), u, [0.0, 0.1], "dopri5")
    found = ode.integrate(lambda t, y: L(y), u, [0.0, 0.1], "dopri5", rows=False)[-1]
    exact = ode.linear(L.to_dense(), u.ravel(), 0.1).reshape(6, 5)
    np.testing.assert_allclose(found, exact, atol=1e-6)
    np.testing.assert_allclose(
        ode.integrate(lambda t, y: L(y), u, [0.0, 0.1], steps=20)[-1], exact, atol=1e-6
    )


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        time = t.expand(*y.shape[:-1], 1)
        return self.layers(torch.cat([time, y], -1))


def gradients(net: Net, y0: Tensor, t: Tensor, **options: Any) -> list[Tensor]:
    start, times = y0.clone().requires_grad_(), t.clone().requires_grad_()
    out = ode.integrate(net, start, times, **options)
    loss = (out[1:] ** 2).sum() + out[-1].sin().sum()
    return list(torch.autograd.grad(loss, [start, times, *net.parameters()]))


T = torch.tensor([0.0, 0.4, 0.7, 1.5], dtype=torch.float64)


@pytest.mark.parametrize("shape", [(2,), (7, 2)])
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_checkpoint_is_backprop(method: str, shape: tuple[int, ...]) -> None:
    net, y0 = Net(), torch.tensor(RNG.normal(size=shape))
    options = {"method": method, **({"steps": 5} if method != "dopri5" else {})}
    exact = gradients(net, y0, T, **options)
    for a, b in zip(gradients(net, y0, T, gradient="checkpoint", **options), exact, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (7, 2)])
def test_adjoint_is_backprop(shape: tuple[int, ...]) -> None:
    net, y0 = Net(), torch.tensor(RNG.normal(size=shape))
    options = {"method": "dopri5", "rtol": 1e-8, "atol": 1e-10}
    exact = gradients(net, y0, T, **options)
    for a, b in zip(gradients(net, y0, T, gradient="adjoint", **options), exact, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    near = gradients(net, y0, T, gradient="adjoint", method="rk4", steps=40)
    for a, b in zip(near, exact, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_the_adjoint_finds_parameters_of_a_function() -> None:
    rate = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    y0 = torch.ones(2, dtype=torch.float64)
    options: Any = {"method": "dopri5", "rtol": 1e-9, "atol": 1e-12, "gradient": "adjoint"}
    for made in (lambda: rate * 2, lambda: rate):
        inner = made()
        out = ode.integrate(lambda t, y, r=inner: -r * y, y0, [0.0, 2.0], **options)
        (slope,) = torch.autograd.grad(out[-1].sum(), rate)
        c = 2.0 if inner is not rate else 1.0
        torch.testing.assert_close(slope, -2 * c * torch.exp(-2 * c * rate.detach()))
    out = ode.integrate(lambda t, y: -rate * y, y0, [0.0, 2.0], params=[rate], **options)
    assert out.requires_grad
    assert not ode.integrate(lambda t, y: -y, y0, [0.0, 2.0], **options).requires_grad
    with torch.no_grad():
        assert not ode.integrate(lambda t, y: -rate * y, y0, [0.0, 2.0], **options).requires_grad


def test_the_adjoint_remembers_nothing_of_the_way() -> None:
    kept: list[int] = []
    y0 = torch.ones(50, 2, dtype=torch.float64, requires_grad=True)
    for gradient, steps in (("adjoint", 10), ("adjoint", 100), ("backprop", 10), ("backprop", 100)):
        size = [0]

        def pack(x: Tensor, size: list[int] = size) -> Tensor:
            size[0] += x.numel()
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            ode.integrate(pendulum, y0, [0.0, 5.0], steps=steps, gradient=gradient)
        kept.append(size[0])
    assert kept[0] == kept[1] and kept[3] > 5 * kept[2] > kept[0]


@pytest.mark.parametrize("method", ["euler", "midpoint", "heun", "rk4", "dopri5"])
def test_gradcheck(method: str) -> None:
    y0 = torch.tensor(RNG.normal(size=(3, 2)), requires_grad=True)
    rate = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    t = torch.tensor([0.0, 0.3, 0.8], dtype=torch.float64, requires_grad=True)

    def f(y0: Tensor, rate: Tensor, t: Tensor) -> Tensor:
        field = lambda s, y: pendulum(s, y) * rate + s
        tight: Any = {"rtol": 1e-11, "atol": 1e-13} if method == "dopri5" else {"steps": 3}
        return ode.integrate(field, y0, t, method, **tight)

    assert torch.autograd.gradcheck(f, (y0, rate, t), atol=1e-5, rtol=1e-4)
    if method != "dopri5":
        assert torch.autograd.gradgradcheck(f, (y0, rate, t), atol=1e-4)


def test_rejected_steps_leave_no_trace_in_the_gradient() -> None:
    y0 = torch.tensor([[0.5], [2.0]], dtype=torch.float64, requires_grad=True)
    f = lambda t, y: -torch.exp(3 * y) + 1 / (y * y + 1e-3)  # wild at the first guesses
    out = ode.integrate(f, y0, [0.0, 1.0], "dopri5", rtol=1e-9, atol=1e-12)
    (slope,) = torch.autograd.grad(out[-1].sum(), y0)
    assert bool(slope.isfinite().all())
    e = 1e-6
    up = ode.integrate(f, y0.detach() + e, [0.0, 1.0], "dopri5", rtol=1e-11, atol=1e-13)[-1]
    low = ode.integrate(f, y0.detach() - e, [0.0, 1.0], "dopri5", rtol=1e-11, atol=1e-13)[-1]
    torch.testing.assert_close(slope, (up - low) / (2 * e), atol=1e-5, rtol=1e-4)


def test_kinds_of_arrays() -> None:
    t = np.linspace(0, 1, 5)
    for method in ("rk4", "dopri5", "radau"):
        plain = ode.integrate(turn, np.array([1.0, 0.0]), t, method)
        ours = ode.integrate(turn, torch.tensor([1.0, 0.0], dtype=torch.float64), t, method)
        assert isinstance(plain, np.ndarray) and isinstance(ours, Tensor)
        np.testing.assert_array_equal(plain, ours)
        small = ode.integrate(turn, np.array([1.0, 0.0], np.float32), t, method)
        assert small.dtype == np.float32
        np.testing.assert_allclose(small, plain, atol=1e-4)
        if method == "radau":
            with pytest.raises(ValueError, match="real systems"):
                ode.integrate(lambda t, y: 1j * y, [1.0 + 0j], t, method)
        else:
            spin = ode.integrate(lambda t, y: 1j * y, [1.0 + 0j], t, method)
            np.testing.assert_allclose(spin[:, 0], np.exp(1j * t), atol=2e-3)
    assert ode.integrate(grow, 1, [0, 1], "dopri5")[-1] == pytest.approx(np.e, rel=1e-5)
    assert ode.integrate(grow, [1.0], [3.0]).tolist() == [[1.0]]
    net = Net()
    assert isinstance(ode.integrate(net, np.ones((4, 2)), t, "dopri5"), np.ndarray)


def test_bad_input() -> None:
    call = lambda **k: ode.integrate(**{"f": grow, "y0": [1.0], "t": [0.0, 1.0], **k})
    with pytest.raises(ValueError, match="method must be one of"):
        call(method="rk45")
    with pytest.raises(ValueError, match="gradient must be one of"):
        call(gradient="none")
    with pytest.raises(ValueError, match="strictly ascending"):
        call(t=[0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"t must be times \(m,\)"):
        call(t=1.0)
    with pytest.raises(ValueError, match="y0 holds NaN"):
        call(y0=[np.nan])
    with pytest.raises(ValueError, match="t holds NaN"):
        call(t=[0.0, np.inf])
    with pytest.raises(ValueError, match="steps must be at least 1"):
        call(steps=0)
    with pytest.raises(ValueError, match="goes with euler"):
        call(method="dopri5", steps=3)
    with pytest.raises(ValueError, match="must be positive"):
        call(method="dopri5", rtol=0.0)
    with pytest.raises(ValueError, match="f must return the shape of y"):
        call(f=lambda t, y: np.ones(3))
    with pytest.raises(ValueError, match="f must return a tensor"):
        call(f=lambda t, y: 1.0, y0=torch.ones(1))
    with pytest.raises(ValueError, match="rows=True needs"):
        call(y0=1.0, rows=True, method="dopri5")


def test_linear_systems() -> None:
    A = RNG.normal(size=(3, 3))
    c, t = RNG.normal(size=3), np.linspace(0, 2, 9)
    exact = ode.linear(A, c, t)
    np.testing.assert_allclose(exact[0], c)
    tight: Any = {"rtol": 1e-10, "atol": 1e-12}
    found = ode.integrate(lambda t, y: A @ y, c, t, "dopri5", **tight)
    np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-8)
    s = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    slope = torch.func.jacrev(lambda s: ode.linear(torch.tensor(A), torch.tensor(c), s))(s)
    torch.testing.assert_close(
        slope, torch.tensor(A) @ ode.linear(torch.tensor(A), torch.tensor(c), s)
    )
    many = ode.linear(np.stack([A, 2 * A]), np.stack([c, c]), t)
    assert many.shape == (9, 2, 3)
    np.testing.assert_allclose(many[:, 1], ode.linear(A, c, 2 * t), rtol=1e-10)
    with pytest.raises(ValueError, match="c must have 3 entries"):
        ode.linear(A, c[:2], t)
    with pytest.raises(ValueError, match="t must be times"):
        ode.linear(A, c, t[None])


def test_kinds_of_equations() -> None:
    assert ode.classify_pde(1, 0, 1) == "elliptic"  # Laplace
    assert ode.classify_pde(1, 0, 0) == "parabolic"  # heat
    assert ode.classify_pde(1, 0, -1) == "hyperbolic"  # wave
    x = np.array([-1.0, 0.0, 1.0])  # Tricomi: u_xx + x u_yy
    assert ode.classify_pde(np.ones(3), np.zeros(3), x).tolist() == [
        "hyperbolic", "parabolic", "elliptic",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="not of second order"):
        ode.classify_pde(0, 0, 0)


@pytest.mark.parametrize("many", [3, 9, 400])
@pytest.mark.parametrize("backwards", [False, True])
def test_rows_with_clocks_of_their_own_pass_any_number_of_outputs(
    many: int, backwards: bool
) -> None:
    rate = torch.tensor([0.01, 0.3, 1.0, 5.0, 20.0], dtype=torch.float64)
    t = torch.linspace(0, 2, many, dtype=torch.float64)
    t = t.flip(0) if backwards else t
    y0 = torch.stack([torch.cos(rate * t[0]), torch.sin(rate * t[0])], -1)
    f = lambda t, y: rate[:, None] * torch.stack([-y[..., 1], y[..., 0]], -1)
    found = ode.integrate(f, y0, t, "dopri5", rtol=1e-8, atol=1e-10)
    angle = rate * t[:, None]
    exact = torch.stack([angle.cos(), angle.sin()], -1)
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-6)
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    learned = ode.integrate(lambda t, y: weight * f(t, y), y0, t, "dopri5", rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(learned.detach(), found, rtol=0, atol=1e-12)
    slope = torch.autograd.grad(learned[-1, :, 0].sum(), weight)[0]
    span = t[-1] - t[0]
    expected = -(rate * span * torch.sin(rate * t[-1])).sum()
    torch.testing.assert_close(slope, expected, rtol=1e-5, atol=1e-6)
