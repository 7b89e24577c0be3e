"""Functions from points, images, fields from trajectories, equations from data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import groundstate
from groundstate import FunctionRegressor, ode, physics
from groundstate.errors import DataError, ShapeError

SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def paths(n: int = 6, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    t = np.linspace(0, 2, 21)
    starts = np.random.default_rng(seed).normal(size=(n, 2))
    return [(t, ode.linear(SPIRAL, y0, t)) for y0 in starts]


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(2, 2, bias=False)

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.w(y)
        return out


@pytest.mark.slow
def test_an_image_is_a_function() -> None:
    """64² pixels to 30 dB; twice the resolution, averaged, is the image again."""
    y, x = np.mgrid[:64, :64] / 63
    image = 0.5 + 0.3 * np.sin(9 * x) * np.cos(7 * y) + 0.2 * (np.hypot(x - 0.5, y - 0.4) < 0.25)
    model = FunctionRegressor((64, 64), "sine", max_iter=120, batch_size=512, n_iter_no_change=np.inf,
                              learning_rate_init=1e-3, random_state=0).fit_image(image)  # fmt: skip
    psnr = -10 * np.log10(((model.render() - image) ** 2).mean())
    assert psnr >= 30
    twice = model.render((128, 128))
    assert np.abs(twice.reshape(64, 2, 64, 2).mean((1, 3)) - model.render()).mean() < 0.02
    places = np.array([[(3 + 0.5) / 64, (10 + 0.5) / 64]])
    np.testing.assert_allclose(model.predict(places), model.render()[3, 10], rtol=1e-12)


def test_images_are_checked_and_have_channels() -> None:
    with pytest.raises(ShapeError, match=r"\(H, W\) or \(H, W, C\)"):
        FunctionRegressor().fit_image(np.zeros(5))
    model = FunctionRegressor((4,), max_iter=2, n_iter_no_change=np.inf, random_state=0)
    model.fit_image(np.zeros((4, 5, 3)))
    assert model.render((8, 10)).shape == (8, 10, 3)


def test_a_linear_field_and_the_way_back(tmp_path: Path) -> None:
    model = physics.NeuralODE(Linear(), random_state=0).fit(paths())
    found = model.energy_.field.w.weight.detach().numpy()
    np.testing.assert_allclose(found, SPIRAL, atol=1e-2)
    t, y = paths(1, seed=3)[0]
    there = model.predict(y[0], t)
    back = model.predict(there[-1], t[::-1])
    np.testing.assert_allclose(back[-1], y[0], atol=1e-5)
    assert model.score(paths(2, seed=5)) > 0.999
    assert model.energy(paths(1)).shape == (20,)
    table = tmp_path / "paths.csv"
    rows = [f"{i},{a},{p},{q}" for i, (t, y) in enumerate(paths()) for a, (p, q) in zip(t, y)]
    table.write_text("id,t,p,q\n" + "\n".join(rows))
    again = physics.NeuralODE(Linear(), random_state=0).fit(str(table))
    np.testing.assert_allclose(again.energy_.field.w.weight.detach().numpy(), found, atol=1e-3)


def test_adjoint_is_backprop() -> None:
    """Gradients of the energy in θ, float64, dopri5 at 1e-9."""
    from groundstate.energy.networks.flow import FlowEnergy, StateField
    from groundstate.nn import MLP

    field = StateField(MLP(2, (6,), 2, "tanh")).double()
    x = torch.tensor([[0.0, 0.3, 1.0, 0.5, -1.0], [0.2, 0.9, 1.1, 1.0, 0.3]], dtype=torch.float64)
    y = torch.zeros(2, 4, dtype=torch.float64)
    grads = []
    for adjoint in (False, True):
        energy = FlowEnergy(field, 2, 2, rtol=1e-9, atol=1e-9, adjoint=adjoint)
        grads.append(torch.autograd.grad(energy(x=x, y=y).sum(), list(field.parameters())))
    for a, b in zip(*grads):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def test_one_step_of_euler_is_a_residual_block() -> None:
    from groundstate.energy.networks.flow import FlowEnergy, StateField
    from groundstate.nn import Residual

    branch = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).double()
    energy = FlowEnergy(StateField(branch), 2, 1, method="euler")
    y0 = torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.cat([torch.tensor([[0.0, 1.0]]).expand(3, 2), y0], 1)
    torch.testing.assert_close(energy.best(x), Residual(branch)(y0))


def test_fields_are_saved(tmp_path: Path) -> None:
    model = physics.NeuralODE(hidden=(4,), method="rk4", autonomous=False, solver="adam", max_iter=3,
                              window=2, random_state=0).fit(paths(2))  # fmt: skip
    loaded = groundstate.load(model.save(tmp_path / "field.gs"))
    t, y = paths(1)[0]
    np.testing.assert_array_equal(loaded.predict(y[0], t), model.predict(y[0], t))
    both = model.predict(y[:2], t)
    np.testing.assert_allclose(both[1], model.predict(y[1], t))


def test_bad_trajectories() -> None:
    t = np.linspace(0, 1, 5)
    with pytest.raises(DataError, match="must rise"):
        physics.NeuralODE().fit([(t[::-1], np.zeros((5, 2)))])
    with pytest.raises(DataError, match="NaN"):
        physics.NeuralODE().fit([(t, np.full((5, 2), np.nan))])
    with pytest.raises(DataError, match="lower window"):
        physics.NeuralODE(window=9).fit([(t, np.zeros((5, 2)))])
    with pytest.raises(TypeError, match="torch module"):
        physics.NeuralODE(lambda t, y: y).fit([(t, np.zeros((5, 2)))])
    with pytest.raises(DataError, match="list of"):
        physics.NeuralODE().fit(3)


def test_lorenz() -> None:
    def lorenz(t: float, y: np.ndarray) -> np.ndarray:
        return np.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    t = np.arange(0, 8, 0.005)
    Y = ode.odeint(lorenz, [1.0, 1.0, 1.0], t, rtol=1e-9, atol=1e-10)
    found = physics.EquationFinder("t", order=0, names=("x", "y", "z")).fit(t[:, None], Y)
    truth = [{"x": -10, "y": 10}, {"x": 28, "y": -1, "x z": -1}, {"z": -8 / 3, "x y": 1}]
    for c, terms in enumerate(truth):
        for term in found.terms_:
            assert found.coefficient(term, c) == pytest.approx(terms.get(term, 0.0), rel=0.01)


@pytest.mark.slow
def test_terms_of_burgers() -> None:
    problem = physics.library["burgers"](0.1 / np.pi)
    X = problem.domain.sample(2000, 0)
    found = physics.EquationFinder("tx", random_state=0).fit(X, problem.solution(X))
    used = {t: c for t, c in zip(found.terms_, found.coef_[0]) if c}
    assert used.keys() == {"u u.x", "u.xx"}
    assert used["u u.x"] == pytest.approx(-1, rel=0.05)
    assert used["u.xx"] == pytest.approx(0.1 / np.pi, rel=0.1)


def test_finder_refuses() -> None:
    with pytest.raises(ValueError, match="one of the coordinates must be t"):
        physics.EquationFinder("xy").fit(np.zeros((4, 2)), np.zeros(4))
    with pytest.raises(ShapeError, match=r"points \(n, 2\)"):
        physics.EquationFinder("tx").fit(np.zeros((4, 1)), np.zeros(4))
    with pytest.raises(DataError, match="one value for each time"):
        physics.EquationFinder("t").fit(np.zeros((9, 1)), np.zeros(9))


def test_states_of_any_structure() -> None:
    t = torch.linspace(0, 1, 5, dtype=torch.float64)
    y0 = {
        "q": torch.tensor([1.0, 2.0], dtype=torch.float64),
        "p": (torch.zeros(2, dtype=torch.float64),),
    }
    for method in ("dopri5", "rk4", "midpoint", "euler"):
        found = ode.odeint(lambda t, y: {"q": y["p"][0], "p": (-y["q"],)}, y0, t, method)
        assert found["q"].shape == (5, 2) and found["p"][0].shape == (5, 2)
    exact = ode.odeint(lambda t, y: {"q": y["p"][0], "p": (-y["q"],)}, y0, t, rtol=1e-9)
    torch.testing.assert_close(exact["q"][-1], y0["q"] * torch.cos(t[-1]), atol=1e-7, rtol=0)
    y0["q"].requires_grad_()
    ode.odeint(lambda t, y: {"q": y["p"][0], "p": (-y["q"],)}, y0, t)["q"][-1].sum().backward()
    torch.testing.assert_close(y0["q"].grad, torch.cos(t[-1]).expand(2), atol=1e-5, rtol=0)
    with pytest.raises(ShapeError, match="structure"):
        ode.odeint(lambda t, y: y["q"], y0, t)


def test_worked_steps() -> None:
    """y' = y: one step of 0.1 and of 1, errors at 1, and a hundred steps around a circle."""
    one = {
        m: float(ode.integrate(lambda t, y: y, [1.0], [0, 0.1], m)[-1, 0]) for m in ("euler", "rk4")
    }
    assert one["euler"] == pytest.approx(1.1) and one["rk4"] == pytest.approx(
        1.1051708333, abs=1e-10
    )
    assert ode.integrate(lambda t, y: y, [1.0], [0, 1.0], "rk4")[-1, 0] == pytest.approx(
        2.7083333, abs=1e-7
    )
    for method, errors in (
        ("euler", (0.12454, 0.06498, 0.03322)),
        ("rk4", (2.084e-6, 1.358e-7, 8.67e-9)),
    ):
        for n, error in zip((10, 20, 40), errors):
            off = np.e - ode.integrate(lambda t, y: y, [1.0], [0, 1.0], method, n)[-1, 0]
            assert off == pytest.approx(error, rel=1e-3)
    t = np.linspace(0, 2 * np.pi, 101)
    turned = {m: np.linalg.norm(ode.integrate(lambda t, y: np.stack([-y[1], y[0]]), [1.0, 0.0], t, m)[-1])
              for m in ("euler", "rk4")}  # fmt: skip
    assert turned["euler"] == pytest.approx(1.21775, abs=1e-5)
    assert 1 - turned["rk4"] == pytest.approx(4.3e-8, rel=0.02)


