"""Variational EM and where q comes from: tables, networks, refinement."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from groundstate.energy import (
    Binary,
    CentroidEnergy,
    DecoderEnergy,
    Energy,
    LinearGaussianEnergy,
    Real,
    TableEnergy,
    offers,
)
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import marginalise
from groundstate.infer.variational.families import Categorical, Gaussian, MeanField
from groundstate.infer.variational.variational import Variational as Fit
from groundstate.learn import (
    EM,
    LBFGS,
    NLL,
    Amortised,
    PerInstance,
    Stochastic,
    Variational,
    elbo,
    fit,
)
from groundstate.nn.blocks.mlp import MLP

F64 = torch.float64
X = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=F64)


def centroids() -> CentroidEnergy:
    energy = CentroidEnergy(2, 1).double()
    energy.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    return energy


def linear(seed: int = 0, d: int = 3, l: int = 2) -> tuple[LinearGaussianEnergy, Tensor]:
    g = torch.Generator().manual_seed(seed)
    energy = LinearGaussianEnergy(d, l, generator=g).double()
    return energy, torch.randn(40, d, generator=g, dtype=F64) * torch.tensor([3.0, 1.5, 0.3])


def exact(energy: Energy, x: Tensor) -> float:
    return float(NLL()(energy, {"x": x}).loss.mean().detach())


@pytest.mark.parametrize("family", [Categorical(), MeanField()])
@pytest.mark.parametrize("guide", [Variational, PerInstance])
def test_all_pmfs_give_the_iterates_of_em(family, guide):
    a, b = centroids(), centroids()
    one = fit(a, {"x": X}, NLL(), EM(max_iter=5, tol=None))
    two = fit(b, {"x": X}, NLL(latent=guide(family)), EM(max_iter=5, tol=None))
    torch.testing.assert_close(a.mu, b.mu, rtol=0, atol=1e-12)
    assert one.objective == pytest.approx(two.objective, abs=1e-12)


def test_full_gaussians_give_the_iterates_of_em():
    (a, x), (b, _) = linear(), linear()
    fit(a, {"x": x}, NLL(), EM(max_iter=5, tol=None))
    fit(b, {"x": x}, NLL(latent=Variational(Gaussian("full"))), EM(max_iter=5, tol=None))
    torch.testing.assert_close(a.W, b.W, rtol=0, atol=1e-9)


@pytest.mark.parametrize("covariance", ["diag", "iso"])
def test_a_smaller_family_is_monotone_in_the_bound(covariance):
    energy, x = linear()
    rule = NLL(latent=PerInstance(Gaussian(covariance), steps=50))
    history = fit(energy, {"x": x}, rule, EM(max_iter=30, tol=None, audit=True))
    bounds, between = history.extra["log_likelihood"], history.extra["bound"]
    for t, value in enumerate(between):
        assert value >= bounds[t] - 1e-7 and bounds[t + 1] >= value - 1e-7
    assert bounds[-1] > bounds[0]
    assert bounds[-1] <= -exact(energy, x) + 1e-9  # a bound, not the likelihood


def test_mean_field_gap_of_a_joint_table():
    joint = torch.tensor([[0.4, 0.1], [0.2, 0.3]], dtype=F64)
    found = marginalise(TableEnergy(-joint.log()), ("x", "y"), method=Fit(MeanField()))
    assert float(found.value.detach()) == pytest.approx(0.091986, abs=1e-6)

    class Pair(Energy):
        """The same joint over one variable of two bits, and an observation that says nothing."""

        def forward(self, x, z):
            return -joint[z[:, 0].long(), z[:, 1].long()].log()

    energy = Pair(x=Real(1), z=Binary(2))
    x = {"x": torch.zeros(1, 1, dtype=F64)}
    q = PerInstance(MeanField(), steps=200)
    distribution = q.distributions(energy, ("z",), x)["z"]
    assert float(elbo(energy, distribution, x, over=()).gap) == pytest.approx(0.091986, abs=1e-6)


def test_per_instance_reaches_the_exact_bound():
    energy, x = linear()
    q = PerInstance(Gaussian("full"))
    loss = NLL(latent=q)(energy, {"x": x}).loss.mean()
    assert float(loss.detach()) == pytest.approx(exact(energy, x), abs=1e-9)
    assert q.rows == 40 and q.phi.shape == (40, 5)


def test_per_instance_touches_only_the_rows_of_its_batch():
    energy = DecoderEnergy(2, 1).double()
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=F64)
    q = PerInstance(Gaussian("diag"), steps=1)
    q.distributions(energy, ("z",), {"x": x})
    before = {int(k): p.clone() for k, p in zip(q.keys, q.phi, strict=True)}
    q.distributions(energy, ("z",), {"x": x[:2]})
    after = {int(k): p for k, p in zip(q.keys, q.phi, strict=True)}
    assert before.keys() == after.keys()
    assert sum(not torch.equal(before[k], after[k]) for k in before) == 2


def test_per_instance_knows_rows_by_content():
    energy, x = linear()
    q = PerInstance(Gaussian("diag"), steps=2)
    q.distributions(energy, ("z",), {"x": torch.cat([x[:3], x[:3]])})
    assert q.rows == 3
    one = q.distributions(energy, ("z",), {"x": x[:3]})["z"].mean
    two = q.distributions(energy, ("z",), {"x": x[:3].flip(0)})["z"].mean.flip(0)
    assert one.shape == two.shape == (3, 2)


def test_per_instance_is_stored_with_its_rule():
    energy, x = linear()
    rule = NLL(latent=PerInstance(Gaussian("diag")))
    rule(energy, {"x": x})
    other = NLL(latent=PerInstance(Gaussian("diag")))
    other.load_state_dict(rule.state_dict())
    assert other.latent.rows == 40
    assert torch.equal(other.latent.phi, rule.latent.phi)


def test_per_instance_trains_by_mini_batches():
    energy, x = linear()
    before = exact(energy, x)
    solver = Stochastic(lr=0.02, batch_size=10, max_epochs=60, tol=None)
    fit(energy, {"x": x}, NLL(latent=PerInstance(Gaussian("full"))), solver, random_state=0)
    best, _ = linear()
    fit(best, {"x": x}, NLL(), EM(tol=1e-10, max_iter=1000))
    assert exact(energy, x) < before
    assert exact(energy, x) == pytest.approx(exact(best, x), abs=0.05)


def test_linear_network_reaches_the_exact_bound():
    # the posterior mean is linear in x and its covariance constant: a linear network can say it
    energy, x = linear()
    net = MLP(3, (), 5, "tanh", init="lecun").double()
    for p in energy.parameters():
        p.requires_grad_(False)
    q = Amortised(net, Gaussian("full"))
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=500, tolerance_grad=1e-10)

    def lower():
        optimizer.zero_grad()
        loss = NLL(latent=q)(energy, {"x": x}).loss.mean()
        loss.backward()
        return loss

    optimizer.step(lower)
    assert float(lower().detach()) == pytest.approx(exact(energy, x), abs=1e-6)


def test_amortised_learns_with_theta():
    energy, x = linear()
    before = exact(energy, x)
    rule = NLL(latent=Amortised(MLP(3, (16,), 4, "tanh", init="lecun").double(), Gaussian("diag")))
    history = fit(
        energy, {"x": x}, rule, Stochastic(lr=0.02, batch_size=20, max_epochs=80, tol=None)
    )
    assert history.objective[-1] < history.objective[0]
    assert exact(energy, x) < before


@pytest.mark.parametrize("steps", [1, 5, 50])
def test_refinement_is_never_worse(steps):
    energy, x = linear()
    q = Amortised(MLP(3, (8,), 4, "tanh", init="lecun").double(), Gaussian("diag"))
    start = elbo(energy, q.distributions(energy, ("z",), {"x": x})["z"], {"x": x}).value.detach()
    distribution = q.refine(energy, {"x": x}, steps)["z"]
    after = elbo(energy, distribution, {"x": x}).value.detach()
    assert bool((after >= start - 1e-9).all())
    assert float(after.mean()) > float(start.mean())


def test_refinement_of_a_nonlinear_decoder():
    energy = DecoderEnergy(3, 1).double()
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=F64)
    q = Amortised(MLP(3, (8,), 2, "tanh", init="lecun").double(), Gaussian("diag"))

    def measured(distribution):
        g = torch.Generator().manual_seed(1)
        return float(
            elbo(energy, distribution, {"x": x}, n=2000, generator=g).value.mean().detach()
        )

    start = measured(q.distributions(energy, ("z",), {"x": x})["z"])
    assert measured(q.refine(energy, {"x": x}, 20)["z"]) > start


def test_nonlinear_decoder_by_variational_em():
    g = torch.Generator().manual_seed(0)
    z = torch.randn(60, 1, generator=g, dtype=F64)
    x = torch.cat([z, z**2], 1) + 0.1 * torch.randn(60, 2, generator=g, dtype=F64)
    energy = DecoderEnergy(2, 1, sigma=0.5, generator=g).double()
    rule = NLL(latent=PerInstance(Gaussian("diag"), steps=10))
    solver = EM(max_iter=8, tol=None, inner=LBFGS(max_iter=10))
    history = fit(energy, {"x": x}, rule, solver)
    assert history.objective[-1] < history.extra["log_likelihood"][0] * -1 - 0.5


def test_statistics_see_the_distribution_of_the_family():
    seen = []

    class Watched(CentroidEnergy):
        @offers.stats
        def stats(self, weights, x, z):
            seen.append(z)
            return super().stats(weights, x, z)

    energy = Watched(2, 1).double()
    fit(energy, {"x": X}, NLL(latent=Variational(Categorical())), EM(max_iter=1, tol=None))
    assert isinstance(seen[0], torch.distributions.Categorical)


def test_errors_teach():
    energy, x = linear()
    with pytest.raises(ShapeError, match=r"must return \(B, 4\) parameters"):
        NLL(latent=Amortised(MLP(3, (), 7, "tanh", init="lecun").double(), Gaussian("diag")))(
            energy, {"x": x}
        )
    with pytest.raises(Unsupported, match="use Stochastic"):
        fit(
            energy,
            {"x": x},
            NLL(latent=Amortised(MLP(3, (), 4, "tanh", init="lecun").double(), Gaussian())),
            EM(),
        )
    with pytest.raises(Unsupported, match="a bound needs a temperature"):
        fit(energy, {"x": x}, NLL(latent=Variational()), EM(T=0))
    with pytest.raises(ValueError, match="steps must be at least 1"):
        PerInstance(steps=0)
    assert math.isfinite(exact(energy, x))
