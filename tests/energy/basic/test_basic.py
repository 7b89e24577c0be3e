"""The worked numbers of the reference energies."""

from __future__ import annotations

import math

import pytest
import torch
from tests.energy.helpers import F64, bilinear, linear_gaussian, put, t

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    ChainEnergy,
    ChainRuleEnergy,
    DecoderEnergy,
    LatentClassEnergy,
    LinearEnergy,
    NetClassEnergy,
    NetEnergy,
    SquaredEnergy,
    TableEnergy,
    exact_free_energy,
    exact_minimum,
    free_energy,
    marginal_way,
)
from groundstate.errors import DataError
from groundstate.registry import energies

X = {"x": t([[2.0, 1.0]])}


def test_linear_gaussian_values() -> None:
    e = linear_gaussian()
    best = exact_minimum(e, ("z",), X)
    assert best is not None
    assert best["z"].item() == pytest.approx(1.047619, abs=5e-7)
    assert e(**X, **best).item() == pytest.approx(0.244048, abs=5e-7)
    F = exact_free_energy(e, ("z",), X)
    assert F is not None
    assert F.item() == pytest.approx(0.154223, abs=5e-7)
    distribution = e.code(X["x"])
    for z in (best["z"], best["z"] + 3.0):  # F = e(z) + T log q(z) at any z
        assert (e(**X, z=z) + distribution.log_prob(z)).item() == pytest.approx(F.item(), abs=1e-12)


def test_bilinear_values() -> None:
    e = bilinear()
    x = e.spaces["x"].enumerate(dtype=F64)
    F = exact_free_energy(e, ("z",), {"x": x})
    assert F is not None
    expected = t([-1.367370, -2.755001, -1.861426, -2.890466])
    assert torch.allclose(F, expected, atol=5e-7)
    assert e.total().item() == pytest.approx(3.786021, abs=5e-7)
    by_x = torch.logsumexp(e.over_z(x), 0)
    by_z = torch.logsumexp(e.over_x(e.spaces["z"].enumerate(dtype=F64)), 0)
    assert by_x.item() == pytest.approx(by_z.item(), abs=1e-12)


def test_bilinear_total_lists_the_smaller_layer() -> None:
    wide, tall = (
        BilinearEnergy(3, 40, scale=0.3).double(),
        BilinearEnergy(40, 3, scale=0.3).double(),
    )
    tall.W.data.copy_(wide.W.data.T)
    assert wide.total().item() == pytest.approx(tall.total().item(), abs=1e-10)
    assert BilinearEnergy(25, 25).ability("log_partition", "x", "z") is None
    deep = BilinearEnergy(15, 16, scale=0.0).double()  # more than one chunk
    assert deep.total().item() == pytest.approx(31 * math.log(2), abs=1e-10)


@pytest.mark.parametrize("T", [1.0, 0.5])
def test_free_energy_gradient_is_the_expected_gradient(T: float) -> None:
    e, x = bilinear(), t([[1.0, 1.0], [0.0, 1.0]])
    F = exact_free_energy(e, ("z",), {"x": x}, T)
    assert F is not None
    ours = torch.autograd.grad(F.sum(), e.W)[0]
    q = e.distribution_z(x, T).mean  # E_q[∂e/∂W] = -x E[z]
    assert torch.allclose(ours, -x.T @ q, atol=1e-12)
    declared = e._declared
    try:  # without the declared normaliser the conditional gives the same
        type(e)._declared = {k: v for k, v in declared.items() if k[0] == "conditional"}
        assert marginal_way(e, ("z",)) == "conditional"
        G = exact_free_energy(e, ("z",), {"x": x}, T)
        assert G is not None
        assert torch.allclose(G, F, atol=1e-12)
        assert torch.allclose(torch.autograd.grad(G.sum(), e.W)[0], ours, atol=1e-12)
    finally:
        type(e)._declared = declared