def test_linear_equations_of_any_order() -> None:
    A, c = ode.linear_ode([1.0, 0.0, 1.0])
    t = np.linspace(0, 3, 7)
    y = ode.odeint(lambda t, z: z @ A.T + c, [0.0, 1.0], t, rtol=1e-9)
    np.testing.assert_allclose(y[:, 0], np.sin(t), atol=1e-6)
    np.testing.assert_allclose(y[:, 1], np.cos(t), atol=1e-6)
    A, c = ode.linear_ode([2.0, 4.0], b=-6.0)  # 4y' + 2y − 6 = 0
    y = ode.odeint(lambda t, z: z @ A.T + c, [0.0], t, rtol=1e-9)
    np.testing.assert_allclose(y[:, 0], 3 * (1 - np.exp(-t / 2)), atol=1e-6)
    for bad in ([1.0], [1.0, 0.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="a_n"):
            ode.linear_ode(bad)


def test_integral_curves_are_drawn() -> None:
    curves = physics.IntegralCurves(lambda t, y: np.sin(t) - y, [0.0, 1.0], np.linspace(0, 4, 81))
    assert curves.tangency() < 5e-3 and len(curves.plot(step=1.0).lines) >= 6
    k = [
        s[2]
        for s in physics.IntegralCurves(lambda t, y: y, [1.0], [0.0, 1.0]).stages(0.0, 1.0, 1.0)
    ]
    assert 1 + (k[0] + 2 * k[1] + 2 * k[2] + k[3]) / 6 == pytest.approx(65 / 24)
    flat = physics.IntegralCurves(
        lambda t, y: np.stack([y[1], -y[0]]), [[1.0, 0.0]], np.linspace(0, 6, 30)
    )
    assert len(flat.plot().lines) == 1
    with pytest.raises(ShapeError, match="starts"):
        physics.IntegralCurves(lambda t, y: y, [[1.0, 2.0, 3.0]], [0.0, 1.0])
