"""Energies from energies."""

from __future__ import annotations

import math

import pytest
import torch
from tests.energy.helpers import F64, bilinear, linear_gaussian, t
from torch.distributions import Independent, MultivariateNormal, Normal

from groundstate.energy import (
    CentroidEnergy,
    ChainEnergy,
    DensityEnergy,
    DistributionHead,
    Energy,
    LatentClassEnergy,
    LinearEnergy,
    Marginal,
    NetEnergy,
    Real,
    SquaredEnergy,
    Sum,
    TableEnergy,
    exact_free_energy,
    exact_minimum,
    gradcheck,
    marginal_way,
    minimum_way,
    mixture,
)
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import Gradient, minimise, posterior, sample

ONE = torch.ones(1, dtype=F64)


def gauss(mean: float, scale: float = 1.0) -> DensityEnergy:
    return DensityEnergy(Normal(mean * ONE, scale * ONE))


def test_product_of_gaussians() -> None:
    distribution = posterior(gauss(0.0) + gauss(1.0), "x")
    assert distribution.mean.item() == pytest.approx(0.5)
    assert distribution.variance.item() == pytest.approx(0.5)
    assert distribution.entropy().item() == pytest.approx(1.072365, abs=5e-7)
    assert posterior(gauss(0.0), "x").entropy().item() == pytest.approx(1.418939, abs=5e-7)
    hot = posterior(gauss(0.0) + gauss(1.0), "x", T=3.0)
    assert hot.variance.item() == pytest.approx(1.5)


def test_product_with_a_fitted_energy() -> None:
    """A squared-error energy and a prior on y make a shrunken prediction."""
    f = SquaredEnergy(1).double()
    f.W.data.fill_(2.0)
    e = f + DensityEnergy(Normal(0 * ONE, ONE / 2), "y")
    x = t([[1.0], [3.0]])
    assert torch.allclose(minimise(e, "y", {"x": x})["y"], 2 * x / 5)
    gradcheck(e, {"x": x, "y": t([[0.3], [1.0]])})


def test_mixture_entropy() -> None:
    flat, point = torch.zeros(4, dtype=F64), t([0.0, math.inf, math.inf, math.inf])
    e = mixture([TableEnergy(flat), TableEnergy(point + 5)], [0.5, 0.5])  # constants do not count
    entropy = posterior(e, "x").entropy().item()
    assert entropy == pytest.approx(1.073543, abs=5e-7)
    assert entropy >= 0.5 * math.log(4)
    assert torch.allclose(e.responsibilities(x=torch.tensor([0, 1])), t([[0.2, 0.8], [1.0, 0.0]]))


def test_mixture_of_gaussians_has_a_distribution() -> None:
    e = mixture([gauss(-1.0), gauss(2.0, 0.5)], [0.3, 0.7])
    distribution = posterior(e, "x")
    assert distribution.mean.item() == pytest.approx(-0.3 + 1.4)
    draws = sample(e, "x", n=20000, generator=torch.Generator().manual_seed(0))["x"]
    assert draws.mean().item() == pytest.approx(1.1, abs=0.03)
    assert (draws < 0.5).double().mean().item() == pytest.approx(0.281, abs=0.02)
    grads = torch.autograd.grad(e(x=t([[0.5]])).sum(), e.log_weights)[0]
    assert grads.sum().item() == pytest.approx(0.0, abs=1e-12)


def test_mixture_needs_normalisers() -> None:
    with pytest.raises(Unsupported, match="NetEnergy cannot enter a mixture"):
        mixture([NetEnergy(1)])
    with pytest.raises(Unsupported, match="same variables"):
        mixture([gauss(0.0), TableEnergy(torch.zeros(2))])
    with pytest.raises(ShapeError, match="positive weights"):
        mixture([gauss(0.0)], [0.5, 0.5])
    with pytest.raises(ValueError, match="at least one"):
        mixture([])


