"""Physics-informed networks: equations solved, coefficients found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import groundstate
from groundstate import physics
from groundstate.energy import ResidualEnergy
from groundstate.errors import DataError, ShapeError


def spring(**settings: Any) -> physics.PINN:
    given = {
        "hidden": (12,),
        "n_collocation": 48,
        "optimizer": "lbfgs",
        "lbfgs_steps": 200,
        "resample": False,
    }
    return physics.PINN(physics.library["harmonic"](T=3.0), random_state=0, **{**given, **settings})


def test_the_loss_vanishes_at_the_solution() -> None:
    class Exact(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cos(x)

    problem = physics.library["harmonic"]()
    from groundstate.compute.random import Key

    pieces = problem.pieces(2, Key.of(0))
    energy = ResidualEnergy(Exact(), problem.residual(pieces), 1)
    x = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    y = torch.tensor([[1.0], [np.nan], [np.nan]], dtype=torch.float64)
    e = energy(x=x, y=y, kind=torch.tensor([0, 0, 1]))
    assert float(e.detach().abs().max()) < 1e-28


def test_a_spring_saved_and_loaded(tmp_path: Path) -> None:
    model = spring().fit()
    t = np.linspace(0, 3, 31)[:, None]
    assert np.abs(model.predict(t) - np.cos(t[:, 0])).max() < 5e-3
    assert model.loss_["equation"] < 1e-5 and model.n_points_ == {"equation": 48, "conditions": 2}
    assert model.history_.objective[-1] == pytest.approx(sum(model.loss_.values()), rel=1e-6)
    np.testing.assert_allclose(model.energy(t), model.residual(t) ** 2)
    np.testing.assert_allclose(model.energy(t, np.zeros(31)), model.predict(t) ** 2)
    axes, u = model.predict_grid(11)
    assert u.shape == (11,) and np.allclose(axes[0], np.linspace(0, 3, 11))
    loaded = groundstate.load(model.save(tmp_path / "spring.gs"))
    np.testing.assert_array_equal(loaded.predict(t), model.predict(t))
    np.testing.assert_array_equal(loaded.residual(t), model.residual(t))
    assert loaded.problem == model.problem
    again = clone(model).fit()
    np.testing.assert_array_equal(again.predict(t), model.predict(t))
    given = model.predict(torch.as_tensor(t))
    assert isinstance(given, torch.Tensor)


@pytest.mark.parametrize("settings", [
    {"optimizer": "adam", "adam_steps": 30}, {"weights": "gradnorm"}, {"resample": 2},
    {"weights": {"conditions": 10.0}}, {"sampler": "lhs"}, {"dtype": "float32"},
    {"optimizer": "adam+lbfgs", "adam_steps": 20, "weights": "gradnorm", "resample": 1},
    {"activation": "sine"}, {"fourier": 4},
])  # fmt: skip
def test_settings_run(settings: dict[str, Any]) -> None:
    model = spring(**{"lbfgs_steps": 20, **settings}).fit()
    assert np.isfinite(model.predict(np.zeros((2, 1)))).all()
    assert model.n_points_["equation"] == 48


def test_values_by_construction() -> None:
    problem = physics.library["heat"]()
    model = physics.PINN(problem, (8,), hard_bc=True, optimizer="lbfgs", lbfgs_steps=60, n_collocation=100,
                         resample=False, random_state=0).fit()  # fmt: skip
    x = np.linspace(0, 1, 9)
    on = np.concatenate(
        [np.column_stack([0 * x, x]), np.column_stack([x, 0 * x]), np.column_stack([x, 0 * x + 1])]
    )
    np.testing.assert_allclose(model.predict(on), problem.solution(on), atol=1e-12)
    assert list(model.loss_) == ["equation"]
    inside = problem.domain.sample(50, 1)
    assert np.abs(model.predict(inside) - problem.solution(inside)).max() < 0.02
    with pytest.raises(ValueError, match="hard_bc=True needs values on sides"):
        free = physics.Problem(physics.Box(x=(0, 1)), "u.x - 1", [physics.Neumann("x=1", 1.0)])
        physics.PINN(free, hard_bc=True).fit()


def test_slopes_mixtures_and_periods() -> None:
    """u'' = −π² cos πx: cos πx, by Neumann, Robin and periodic conditions."""
    quick = {"hidden": (10,), "optimizer": "lbfgs", "lbfgs_steps": 300, "n_collocation": 60,
             "resample": False, "random_state": 0}  # fmt: skip
    box = physics.Box(x=(0, 2))
    x = np.linspace(0, 2, 21)[:, None]
    text = "u.xx + pi**2*cos(pi*x)"
    for conditions in (
        [physics.Neumann("x=0", 0.0), physics.Dirichlet("x=2", 1.0)],
        [physics.Robin("x=low", -2.0, a=-2.0, b=3.0), physics.Dirichlet("x=2", 1.0)],
        [physics.Periodic("x"), physics.Dirichlet("x=0", 1.0)],
    ):
        model = physics.PINN(physics.Problem(box, text, conditions), **quick).fit()
        assert np.abs(model.predict(x) - np.cos(np.pi * x[:, 0])).max() < 0.05, conditions


def test_a_system_and_its_coefficients() -> None:
    """Two unknown coefficients of prey and hunters, from measurements of both."""
    truth = physics.library["lotka_volterra"](T=3.0)
    problem = truth.with_parameters(a=None, d=None)
    t = np.linspace(0, 3, 40)[:, None]
    u = truth.solution(t)
    u[3, 0] = np.nan  # one that was not measured
    model = physics.PINN(problem, (16,), optimizer="lbfgs", lbfgs_steps=600, n_collocation=60,
                         resample=False, n_bootstrap=3, random_state=0).fit(t, u)  # fmt: skip
    assert model.parameters_["a"] == pytest.approx(1, abs=0.02)
    assert model.parameters_["d"] == pytest.approx(1, abs=0.02)
    assert model.parameters_["b"] == 1.0 and len(model.trace_["a"]) > 10
    assert all(low <= high for low, high in model.intervals_.values())
    assert model.predict(t).shape == (40, 2)


def test_a_weight_of_two_is_the_row_twice() -> None:
    problem = physics.library["logistic"](r=None)
    t = np.linspace(0, 6, 15)[:, None]
    u = physics.library["logistic"]().solution(t)
    weight = np.where(np.arange(15) % 3, 1, 2)
    quick = {"hidden": (6,), "optimizer": "lbfgs", "lbfgs_steps": 5, "n_collocation": 20, "resample": False,
             "n_bootstrap": 0, "random_state": 0}  # fmt: skip
    one = physics.PINN(problem, **quick).fit(t, u, sample_weight=weight)
    two = physics.PINN(problem, **quick).fit(np.repeat(t, weight, 0), np.repeat(u, weight))
    np.testing.assert_allclose(one.predict(t), two.predict(t), rtol=1e-8)


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"physics\.Problem"):
        physics.PINN("burgers").fit()
    with pytest.raises(DataError, match="omega are unknown"):
        physics.PINN(physics.library["harmonic"](None)).fit()
    with pytest.raises(FloatingPointError, match=r"log\(-1 - x\*\*2\)"):
        bad = physics.Problem(
            physics.Box(x=(0, 1)), "u.x - log(-1 - x**2)", [physics.Dirichlet("x=0")]
        )
        physics.PINN(bad).fit()
    with pytest.raises(ShapeError, match=r"points \(n, 1\) of t"):
        spring().fit(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(DataError, match="NaN or infinity"):
        spring().fit(np.zeros((3, 1)), [1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="both, or neither"):
        spring().fit(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="equation, conditions, data"):
        spring(weights={"edge": 1.0}).fit()
