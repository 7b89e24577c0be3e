from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize as scipy_minimize
from sklearn.cluster import KMeans
from tests.infer.helpers_infer import (
    F64,
    Chain3,
    Quadratic,
    Spins,
    bilinear,
    close,
    linear_gaussian,
    seed,
)
from torch import Tensor

from groundstate.energy import (
    Binary,
    CentroidEnergy,
    DensityEnergy,
    Energy,
    LinearEnergy,
    Real,
    Simplex,
    SquaredEnergy,
    TableEnergy,
)
from groundstate.errors import Unsupported
from groundstate.infer import (
    Beam,
    Chain,
    ClosedForm,
    Coordinate,
    Enumerate,
    Gradient,
    minimise,
)


def test_closed_form_minimum_of_the_linear_gaussian():
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    found = minimise(linear_gaussian(), "z", {"x": x})
    close(found["z"], [[1.047619]])
    close(found.energy, [0.244048])
    assert found.exact and bool(found.converged.all())


def test_closed_form_is_the_network_output_and_the_pseudo_inverse():
    e = SquaredEnergy(3, 2)
    x = torch.randn(5, 3, generator=seed())
    found = minimise(e, "y", {"x": x})
    close(found.energy, [0.0])
    (y,) = (found["y"],)
    torch.testing.assert_close(y, e.ability("conditional", "y")(x=x).mean.detach())
    g = linear_gaussian()
    g.s = 1e8  # no prior: the code is W⁺(x - b)
    x = torch.randn(4, 2, generator=seed(1), dtype=F64)
    z = minimise(g, "z", {"x": x})["z"]
    expected = (x - g.b.detach()) @ torch.linalg.pinv(g.W.detach()).T
    torch.testing.assert_close(z, expected)


def test_nearest_centroid_is_kmeans_predict():
    x = torch.randn(100, 2, generator=seed(), dtype=torch.float64).numpy()
    km = KMeans(4, n_init=1, random_state=0).fit(x)
    e = CentroidEnergy(4, 2).double()
    with torch.no_grad():
        e.mu.copy_(torch.from_numpy(km.cluster_centers_))
    z = minimise(e, "z", {"x": torch.from_numpy(x)})["z"]
    assert (z.numpy() == km.predict(x)).all()


def test_mode_of_a_fair_coin_is_zero():
    distribution = torch.distributions.Bernoulli(probs=torch.tensor([0.5, 0.7]))
    assert minimise(DensityEnergy(distribution), "x")["x"].tolist() == [[0.0, 1.0]]


def test_enumerate_is_the_argmax_of_the_logits_with_ties_to_the_lowest():
    e = LinearEnergy(3, 4)
    with torch.no_grad():
        e.W.copy_(torch.randn(4, 3, generator=seed()))
    x = torch.randn(20, 3, generator=seed(1))
    logits = -e.table("y", x=x)
    assert (minimise(e, "y", {"x": x})["y"] == logits.argmax(1)).all()
    tied = TableEnergy(torch.tensor([2.0, 1.0, 1.0]))
    assert minimise(tied, "x", method=Enumerate())["x"].item() == 1


@pytest.mark.parametrize("chunk", [2**24, 64, 7])
def test_enumerate_equals_brute_force_whatever_the_chunk(chunk):
    e = Spins(6)
    best = min(
        (float(e(x=torch.tensor([bits], dtype=F64))), bits)
        for bits in itertools.product([0.0, 1.0], repeat=6)
    )
    found = minimise(e, "x", method=Enumerate(chunk=chunk))
    assert found["x"].tolist() == [list(best[1])]
    assert found.energy.item() == pytest.approx(best[0])


def test_enumerate_names_the_number_of_values_that_is_too_many():
    with pytest.raises(Unsupported, match=r"K=1\.074e\+09 joint values, more than limit=1048576"):
        minimise(Spins(30), "x", method=Enumerate())