def test_sum_adds_tables_and_other_parts() -> None:
    a, b = LinearEnergy(2, 3, scale=1.0).double(), TableEnergy(t([0.0, 1.0, math.inf]), "y")
    c = DensityEnergy(Normal(torch.zeros(2, dtype=F64), torch.ones(2, dtype=F64)))
    e = a + b + c
    x = t([[1.0, -1.0], [0.5, 2.0]])
    table = a.table("y", x=x) + b.table("y") + c(x=x)[:, None]
    assert torch.allclose(e.table("y", x=x), table)
    assert isinstance(e, Sum) and len(e.terms) == 3
    y = torch.tensor([0, 1])
    assert torch.allclose(e(x=x, y=y), a(x=x, y=y) + b(y=y) + c(x=x))


def test_sum_adds_chains() -> None:
    a, b = (
        ChainEnergy(2, 3, 4, scale=1.0, generator=torch.Generator().manual_seed(s)) for s in (0, 1)
    )
    prior = DensityEnergy(Independent(Normal(torch.zeros(4, 2), torch.ones(4, 2)), 2))
    prior.spaces = {"x": a.spaces["x"]}
    e = (a + b + prior).double()
    gradcheck(e, {"x": torch.randn(3, 4, 2, dtype=F64), "y": torch.randint(3, (3, 4))})
    assert minimum_way(e, ("y",)) == "chain"


def test_sum_conflicts_are_explained() -> None:
    with pytest.raises(Unsupported, match=r"disagree about 'x': Real\(2\) and Real\(3\)"):
        LinearEnergy(2, 3) + LinearEnergy(3, 3)


def test_normalised_by_peeling() -> None:
    prior = DensityEnergy(Normal(ONE, ONE), "z")
    decoder = DistributionHead("normal", 1, 2, variable="x", given="z").double()
    joint = prior + decoder
    assert joint.normalised == {"x", "z"}
    assert exact_free_energy(joint, ("x", "z")) == 0
    assert (prior + DensityEnergy(Normal(ONE, ONE), "z")).normalised == frozenset()
    x_given_z = exact_free_energy(joint, ("x",), {"z": t([[0.3]])})
    assert x_given_z is not None
    assert torch.allclose(x_given_z, prior(z=t([[0.3]])))


@pytest.mark.parametrize("c", [0.5, 2.0])
def test_scaling_is_temperature(c: float) -> None:
    for e in (bilinear(), linear_gaussian(), CentroidEnergy(3, 2).double()):
        scaled = c * e
        values = {n: s.draw(3, generator=torch.Generator().manual_seed(0), dtype=F64)
                  for n, s in e.spaces.items()}  # fmt: skip
        gradcheck(scaled, values)
        given = {"x": values["x"]}
        F, G = exact_free_energy(scaled, ("z",), given), exact_free_energy(e, ("z",), given, 1 / c)
        assert F is not None and G is not None
        assert torch.allclose(F, c * G, atol=1e-12)
        assert torch.allclose(e.tempered(1 / c)(**values), scaled(**values))


def test_negative_and_empty_scales() -> None:
    e = -1.0 * TableEnergy(t([1.0, 3.0]))
    assert exact_minimum(e, ("x",)) == {"x": torch.tensor([1])}
    assert (-1.0 * bilinear()).ability("conditional", "z") is None
    for c in (0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="finite number"):
            bilinear() * c


def test_given_fixes_values() -> None:
    e = linear_gaussian()
    x = t([[2.0, 1.0], [0.0, 0.0]])
    fixed = e.given(x=x)
    z = t([[0.1], [0.2]])
    assert torch.equal(fixed(z=z), e(x=x, z=z))
    assert torch.allclose(minimise(fixed, "z")["z"], e.encode(x).detach())
    assert fixed.given(z=z)().shape == (2,)
    one = e.given(x=x[:1])
    assert torch.equal(one(z=z), e(x=x[:1].expand(2, 2), z=z))
    with pytest.raises(ShapeError, match="given with 2 rows"):
        fixed(z=torch.zeros(3, 1, dtype=F64))
    with pytest.raises(ValueError, match="no variable 'w'"):
        e.given(w=x)
    table = LinearEnergy(2, 3).double().given(x=x)
    assert table.table("y").shape == (2, 3)
    assert len(table.double().state_dict()) == 3  # the given value moves with the module


