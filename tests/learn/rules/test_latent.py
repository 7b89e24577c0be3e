"""Latent variables, missing targets, phases and bounds inside the rules."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Independent, Normal

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    DecoderEnergy,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    TableEnergy,
)
from groundstate.errors import Unsupported
from groundstate.infer import log_partition, marginalise
from groundstate.infer.exact.quadrature import Quadrature
from groundstate.infer.variational.families import Gaussian
from groundstate.learn import (
    NLL,
    Naive,
    Perceptron,
    SoftMin,
    Variational,
    bound,
    drop_missing,
    phases,
)

F64 = torch.float64


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def bayes() -> tuple[TableEnergy, Tensor]:
    joint = torch.tensor([0.5, 0.3, 0.2], dtype=F64) * torch.tensor([0.10, 0.40, 0.05], dtype=F64)
    return TableEnergy(-joint.log()[None], ("x", "z")), joint


def bilinear() -> BilinearEnergy:
    energy = BilinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]], dtype=F64))
        energy.b.copy_(torch.tensor([0.1, -0.2], dtype=F64))
        energy.c.copy_(torch.tensor([0.3, -0.4], dtype=F64))
    return energy


def latent_class() -> tuple[LatentClassEnergy, dict[str, Tensor]]:
    energy = LatentClassEnergy(3, 4, 2, scale=1.0, generator=generator()).double()
    x = torch.randn(9, 3, generator=generator(1), dtype=F64)
    return energy, {"x": x, "y": torch.randint(4, (9,), generator=generator(2))}


def test_nll_of_a_latent_model() -> None:
    """p(x) = .18, so −log p(x) = 1.714798: the energy is summed over z, not minimised."""
    energy, _ = bayes()
    positive = NLL()(energy, {"x": torch.tensor([0])}).positive
    assert math.isclose(float(positive.detach()), 1.714798, abs_tol=5e-7)


def test_coin_likelihood() -> None:
    """49 heads of 80 have their maximum likelihood at .6125."""
    energy = TableEnergy(shape=(2,)).double()
    x = (torch.arange(80) < 49).long()
    for _ in range(400):
        loss = NLL()(energy, {"x": x}).loss.mean()
        energy.zero_grad()
        loss.backward()
        with torch.no_grad():
            energy.theta -= 2.0 * energy.theta.grad
    p = torch.softmax(-energy.theta, 0)[1]
    assert math.isclose(float(p.detach()), 0.6125, abs_tol=1e-6)
    total = float(NLL()(energy, {"x": x}).loss.sum().detach())
    assert math.isclose(math.comb(80, 49) * math.exp(-total), 0.091248, abs_tol=5e-7)
    counts = TableEnergy(-torch.tensor([0.75, 0.25], dtype=F64).log())
    total = NLL()(counts, {"x": torch.tensor([0, 0, 0, 1])}).loss.sum()
    assert math.isclose(float(total.detach()), 2.249341, abs_tol=5e-7)


def test_divergence_plus_entropy_is_nll() -> None:
    p = torch.tensor([0.5, 0.25, 0.25], dtype=F64)
    q = torch.tensor([0.2, 0.5, 0.3], dtype=F64)
    loss = NLL()(TableEnergy(-q.log()), {"x": torch.tensor([0, 0, 1, 2])}).loss.mean()
    assert torch.allclose(loss, (p * (p / q).log()).sum() - (p * p.log()).sum())


def test_bilinear_loss_and_gradient() -> None:
    energy, batch = bilinear(), {"x": torch.ones(1, 2, dtype=F64)}
    found = phases(energy, batch)
    assert math.isclose(float(NLL()(energy, batch).loss.detach()), 0.895556, abs_tol=5e-7)
    expected = torch.tensor([[-0.393017, -0.353115], [-0.261623, -0.085249]], dtype=F64)
    assert torch.allclose(found.gradient["W"], expected, atol=5e-7)
    direct = torch.autograd.grad(NLL()(energy, batch).loss.mean(), energy.W)[0]
    assert torch.allclose(direct, expected, atol=5e-7)
    x = energy.spaces["x"].enumerate(dtype=F64)
    z_given_x = torch.sigmoid(energy.up(x))
    p = torch.softmax(-energy.marginal("z")(x=x), 0)
    model = -torch.einsum("n,ni,nj->ij", p, x, z_given_x)  # E_model[∂F/∂W]
    assert torch.allclose(found.negative["W"], model, atol=1e-12)


def test_phases_cancel_when_the_model_is_the_data() -> None:
    theta = torch.tensor([0.5, 0.3, 0.2], dtype=F64)
    rows = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    found = phases(TableEnergy(-theta.log()), {"x": rows})
    assert float(found.gradient["theta"].abs().max()) < 1e-12
    weighted = phases(TableEnergy(-theta.log()), {"x": torch.arange(3)}, weight=theta)
    assert float(weighted.gradient["theta"].abs().max()) < 1e-12


def test_softmin_with_latents_is_a_ratio_of_free_energies() -> None:
    energy, batch = latent_class()
    for T in (0.5, 1.0, 2.0):
        joint = energy.joint(batch["x"])  # (B, Y, Z)
        F = -T * torch.logsumexp(-joint / T, -1)
        expected = F.gather(1, batch["y"][:, None])[:, 0] + T * torch.logsumexp(-F / T, 1)
        found = SoftMin(T)(energy, batch)
        assert found.exact
        assert torch.allclose(found.loss, expected, atol=1e-12)
    hard = SoftMin(latent="minimise")(energy, batch)
    lowest = energy.joint(batch["x"]).min(-1).values
    expected = lowest.gather(1, batch["y"][:, None])[:, 0] + torch.logsumexp(-lowest, 1)
    assert torch.allclose(hard.loss, expected, atol=1e-12)


def test_free_energy_is_near_the_minimum() -> None:
    """F ≤ min_z e ≤ F + T log K."""
    energy, batch = latent_class()
    F = Naive(latent="marginalise")
    M = Naive(latent="minimise")
    with pytest.warns(UserWarning, match="Naive lowers"):
        low, high = F(energy, batch).loss, M(energy, batch).loss
    assert bool((low <= high + 1e-12).all())
    assert bool((high <= low + math.log(2) + 1e-12).all())


@pytest.mark.parametrize("latent", ["marginalise", "minimise", Variational()], ids=str)
def test_three_ways_with_latents_train(latent: object) -> None:
    energy, batch = latent_class()
    rule = SoftMin(latent=latent)
    losses = []
    for _ in range(40):
        loss = rule(energy, batch, generator=generator()).loss.mean()
        losses.append(float(loss.detach()))
        energy.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in energy.parameters():
                p -= 0.3 * p.grad
    assert losses[-1] < 0.5 * losses[0]


def test_perceptron_over_reals_finds_the_winner() -> None:
    energy = LinearGaussianEnergy(2, 1, generator=generator()).double()
    x = torch.randn(4, 2, generator=generator(1), dtype=F64)
    terms = Perceptron()(energy, {"x": x})
    assert not terms.exact and bool((terms.loss >= -1e-9).all())
    lowest = energy.marginal("z")(x=energy.b[None].detach())  # the mean of x
    assert torch.allclose(terms.contrast, lowest.expand(4), atol=1e-6)


def test_limits_of_temperature_over_reals() -> None:
    energy = LinearGaussianEnergy(2, 1, generator=generator()).double()
    batch = {"x": torch.randn(4, 2, generator=generator(1), dtype=F64)}
    cold = SoftMin(0.0)(energy, batch)
    hard = Perceptron(latent="minimise")(energy, batch)
    assert torch.allclose(cold.loss, hard.loss, atol=1e-6)
    with pytest.raises(Unsupported, match="T=inf is the mean over all values of x, z"):
        SoftMin(math.inf)(energy, batch)
    classes, labelled = latent_class()
    hot = SoftMin(math.inf)(classes, labelled).loss
    joint = classes.joint(labelled["x"]).mean(-1)  # (B, Y)
    own = joint.gather(1, labelled["y"][:, None])[:, 0]
    assert torch.allclose(hot, own - joint.mean(1), atol=1e-12)


def test_approximate_sums_are_named_or_refused() -> None:
    energy = DecoderEnergy(2, 1, generator=generator()).double()
    x = torch.randn(3, 2, generator=generator(1), dtype=F64)
    with pytest.raises(Unsupported, match="approximate=.*Quadrature"):
        NLL()(energy, {"x": x})
    terms = NLL(approximate=Quadrature(32))(energy, {"x": x})
    assert not terms.exact
    F = marginalise(energy, "z", {"x": x}, method=Quadrature(64)).value
    log_z = log_partition(energy, ("x", "z"))
    assert torch.allclose(terms.loss, F + log_z, atol=1e-6)


# --- missing targets ---------------------------------------------------------------------


def test_missing_targets_are_summed_out_when_x_is_modelled() -> None:
    energy = TableEnergy(torch.randn(3, 2, generator=generator(), dtype=F64))
    rule = SoftMin(over=("x", "y"))
    x, y = torch.tensor([0, 1, 2, 2]), torch.tensor([1, -1, 0, -1])
    terms = rule(energy, {"x": x, "y": y})
    p = torch.softmax(-energy.theta.detach().flatten(), 0).reshape(3, 2)
    expected = -torch.stack([p[0, 1], p[1].sum(), p[2, 0], p[2].sum()]).log()
    assert torch.allclose(terms.loss, expected, atol=1e-12)
    whole = rule(energy, {"x": x, "y": y.clamp(min=0)}).loss
    assert torch.allclose(whole[0], terms.loss[0])


def test_missing_targets_are_dropped_with_one_warning_when_only_y_is_modelled() -> None:
    energy = LinearEnergy(2, 3).double()
    data = {
        "x": torch.randn(4, 2, generator=generator(), dtype=F64),
        "y": torch.tensor([0, -1, 2, -1]),
    }
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    with pytest.warns(UserWarning, match="2 of 4 rows have no target") as caught:
        kept, w = drop_missing(SoftMin(), energy, data, weight)
    assert len(caught) == 1
    assert kept["y"].tolist() == [0, 2] and w.tolist() == [1.0, 3.0]
    same, _ = drop_missing(SoftMin(), energy, {"x": data["x"], "y": torch.arange(4) % 3})
    assert same["y"].tolist() == [0, 1, 2, 0]
    joint = drop_missing(SoftMin(over=("x", "y")), energy, data)[0]
    assert joint is data
    for rule in (SoftMin(), Perceptron(), SoftMin(2.0)):  # left in, such rows weigh nothing
        loss = rule(energy, data).loss
        assert loss[1] == loss[3] == 0


# --- bounds ------------------------------------------------------------------------------


def test_bound_of_the_worked_example() -> None:
    energy, joint = bayes()
    q = Categorical(torch.tensor([[0.2, 0.6, 0.2]], dtype=F64))
    found = bound(energy, {"z": q}, {"x": torch.tensor([0])})
    assert math.isclose(float(found.detach()), 1.842068, abs_tol=5e-7)
    assert float(found.detach()) >= 1.714798
    posterior = Categorical((joint / joint.sum())[None])
    tight = bound(energy, {"z": posterior}, {"x": torch.tensor([0])})
    assert math.isclose(float(tight.detach()), 1.714798, abs_tol=5e-7)


def test_bound_is_tight_when_the_posterior_is_in_the_family() -> None:
    energy = LinearGaussianEnergy(3, 2, generator=generator()).double()
    batch = {"x": torch.randn(5, 3, generator=generator(1), dtype=F64)}
    exact = NLL()(energy, batch)
    full = NLL(latent=Variational(Gaussian("full")))(energy, batch)
    diag = NLL(latent=Variational(Gaussian("diag")))(energy, batch)
    assert exact.exact and not full.exact
    assert torch.allclose(full.loss, exact.loss, atol=1e-5)
    assert bool((diag.loss > exact.loss - 1e-9).all())
    centroid = CentroidEnergy(3, 2, generator=generator()).double()
    x = {"x": batch["x"][:, :2]}
    a = torch.autograd.grad(NLL(latent=Variational())(centroid, x).loss.sum(), centroid.mu)[0]
    b = torch.autograd.grad(NLL()(centroid, x).loss.sum(), centroid.mu)[0]
    assert torch.allclose(a, b, atol=1e-9)  # the tight bound has the gradient of F


def test_estimators_of_the_bound_agree() -> None:
    """Exact or closed value; pathwise and score-function estimates within 4 standard errors."""
    energy = LinearGaussianEnergy(2, 2, generator=generator()).double()
    known = {"x": torch.randn(1, 2, generator=generator(1), dtype=F64).expand(4000, 2)}
    loc = torch.tensor([0.3, -0.2], dtype=F64, requires_grad=True)
    q = Independent(Normal(loc.expand(4000, 2), torch.tensor(0.7, dtype=F64)), 1)
    closed = bound(energy, {"z": q}, known, estimator="closed")
    target = torch.autograd.grad(closed.mean(), loc, retain_graph=True)[0]
    for estimator in ("pathwise", "score"):
        each = bound(energy, {"z": q}, known, n=4, estimator=estimator, generator=generator())
        stderr = float(each.detach().std()) / math.sqrt(4000)
        assert abs(float((each.mean() - closed[0]).detach())) < 4 * stderr
        g = torch.autograd.grad(each.mean(), loc, retain_graph=True)[0]
        assert torch.allclose(g, target, atol=0.12)


def test_score_function_bound_on_bits() -> None:
    energy = bilinear()
    known = {"x": torch.ones(4000, 2, dtype=F64)}
    logits = torch.tensor([0.2, -0.4], dtype=F64, requires_grad=True)
    q = Independent(Bernoulli(logits=logits.expand(4000, 2)), 1)
    exact = bound(energy, {"z": q}, known)
    sampled = bound(energy, {"z": q}, known, n=2, estimator="score", generator=generator())
    a = torch.autograd.grad(exact.mean(), logits, retain_graph=True)[0]
    b = torch.autograd.grad(sampled.mean(), logits)[0]
    assert torch.allclose(a, b, atol=0.05)
    assert bool((exact >= marginalise(energy, "z", known).value - 1e-12).all())


def test_encoder_learns_with_the_rule() -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    energy = LinearGaussianEnergy(3, 2, generator=generator()).double()
    torch.nn.init.zeros_((encoder := Encoder().double()).net.weight)
    rule = NLL(latent=Variational(Gaussian("diag"), encoder=encoder))
    assert any(p is encoder.net.weight for p in rule.parameters())
    batch = {"x": torch.randn(64, 3, generator=generator(1), dtype=F64)}
    optimiser = torch.optim.Adam(rule.parameters(), lr=0.05)
    first = None
    for _ in range(300):
        loss = rule(energy, batch).loss.mean()
        first = float(loss.detach()) if first is None else first
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    best = float(NLL(latent=Variational(Gaussian("diag")))(energy, batch).loss.mean().detach())
    assert best - 1e-6 <= float(loss.detach()) < best + 0.02 * (first - best)


def test_variational_refuses_without_latents_or_family() -> None:
    energy = LinearEnergy(2, 3)
    batch = {"x": torch.zeros(1, 2), "y": torch.zeros(1, dtype=torch.int64)}
    with pytest.raises(Unsupported, match="no variable is latent"):
        SoftMin(latent=Variational())(energy, batch)
    with pytest.raises(Unsupported, match="Gaussian does not fit 'z'"):
        NLL(latent=Variational(Gaussian()))(BilinearEnergy(2, 2), {"x": torch.zeros(1, 2)})
    with pytest.raises(ValueError, match="estimator must be one of"):
        Variational(estimator="magic")