def test_squared_energy_is_gaussian() -> None:
    e = SquaredEnergy(2, 3)
    put(e.W, [[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    best = exact_minimum(e, ("y",), {"x": x})
    assert best is not None
    assert torch.equal(best["y"], e.predict(x).detach())
    log_z = e.constant(x, T=2.0)
    assert not log_z.requires_grad
    assert torch.allclose(log_z, torch.full((5,), 1.5 * math.log(4 * math.pi)))


@pytest.mark.parametrize("bias", [True, False])
def test_least_squares_in_closed_form(bias: bool) -> None:
    g = torch.Generator().manual_seed(0)
    x, w = torch.randn(40, 3, generator=g, dtype=F64), torch.rand(40, generator=g, dtype=F64)
    y = torch.randn(40, 2, generator=g, dtype=F64) + x[:, :2]
    e = SquaredEnergy(3, 2, bias=bias).double()
    e.from_stats(e.stats(w, x=x, y=y))
    design = torch.cat((x, torch.ones(40, 1, dtype=F64)), 1) if bias else x
    root = w.sqrt()[:, None]
    truth = torch.linalg.lstsq(root * design, root * y).solution.T
    assert torch.allclose(e.W.data, truth[:, :3], atol=1e-10)
    if bias:
        assert e.b is not None
        assert torch.allclose(e.b.data, truth[:, 3], atol=1e-10)


def test_ridge_in_closed_form() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 3, generator=g, dtype=F64), torch.randn(30, 1, generator=g, dtype=F64)
    e = SquaredEnergy(3).double()
    e.from_stats(e.stats(None, x=x, y=y), l2=2.0)
    loss = e(x=x, y=y).sum() + e.W.square().sum()  # ½·2·‖W‖²
    assert e.b is not None
    for grad in torch.autograd.grad(loss, [e.W, e.b]):
        assert grad.abs().max() < 1e-10


def test_rank_deficient_regression_has_least_norm() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(30, 2, generator=g, dtype=F64)
    x = torch.cat((x, x[:, :1], torch.full((30, 1), 1e4, dtype=F64)), 1)  # a copy and a constant
    y = torch.randn(30, 1, generator=g, dtype=F64)
    e = SquaredEnergy(4).double()
    e.from_stats(e.stats(None, x=x, y=y))
    centred = x - x.mean(0)
    truth = torch.linalg.pinv(centred) @ (y - y.mean(0))
    assert torch.allclose(e.W.data.T, truth, atol=1e-8)
    with pytest.raises(DataError, match="positive weight"):
        e.from_stats(e.stats(torch.zeros(30, dtype=F64), x=x, y=y))


def test_stats_add_over_chunks() -> None:
    g = torch.Generator().manual_seed(0)
    e, x = CentroidEnergy(3, 2), torch.randn(10, 2, generator=g)
    z = torch.randint(3, (10,), generator=g)
    whole = e.stats(None, x=x, z=z)
    parts = [e.stats(None, x=x[i], z=z[i]) for i in (slice(0, 4), slice(4, 10))]
    for key, value in whole.items():
        assert torch.allclose(parts[0][key] + parts[1][key], value)


def test_expected_stats_of_centroids_and_codes() -> None:
    e = CentroidEnergy(2, 1).double()
    put(e.mu, [[-1.0], [1.0]])
    x = t([[-2.0], [-1.0], [1.0], [3.0]])
    e.from_stats(e.stats(None, x=x, z=e.responsibilities(x)))
    assert torch.allclose(e.mu.data, t([[-1.369727], [1.844792]]), atol=5e-7)
    empty = CentroidEnergy(3, 1).double()
    before = empty.mu.data.clone()
    empty.from_stats(empty.stats(None, x=x, z=torch.zeros(4, dtype=torch.int64)))
    assert torch.equal(empty.mu.data[1:], before[1:])
    assert empty.mu.data[0].item() == pytest.approx(0.25)

    lg = linear_gaussian()
    g = torch.Generator().manual_seed(0)
    data = torch.randn(50, 2, generator=g, dtype=F64)
    before_F = exact_free_energy(lg, ("z",), {"x": data})
    lg.from_stats(lg.stats(None, x=data, z=lg.code(data)))
    after_F = exact_free_energy(lg, ("z",), {"x": data})
    assert before_F is not None and after_F is not None
    assert after_F.mean() < before_F.mean()  # an EM step


def test_centroid_table_far_from_the_origin() -> None:
    e = CentroidEnergy(3, 2)
    e.mu.data += 1000.0
    x = e.mu.data + 0.25
    direct = 0.5 * (x[:, None] - e.mu.data).square().sum(-1)
    assert torch.allclose(e.table("z", x=x), direct, atol=1e-4)


def test_chain_values_and_lengths() -> None:
    e = ChainEnergy(2, 2, 3).double()
    put(e.W, [[-1.0, 0.0], [0.0, -1.0]])
    put(e.A, [[0.0, 0.7], [0.3, 0.0]])
    x = t([[[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]]])
    best = exact_minimum(e, ("y",), {"x": x})
    assert best is not None
    assert best["y"].tolist() == [[0, 1, 1]]
    assert e(x=x, **best).item() == pytest.approx(0.9)
    F = exact_free_energy(e, ("y",), {"x": x})
    assert F is not None
    assert F.item() == pytest.approx(-0.449719, abs=5e-7)
    table = e.table("y", x=x)
    for T in (0.5, 1.0, 2.0):
        assert exact_free_energy(e, ("y",), {"x": x}, T).item() == pytest.approx(  # type: ignore[union-attr]
            free_energy(table, T).item(), abs=1e-12
        )
    lengths = torch.tensor([2])
    short = e(x=x, y=torch.tensor([[0, 1, 0]]), lengths=lengths)
    assert short.item() == pytest.approx(0.9)
    assert torch.equal(short, e(x=x, y=torch.tensor([[0, 1, 1]]), lengths=lengths))


def test_latent_class_bounds() -> None:
    e = LatentClassEnergy(3, 4, 2, scale=1.0).double()
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=F64)
    y = torch.arange(6) % 4
    for T in (0.1, 1.0, 3.0):
        F, low = e.marginal("z", T=T)(x=x, y=y), e.minimal("z")(x=x, y=y)
        assert (low + 1e-12 >= F).all()
        assert (low <= F + T * math.log(2) + 1e-12).all()


def test_net_energy_has_a_distribution() -> None:
    e = NetEnergy(1, net=(4,))
    x = torch.linspace(-60, 60, 4001)[:, None]
    total = torch.trapezoid((-e(x=x)).exp().detach(), x[:, 0])
    assert torch.isfinite(total)
    assert (-e(x=torch.tensor([[60.0]]))).exp() < 1e-30


def test_ancestral_draws_have_the_joint_distribution() -> None:
    g = torch.Generator().manual_seed(0)
    e = linear_gaussian()
    draws = e.ancestral(20000, generator=g)
    cov = torch.cov(draws["x"].T)
    truth = torch.eye(2, dtype=F64) + 4 * (e.W @ e.W.T).detach()
    assert torch.allclose(cov, truth, rtol=0.05, atol=0.2)
    hot = DecoderEnergy(2, 1, sigma=0.5).double().ancestral(20000, T=4.0, generator=g)
    assert hot["z"].std().item() == pytest.approx(2.0, rel=0.05)
    first, second = (CentroidEnergy(3, 2).ancestral(5)["x"] for _ in range(2))
    assert not torch.equal(first, second)  # without a generator every call is new
    clusters = CentroidEnergy(3, 2).ancestral(9000, generator=g)
    assert clusters["z"].bincount().tolist() == pytest.approx([3000] * 3, rel=0.1)


def test_initial_values_come_from_the_generator() -> None:
    def build(seed: int) -> list[torch.Tensor]:
        g = torch.Generator().manual_seed(seed)
        parts = [
            NetClassEnergy(2, 3, generator=g), CentroidEnergy(2, 2, generator=g),
            BilinearEnergy(2, 2, generator=g), LinearEnergy(2, 2, scale=1.0, generator=g),
            ChainRuleEnergy(2, 3, generator=g), DecoderEnergy(2, 1, generator=g),
        ]  # fmt: skip
        return [p for part in parts for p in part.parameters()]

    state = torch.get_rng_state()
    a, b, c = build(0), build(0), build(1)
    assert all(torch.equal(p, q) for p, q in zip(a, b))
    assert not all(torch.equal(p, q) for p, q in zip(a, c))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", energies.names())
def test_config_rebuilds_the_energy(name: str) -> None:
    row = energies[name]
    assert row.make is not None and row.batch is not None
    energy = row.make()
    twin = type(energy)(**energy.config())
    twin.load_state_dict(energy.state_dict())
    values = row.batch(5, torch.Generator().manual_seed(0))
    assert torch.equal(energy(**values), twin(**values))
    assert twin.spaces == energy.spaces


def test_table_energy_of_several_variables() -> None:
    p = t([[0.4, 0.1], [0.2, 0.3]])
    e = TableEnergy(-p.log(), ("x", "z"))
    assert e.ability("log_partition", "x", "z")().item() == pytest.approx(0.0, abs=1e-12)  # type: ignore[misc]
    marginal = (-e.marginal("z")(x=torch.tensor([0, 1]))).exp()
    assert torch.allclose(marginal, t([0.5, 0.5]))
    assert torch.allclose(e.table("x", z=torch.tensor([1])), -t([[0.1, 0.3]]).log())
    with pytest.raises(ValueError, match="as many names"):
        TableEnergy(p, ("x",))
    with pytest.raises(ValueError, match="either"):
        TableEnergy()