@pytest.mark.parametrize("T", [1.0, 0.5])
def test_marginal_keeps_the_normaliser_of_the_union(T: float) -> None:
    e = bilinear()
    F = e.marginal("z", T=T)
    total = F.ability("log_partition", "x")
    assert total is not None
    assert torch.allclose(total(T=T), e.total(T))
    assert torch.allclose(torch.logsumexp(-F.table("x") / T, 1), e.total(T))
    with pytest.raises(Unsupported, match=r"not at T=3"):
        total(T=3.0)
    G = exact_free_energy(F, ("x",), T=3.0)  # still exact, by listing
    assert G is not None
    assert torch.allclose(G, -3.0 * torch.logsumexp(-F.table("x") / 3.0, 1))


def test_marginal_distribution_of_the_rest_is_a_mixture() -> None:
    e = CentroidEnergy(3, 2, scale=3.0).double()
    distribution = posterior(e.marginal("z"), "x")
    x = torch.randn(1, 2, dtype=F64, generator=torch.Generator().manual_seed(0))
    truth = -e.marginal("z")(x=x) - e.total()
    assert torch.allclose(distribution.log_prob(x), truth)
    assert torch.allclose(distribution.mean[0], e.mu.mean(0))
    draws = sample(e.marginal("z"), "x", n=20000, generator=torch.Generator().manual_seed(0))["x"]
    assert torch.allclose(draws.var(0)[0], distribution.variance[0].detach(), rtol=0.05)
    assert minimum_way(e.marginal("z"), ("x",)) is None  # its mode has no closed form
    assert minimum_way(2 * e.marginal("z"), ("x",)) is None


def test_marginal_of_categoricals_is_categorical() -> None:
    e = LatentClassEnergy(2, 3, 4, scale=1.0).double()
    x = t([[1.0, -1.0]])
    assert torch.allclose(
        posterior(e.marginal("z"), "y", {"x": x}).probs,
        torch.softmax(-e.joint(x).flatten(1), -1).view(1, 3, 4).sum(2),
    )


def test_marginal_differentiates_in_the_given() -> None:
    e = linear_gaussian()
    x = t([[2.0, 1.0]]).requires_grad_()
    (grad,) = torch.autograd.grad(e.marginal("z")(x=x).sum(), x)
    cov = torch.eye(2, dtype=F64) + 4 * e.W @ e.W.T  # F is the Gaussian marginal's energy
    assert torch.allclose(grad, (x - e.b) @ torch.linalg.inv(cov), atol=1e-12)


def test_minimal_has_the_envelope_gradient() -> None:
    e = linear_gaussian()
    x = t([[2.0, 1.0]]).requires_grad_()
    low = e.minimal("z")
    (grad,) = torch.autograd.grad(low(x=x).sum(), x)
    z = e.encode(x).detach()
    assert torch.allclose(grad, x - e.decode(z))
    h = 1e-6
    step = t([[1.0, 0.0]]) * h
    difference = (low(x=x.detach() + step) - low(x=x.detach() - step)) / (2 * h)
    assert difference.item() == pytest.approx(grad[0, 0].item(), abs=1e-8)
    assert torch.equal(low.minimiser(x=x)["z"], z)


def test_minimal_asks_the_method_it_is_given() -> None:
    class Well(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(1), z=Real(1))

        def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
            return ((z - x) ** 2 + 0.1 * (z - x) ** 4).sum(-1) + x.sum(-1)

    x = t([[1.0], [2.0]])
    low = Well().minimal("z", method=Gradient())
    assert torch.allclose(low(x=x), t([1.0, 2.0]), atol=1e-8)
    with pytest.raises(Unsupported, match=r"no exact form; pass method= of .*Gradient"):
        Well().minimal("z")(x=x)
    with pytest.raises(Unsupported, match="no exact form"):
        Well().marginal("z")(x=x)