def test_joint_enumeration_uses_the_declared_table_and_keeps_the_order():
    e = bilinear()
    found = minimise(e, ("x", "z"), method=Enumerate())
    pairs = itertools.product(Binary(2).enumerate(dtype=F64), repeat=2)
    by_hand = min(e(x=x[None], z=z[None]).item() for x, z in pairs)
    assert found.energy.item() == pytest.approx(by_hand)

    class Mixed(Energy):
        def __init__(self) -> None:
            from groundstate.energy import Finite

            super().__init__(y=Finite(3), z=Finite(2))
            self.register_buffer("t", torch.randn(3, 2, generator=seed(3), dtype=F64))

        def forward(self, y: Tensor, z: Tensor) -> Tensor:
            return self.t[y, z]

        from groundstate.energy import offers

        @offers.table("y")
        def over_y(self, z: Tensor) -> Tensor:
            return self.t[:, z].T

    m = Mixed()
    from groundstate.infer.base import ask

    table = Enumerate().table(ask(m, ("y", "z")))
    torch.testing.assert_close(table, m.t.reshape(1, 6))


def test_chain_method_finds_the_best_sequence():
    found = minimise(Chain3(), "y", method=Chain())
    assert found["y"].tolist() == [[0, 1, 1]]
    assert found.energy.item() == pytest.approx(0.9)


# --- gradient ---------------------------------------------------------------------------


class Pull(Energy):
    def __init__(self, d: int, **box: float) -> None:
        super().__init__(x=Real(d, **box), y=Real(d))
        A = torch.randn(d, d, generator=seed(), dtype=F64)
        self.register_buffer("A", A @ A.T / d + torch.eye(d, dtype=F64))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * ((x - y) @ self.A * (x - y)).sum(1)


def test_gradient_solves_a_convex_quadratic_to_eight_digits():
    y = torch.randn(50, 8, generator=seed(1), dtype=F64)
    found = minimise(Pull(8), "x", {"y": y}, method=Gradient(tol=1e-9))
    assert float((found["x"] - y).abs().max()) < 1e-8
    assert float(found.energy.max()) < 1e-15
    assert bool(found.converged.all()) and not found.exact
    assert bool((found.trace.diff(dim=0) <= 0).all())


def test_gradient_rows_do_not_depend_on_each_other():
    class Bumpy(Pull):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return super().forward(x, y) + torch.sin(3 * x).sum(1)

    y = torch.randn(64, 5, generator=seed(1), dtype=F64)
    e, method = Bumpy(5), Gradient(restarts=3)
    together = minimise(e, "x", {"y": y}, method=method)
    order = torch.randperm(64, generator=seed(2))
    shuffled = minimise(e, "x", {"y": y[order]}, method=method)
    torch.testing.assert_close(shuffled["x"], together["x"][order], atol=1e-9, rtol=0)
    for i in (0, 17, 63):
        alone = minimise(e, "x", {"y": y[i : i + 1]}, method=method)
        torch.testing.assert_close(alone["x"][0], together["x"][i], atol=1e-9, rtol=0)


def test_gradient_keeps_the_box_and_meets_its_conditions():
    e = Pull(4, low=0.0, high=1.0)
    y = 2 * torch.randn(40, 4, generator=seed(1), dtype=F64)
    found = minimise(e, "x", {"y": y}, method=Gradient(tol=1e-8))
    x = found["x"].requires_grad_()
    (g,) = torch.autograd.grad(e(x=x, y=y).sum(), x)
    projected = (x - (x - g).clamp(0, 1)).detach()
    assert float(projected.abs().max()) < 1e-7
    for i in range(3):
        peer = scipy_minimize(
            lambda v, i=i: float(e(x=torch.from_numpy(v[None]), y=y[i : i + 1])),
            np.full(4, 0.5),
            bounds=[(0, 1)] * 4,
        )
        assert found.energy[i].item() <= peer.fun + 1e-8


def test_gradient_on_a_simplex_finds_the_maximum_entropy_distribution():
    class Lagrangian(Energy):
        def __init__(self) -> None:
            super().__init__(x=Simplex(3))
            self.register_buffer("a", torch.tensor([1.0, 2.0, 3.0], dtype=F64))

        def forward(self, x: Tensor) -> Tensor:
            return x @ self.a + torch.special.xlogy(x, x).sum(1)

    found = minimise(Lagrangian(), "x", method=Gradient(tol=1e-9))
    close(found["x"], [[0.665241, 0.244728, 0.090031]])
    close(found.energy, [0.592394])


