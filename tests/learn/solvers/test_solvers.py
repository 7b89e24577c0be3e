"""Exact solvers: optimality, parity, metamorphic relations, shards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.svm import LinearSVC as PeerSVC
from torch import Tensor

from groundstate.compute.reduce import current, run_local
from groundstate.energy import LinearEnergy, NetClassEnergy, SquaredEnergy
from groundstate.errors import SeparationWarning, Unsupported
from groundstate.learn import (
    L2,
    LBFGS,
    Closed,
    HingeDual,
    LeastSquares,
    Naive,
    Newton,
    OneVsRest,
    OnlinePerceptron,
    Perceptron,
    SoftMin,
    SquaredHingeNewton,
    Stochastic,
    fit,
)
from groundstate.learn.base import Problem
from groundstate.learn.fit import choose


def classes(n: int = 150, d: int = 5, k: int = 3, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g, dtype=torch.float64)
    noise = torch.randn(n, k, generator=g, dtype=torch.float64)
    return {
        "x": x,
        "y": (x @ torch.randn(d, k, generator=g, dtype=torch.float64) + noise).argmax(1),
    }


def gradient_norm(energy: LinearEnergy, data: dict[str, Tensor], penalty: L2 | None) -> float:
    problem = Problem(energy, SoftMin(), data, None, penalty)
    return float(problem.value_and_gradient(list(energy.parameters()))[1].abs().max())


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("solver", [Newton(tol=1e-6), LBFGS(tol=1e-8, max_iter=1000)])
@pytest.mark.parametrize("penalty", [L2(1.0), None])
def test_softmin_is_stationary(k: int, solver: object, penalty: L2 | None) -> None:
    data = classes(k=k)
    energy = LinearEnergy(5, k).double()
    history = fit(energy, data, SoftMin(), solver, penalty=penalty)  # type: ignore[arg-type]
    assert history.converged
    assert gradient_norm(energy, data, penalty) < 1e-7


def test_newton_equals_scikit_learn() -> None:
    data = classes()
    energy = LinearEnergy(5, 3).double()
    fit(energy, data, SoftMin(), Newton(tol=1e-9), penalty=L2(0.5))
    peer = PeerLogistic(C=2.0, tol=1e-12, max_iter=10_000)
    peer.fit(data["x"].numpy(), data["y"].numpy())
    np.testing.assert_allclose(energy.W.detach().numpy(), peer.coef_, atol=1e-6)


def test_newton_warns_on_separable_classes_without_penalty() -> None:
    x = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    with pytest.warns(SeparationWarning, match="classes are separable"):
        fit(
            LinearEnergy(1, 2).double(), {"x": x, "y": torch.tensor([0, 1])}, SoftMin(),
            Newton(max_iter=5, tol=1e-12),
        )  # fmt: skip


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("k", [2, 3])
def test_support_vectors_equal_liblinear(power: int, k: int) -> None:
    data = classes(k=k)
    energy = LinearEnergy(5, k).double()
    solver = SquaredHingeNewton() if power == 2 else HingeDual(tol=1e-8, max_iter=100_000)
    strength = 2.0 if k == 2 else 1.0
    fit(energy, data, OneVsRest(power=power), solver, penalty=L2(strength, intercept=True))
    loss = "squared_hinge" if power == 2 else "hinge"
    peer = PeerSVC(loss=loss, dual=True, tol=1e-10, max_iter=1_000_000)
    peer.fit(data["x"].numpy(), data["y"].numpy())
    W = energy.W.detach().numpy()
    np.testing.assert_allclose(W[1:] - W[:1] if k == 2 else W, peer.coef_, atol=1e-5)


def test_perceptron_makes_finitely_many_mistakes_on_separable_rows() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=g, dtype=torch.float64)
    x = x[x[:, 0].abs() > 0.3]
    data = {"x": x, "y": (x[:, 0] > 0).long()}
    energy = LinearEnergy(3, 2).double()
    history = fit(energy, data, Perceptron(), OnlinePerceptron(tol=None))
    assert history.stop == "no mistakes"
    assert bool((energy.table("y", x=x).argmin(1) == data["y"]).all())


def regression(n: int = 80, d: int = 6) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    x = 3 + torch.randn(n, d, generator=g, dtype=torch.float64)
    y = x @ torch.randn(d, 2, generator=g, dtype=torch.float64)
    return {"x": x, "y": y + torch.randn(n, 2, generator=g, dtype=torch.float64)}


@pytest.mark.parametrize("solver", [LeastSquares(), Closed()])
@pytest.mark.parametrize("alpha", [0.0, 2.5])
def test_least_squares_equals_scikit_learn(solver: object, alpha: float) -> None:
    data = regression()
    energy = SquaredEnergy(6, 2).double()
    fit(energy, data, Naive(), solver, penalty=L2(alpha) if alpha else None)  # type: ignore[arg-type]
    peer = PeerRidge(alpha=alpha).fit(data["x"].numpy(), data["y"].numpy())
    np.testing.assert_allclose(energy.W.detach().numpy(), peer.coef_, atol=1e-9)
    np.testing.assert_allclose(energy.b.detach().numpy(), peer.intercept_, atol=1e-8)


def test_collinear_columns_give_the_solution_of_smallest_norm() -> None:
    data = regression()
    x = torch.cat([data["x"], data["x"][:, :2], torch.ones(80, 1, dtype=torch.float64)], 1)
    energy = SquaredEnergy(9, 2).double()
    history = fit(energy, {"x": x, "y": data["y"]}, Naive(), LeastSquares())
    centred = (x - x.mean(0)).numpy()
    expected = np.linalg.lstsq(centred, (data["y"] - data["y"].mean(0)).numpy(), rcond=1e-12)[0]
    np.testing.assert_allclose(energy.W.detach().numpy().T, expected, atol=1e-9)
    assert history.extra["rank"] == [6.0]


def test_fewer_rows_than_columns() -> None:
    data = {k: v[:4] for k, v in regression().items()}
    energy = SquaredEnergy(6, 2).double()
    fit(energy, data, Naive())
    torch.testing.assert_close(energy.predict(data["x"]), data["y"])


def test_large_offsets_cost_no_digits() -> None:
    data = regression()
    plain, moved = SquaredEnergy(6, 2).double(), SquaredEnergy(6, 2).double()
    fit(plain, data, Naive())
    fit(moved, {"x": data["x"] + 1e6, "y": data["y"]}, Naive())
    torch.testing.assert_close(plain.W, moved.W, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "rule", "solver", "penalty"),
    [
        (lambda: LinearEnergy(5, 3), SoftMin(), Newton(tol=1e-9), L2(1.0)),
        (lambda: LinearEnergy(5, 3), SoftMin(), LBFGS(tol=1e-9), L2(1.0)),
        (lambda: LinearEnergy(5, 3), OneVsRest(), SquaredHingeNewton(), L2(1.0, intercept=True)),
        (lambda: LinearEnergy(5, 3), Perceptron(), OnlinePerceptron(max_iter=5), None),
    ],
)
def test_row_twice_is_weight_two(make, rule, solver, penalty) -> None:  # type: ignore[no-untyped-def]
    data = classes(60)
    weight = torch.ones(60, dtype=torch.float64)
    weight[:20], weight[20:25] = 2.0, 0.0
    index = torch.repeat_interleave(torch.arange(60), weight.long())
    weighted, repeated = make().double(), make().double()
    fit(weighted, data, rule, solver, sample_weight=weight, penalty=penalty, random_state=0)
    twice = {k: v[index] for k, v in data.items()}
    fit(repeated, twice, rule, solver, penalty=penalty, random_state=0)
    torch.testing.assert_close(weighted.W, repeated.W, rtol=1e-6, atol=1e-8)


def test_choice_of_solver() -> None:
    data = classes()
    linear = LinearEnergy(5, 3).double()
    assert isinstance(choose(Problem(linear, SoftMin(), data)), Newton)
    assert isinstance(choose(Problem(linear, OneVsRest(), data, None, L2(1.0))), SquaredHingeNewton)
    squared = Problem(SquaredEnergy(6, 2).double(), Naive(), regression())
    assert isinstance(choose(squared), LeastSquares)
    net = NetClassEnergy(5, 3, (4,)).double()
    assert isinstance(choose(Problem(net, SoftMin(), data)), LBFGS)
    assert isinstance(choose(Problem(net, Perceptron(), data)), Stochastic)


def test_a_solver_that_does_not_fit_names_one_that_does() -> None:
    with pytest.raises(Unsupported, match=r"LBFGS cannot run Perceptron.*kinks.*what would run"):
        fit(LinearEnergy(5, 3).double(), classes(), Perceptron(), LBFGS())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(0, 5, dtype=torch.float64), "y": torch.zeros(0).long()}, "no rows"),
        ({"x": torch.full((150, 5), torch.nan, dtype=torch.float64)}, "NaN or infinity, first in"),
        ({"q": torch.zeros(150)}, "does not know"),
        ({"x": torch.zeros(150, 4, dtype=torch.float64)}, "must have shape"),
        ({"x": torch.zeros(150, 5)}, "is torch.float32 but LinearEnergy is torch.float64"),
    ],
)
def test_bad_data_gets_one_sentence(change: dict[str, Tensor], message: str) -> None:
    error = (ValueError, FloatingPointError, TypeError)
    with pytest.raises(error, match=message):
        fit(LinearEnergy(5, 3).double(), {**classes(), **change}, SoftMin())


def _sharded(rank: int) -> list[Tensor]:
    data = classes(101)
    world = current().world
    mine = {k: v[rank * 60 : 60 if rank == 0 and world > 1 else None] for k, v in data.items()}
    out = []
    for rule, solver, penalty in (
        (SoftMin(), Newton(tol=1e-9), L2(1.0)),
        (SoftMin(), LBFGS(tol=1e-10), L2(1.0)),
        (OneVsRest(), SquaredHingeNewton(), L2(1.0, intercept=True)),
        (SoftMin(), Stochastic(lr=0.05, batch_size=16, max_epochs=3, tol=None), None),
    ):
        energy = LinearEnergy(5, 3).double()
        fit(energy, mine, rule, solver, penalty=penalty, random_state=0)
        out.append(energy.W.detach())
    table = regression()
    part = {k: v[rank * 50 : 50 if rank == 0 and world > 1 else None] for k, v in table.items()}
    wide = {k: v[rank * 2 : 2 if rank == 0 and world > 1 else 4] for k, v in table.items()}
    for rows, strength in ((part, 0.0), (part, 2.0), (wide, 2.0)):
        squares = SquaredEnergy(6, 2).double()
        fit(squares, rows, Naive(), LeastSquares(), penalty=L2(strength) if strength else None)
        out.append(squares.W.detach())
    return out


def test_two_processes_equal_one() -> None:
    alone = _sharded(0)
    first, second = run_local(_sharded, 2)
    for a, b, c in zip(alone, first, second, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)
        assert torch.equal(b, c)