def test_elimination_sums_factors_not_products() -> None:
    e = LatentClassEnergy(2, 3, 4, scale=1.0).double()
    x = t([[1.0, -1.0], [0.0, 2.0]])
    brute = -torch.logsumexp(-e.joint(x).flatten(1), 1)
    for names in (("y", "z"), ("z", "y")):
        F = exact_free_energy(e, names, {"x": x})
        assert F is not None
        assert torch.allclose(F, brute)
    free = exact_free_energy(e.marginal("z"), ("y",), {"x": x})
    assert free is not None
    assert torch.allclose(free, brute)
    best = exact_minimum(e, ("y", "z"), {"x": x})
    assert best is not None
    assert torch.allclose(e(x=x, **best), e.joint(x).flatten(1).min(1).values)
    hot = exact_free_energy(e, ("y", "z"), {"x": x}, math.inf)
    assert hot is not None
    assert torch.allclose(hot, e.joint(x).flatten(1).mean(1))
    assert marginal_way(NetEnergy(1), ("x",)) is None
    assert exact_free_energy(NetEnergy(1), ("x",)) is None
    assert exact_minimum(NetEnergy(1), ("x",)) is None


def test_ancestral_draws_pass_through() -> None:
    g = torch.Generator().manual_seed(0)
    head = DistributionHead("normal", 1, 1, variable="x", given="z").double()
    joint = head + DensityEnergy(Normal(ONE, ONE), "z")
    draws = sample(joint, ("x", "z"), n=20000, generator=g)
    assert draws.kind == "exact"
    assert draws["z"].mean().item() == pytest.approx(1.0, abs=0.03)
    residual = (draws["x"] - head.distribution(draws["z"][:, 0]).mean[:, None]).detach()
    assert residual.mean().item() == pytest.approx(0.0, abs=0.03)
    alone = sample(linear_gaussian().marginal("z"), "x", n=20000, generator=g)
    assert alone.kind == "exact"
    assert torch.allclose(alone["x"][:, 0].var(0), t([5.0, 17.0]), rtol=0.05)  # I + s²WWᵀ
    cold = sample(4.0 * linear_gaussian(), ("x", "z"), n=20000, generator=g)
    assert cold["z"].std().item() == pytest.approx(1.0, abs=0.03)  # s = 2 at T = 1/4
    squared = SquaredEnergy(1).double() + DensityEnergy(Normal(ONE, ONE))
    assert squared.ancestral is None  # its parts are no chain of distributions


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="marginal needs variables of BilinearEnergy"):
        bilinear().marginal("y")
    with pytest.raises(ValueError, match="minimal needs variables"):
        bilinear().minimal()


def test_products_of_full_gaussians() -> None:
    g = torch.Generator().manual_seed(0)
    roots = [torch.randn(3, 3, generator=g, dtype=F64) for _ in range(2)]
    covs = [r @ r.T + torch.eye(3, dtype=F64) for r in roots]
    means = [torch.randn(3, generator=g, dtype=F64) for _ in range(2)]
    parts = [DensityEnergy(MultivariateNormal(m, c)) for m, c in zip(means, covs)]
    distribution = posterior(parts[0] + parts[1], "x")
    P = [torch.linalg.inv(c) for c in covs]
    assert torch.allclose(distribution.covariance_matrix[0], torch.linalg.inv(P[0] + P[1]))
    x = torch.randn(4, 3, generator=g, dtype=F64)
    F = exact_free_energy(parts[0] + parts[1], ("x",))
    assert F is not None
    assert torch.allclose(distribution.log_prob(x), F - (parts[0] + parts[1])(x=x))
    assert isinstance(bilinear().marginal("z"), Marginal)