def test_gradient_restarts_find_the_lower_of_two_wells():
    class Tilted(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(1))
            self.register_buffer("one", torch.ones((), dtype=F64))

        def forward(self, x: Tensor) -> Tensor:
            return ((x**2 - 1) ** 2 + 0.3 * x).sum(1)

    found = minimise(Tilted(), "x", method=Gradient(restarts=8))
    assert found["x"].item() < -0.9
    start = {"x": torch.tensor([[0.9]], dtype=F64)}
    assert minimise(Tilted(), "x", method=Gradient(), init=start)["x"].item() > 0.8


def test_gradient_with_a_torch_optimizer_never_rises():
    y = torch.randn(5, 3, generator=seed(1), dtype=F64)
    method = Gradient(max_iter=400, tol=1e-4, optimizer=lambda p: torch.optim.Adam(p, lr=0.1))
    found = minimise(Pull(3), "x", {"y": y}, method=method)
    assert bool((found.trace.diff(dim=0) <= 0).all())
    torch.testing.assert_close(found["x"], y, atol=1e-3, rtol=0)


def test_gradient_equals_a_loop_of_scipy():
    class Smooth(Pull):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return super().forward(x, y) + torch.cosh(x).log().sum(1)

    e = Smooth(10)
    y = torch.randn(1000, 10, generator=seed(1), dtype=F64)
    found = minimise(e, "x", {"y": y}, method=Gradient())
    assert bool(found.converged.all())
    gaps = []
    for i in range(10):

        def f(v: np.ndarray, i: int = i) -> tuple[float, np.ndarray]:
            x = torch.from_numpy(v[None]).requires_grad_()
            value = e(x=x, y=y[i : i + 1])
            (g,) = torch.autograd.grad(value.sum(), x)
            return float(value.detach()), g[0].numpy()

        peer = scipy_minimize(f, np.zeros(10), jac=True, method="L-BFGS-B")
        gaps.append(float(found.energy[i]) - peer.fun)
    assert max(gaps) < 1e-6


def test_gradient_refuses_discrete_variables_and_energies_without_gradient():
    with pytest.raises(Unsupported, match="'x' in Binary\\(4\\) is not real"):
        minimise(Spins(4), "x", method=Gradient())

    class Stairs(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(1))

        def forward(self, x: Tensor) -> Tensor:
            return x.detach().round().sum(1)

    with pytest.raises(Unsupported, match="Stairs has no gradient in x"):
        minimise(Stairs(), "x", method=Gradient())


# --- coordinate -------------------------------------------------------------------------


def test_coordinate_descends_and_ends_minimal_in_every_block():
    e = Spins(24, 1)
    found = minimise(e, "x")
    assert not found.exact and bool(found.converged.all())
    assert bool((found.trace.diff(dim=0) <= 0).all())
    for i in range(24):
        flipped = found["x"].clone()
        flipped[:, i] = 1 - flipped[:, i]
        assert float(e(x=flipped)) >= float(found.energy)


def test_coordinate_alternates_least_squares():
    class Rank1(Energy):
        def __init__(self) -> None:
            super().__init__(y=Real(3), z=Real(2))
            self.register_buffer("M", torch.randn(3, 2, generator=seed(), dtype=F64))

        def forward(self, y: Tensor, z: Tensor) -> Tensor:
            return (self.M - y[:, :, None] * z[:, None, :]).square().sum((1, 2))

        from groundstate.energy import offers

        @offers.argmin("y")
        def best_y(self, z: Tensor) -> Tensor:
            return z @ self.M.T / z.square().sum(1, keepdim=True)

        @offers.argmin("z")
        def best_z(self, y: Tensor) -> Tensor:
            return y @ self.M / y.square().sum(1, keepdim=True)

    e = Rank1()
    found = minimise(e, ("y", "z"), method=Coordinate(tol=1e-14))
    assert bool((found.trace.diff(dim=0) <= 0).all())
    smallest = torch.linalg.svdvals(e.M)[1] ** 2
    close(found.energy, [float(smallest)], 1e-9)
    assert isinstance(minimise(e, ("y", "z")).exact, bool)


def test_coordinate_with_an_inner_method_mixes_real_and_finite_blocks():
    e = CentroidEnergy(3, 2).double()
    found = minimise(e, ("x", "z"), method=Coordinate(blocks=("z", "x")))
    close(found.energy, [0.0])
    with pytest.raises(Unsupported, match="has no exact minimiser; pass inner=Gradient"):
        minimise(Quadratic(), "x", method=Coordinate())
    found = minimise(Quadratic(), "x", method=Coordinate(inner=Gradient()))
    close(found.energy, [0.0])


# --- beam -------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "energy"), [(1, 1.2), (2, 0.9), (4, 0.9)])
def test_beam_on_the_three_step_chain(width, energy):
    found = minimise(Chain3(), "y", method=Beam(width))
    assert found.energy.item() == pytest.approx(energy)
    assert found.exact == (width >= 4)
    close(Chain3()(y=found["y"]), [energy])


class Letters(Energy):
    """First A .6 or B .4; then A goes on .55/.45, B .95/.05."""

    def __init__(self) -> None:
        from groundstate.energy import Finite, Sequence

        super().__init__(x=Sequence(Finite(2), 2))
        self.register_buffer("p1", torch.tensor([0.6, 0.4], dtype=F64))
        self.register_buffer("p2", torch.tensor([[0.55, 0.45], [0.95, 0.05]], dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return -(self.p1[x[:, 0]] * self.p2[x[:, 0], x[:, 1]]).log()

    from groundstate.energy import offers

    @offers.step("x")
    def step(self, state):
        from groundstate.energy.sequences.step import StepState

        state = state or StepState.start(1, 2)
        p = self.p1.expand(state.rows, 2) if state.last is None else self.p2[state.last]
        return -p.log(), state


def test_beam_closes_the_gap_of_greedy():
    greedy = minimise(Letters(), "x", method=Beam(1))
    assert (-greedy.energy).exp().item() == pytest.approx(0.33)
    wide = minimise(Letters(), "x", method=Beam(2))
    assert (-wide.energy).exp().item() == pytest.approx(0.38)
    assert wide.energy.item() == pytest.approx(minimise(Letters(), "x").energy.item())


def test_beam_without_rerank_continues_the_best_first_symbols_greedily():
    found = minimise(Letters(), "x", method=Beam(2, rerank=False))
    assert (-found.energy).exp().item() == pytest.approx(0.38)
    assert minimise(Chain3(), "y", method=Beam(2, rerank=False)).energy.item() == pytest.approx(
        min(1.2, 1.2)
    )


def test_beam_holds_known_symbols_and_length_penalty_needs_an_end():
    mask = torch.tensor([[False, True]])
    given = {"x": torch.tensor([[0, 0]])}
    found = minimise(Letters(), {"x": mask}, given, method=Beam(2))
    assert found["x"].tolist() == [[0, 0]]
    ended = minimise(Letters(), "x", method=Beam(4, end=0))
    assert ended["x"].tolist() == [[0, 0]]  # A ends at once with p = .6
    assert (-ended.energy).exp().item() == pytest.approx(0.6)
    longer = minimise(Letters(), "x", method=Beam(4, end=0, length_penalty=3.0))
    assert longer["x"].tolist() == [[1, 0]]


def test_closed_form_says_what_is_not_declared():
    with pytest.raises(Unsupported, match="no argmin or conditional is declared for 'x'"):
        minimise(Quadratic(), "x", method=ClosedForm())


def test_the_way_of_a_descent_is_kept():
    e, start = Quadratic(), {"x": torch.tensor([[3.0, -1.0], [0.5, 2.0]], dtype=F64)}
    for make in (None, lambda free: torch.optim.Adam(free, lr=0.1)):
        plain = minimise(e, "x", method=Gradient(optimizer=make), init=start)
        found = minimise(e, "x", method=Gradient(optimizer=make, path=True), init=start)
        assert plain.path is None and found.path is not None and found.trace is not None
        way = found.path["x"]
        assert way.shape == (found.n_iter + 1, 2, 2)
        torch.testing.assert_close(found["x"], plain["x"], rtol=0, atol=0)
        torch.testing.assert_close(way[0], start["x"])
        each = torch.stack([e(x=x) for x in way])
        torch.testing.assert_close(each.cummin(0).values, found.trace)
