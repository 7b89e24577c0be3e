"""The evidence lower bound: identities to rounding, numbers, groupings and their variance."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import (
    Categorical,
    Dirichlet,
    Independent,
    MultivariateNormal,
    Normal,
)

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    DecoderEnergy,
    DirectedEnergy,
    Energy,
    Finite,
    LinearGaussianEnergy,
    LinearNormal,
)
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import posterior
from groundstate.learn import elbo

F64 = torch.float64


class Bayes(Energy):
    """Prior (.5, .3, .2); the one observation x = 0 has likelihood (.10, .40, .05)."""

    normalised = frozenset({"x", "z"})

    def __init__(self) -> None:
        super().__init__(x=Finite(2), z=Finite(3))
        self.register_buffer("prior_", torch.tensor([0.5, 0.3, 0.2], dtype=F64))
        self.register_buffer("seen", torch.tensor([0.10, 0.40, 0.05], dtype=F64))

    def forward(self, x, z):
        likelihood = torch.where(x == 0, self.seen[z], 1 - self.seen[z])
        return -(self.prior_[z] * likelihood).log()


X0 = {"x": torch.zeros(1, dtype=torch.int64)}


def normal(mean: float, variance: float, d: int = 1) -> Independent:
    loc = torch.full((1, d), mean, dtype=F64)
    return Independent(Normal(loc, torch.full_like(loc, variance**0.5)), 1)


def line() -> LinearGaussianEnergy:
    energy = LinearGaussianEnergy(1, 1).double()
    energy.W.data.fill_(1.0)
    return energy


def test_finite_example():
    found = elbo(Bayes(), torch.tensor([[0.2, 0.6, 0.2]], dtype=F64), X0)
    assert float(found.reconstruction) == pytest.approx(-1.609438, abs=1e-6)
    assert float(found.kl) == pytest.approx(0.232630, abs=1e-6)
    assert float(found.value) == pytest.approx(-1.842068, abs=1e-6)
    assert float(found.gap) == pytest.approx(0.127270, abs=1e-6)
    assert float(found.entropy) == pytest.approx(0.950271, abs=1e-6)
    assert found.exact and found.stderr is None


def test_gaussian_example():
    x = {"x": torch.ones(1, 1, dtype=F64)}
    tight = elbo(line(), normal(0.5, 0.5), x)
    assert float(tight.value.detach()) == pytest.approx(-1.515512, abs=1e-6)
    assert float(tight.gap.detach()) == pytest.approx(0.0, abs=1e-12)
    loose = elbo(line(), normal(0.0, 1.0), x)
    assert float(loose.value.detach()) == pytest.approx(-1.918939, abs=1e-6)
    assert float(loose.kl.detach()) == pytest.approx(0.0, abs=1e-12)


def test_jensen():
    # f = exp of a standard normal: f(E z) = 1 ≤ E f(z) = √e
    z = torch.randn(10**6, generator=torch.Generator().manual_seed(0), dtype=F64)
    assert float(z.exp().mean()) == pytest.approx(1.648721, rel=0.01)
    assert math.exp(0.5) == pytest.approx(1.648721, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_identities_for_random_q(seed):
    g = torch.Generator().manual_seed(seed)
    centroid = CentroidEnergy(4, 2, generator=g).double()
    x = {"x": torch.randn(6, 2, generator=g, dtype=F64)}
    q = torch.rand(6, 4, generator=g, dtype=F64)
    q = q / q.sum(1, keepdim=True)
    a = torch.randn(6, 3, 3, generator=g, dtype=F64)
    gaussian = MultivariateNormal(
        torch.randn(6, 3, generator=g, dtype=F64), a @ a.mT + torch.eye(3, dtype=F64)
    )
    linear = LinearGaussianEnergy(2, 3, s=0.7, generator=g).double()
    bits = BilinearEnergy(2, 3, scale=1.0, generator=g).double()
    w = torch.rand(6, 8, generator=g, dtype=F64)
    w = w / w.sum(1, keepdim=True)
    seen = {"x": torch.randint(2, (6, 2), generator=g).to(F64)}
    for energy, distribution, given in ((centroid, q, x), (linear, gaussian, x), (bits, w, seen)):
        found = elbo(energy, distribution, given)
        assert found.exact
        parts = found.reconstruction - found.kl
        torch.testing.assert_close(found.value, parts, rtol=0, atol=1e-12)
        assert float(found.gap.detach().min()) >= -1e-12
        log_z = energy.ability("log_partition", "x", "z")()
        evidence = energy.ability("log_partition", "z")(**given) - log_z
        torch.testing.assert_close(found.value + found.gap, evidence, rtol=0, atol=1e-12)


def test_gap_is_the_divergence_from_the_posterior():
    g = torch.Generator().manual_seed(0)
    energy = CentroidEnergy(4, 2, generator=g).double()
    x = {"x": torch.randn(6, 2, generator=g, dtype=F64)}
    q = Categorical(torch.rand(6, 4, generator=g, dtype=F64))
    expected = torch.distributions.kl_divergence(q, posterior(energy, "z", x))
    torch.testing.assert_close(elbo(energy, q, x).gap, expected, rtol=0, atol=1e-12)


def test_ascent_over_q_ends_at_the_posterior():
    logits = torch.zeros(1, 3, dtype=F64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-12)

    def lower():
        optimizer.zero_grad()
        loss = -elbo(Bayes(), Categorical(logits=logits), X0).value.sum()
        loss.backward()
        return loss

    optimizer.step(lower)
    found = elbo(Bayes(), Categorical(logits=logits.detach()), X0)
    assert float(found.gap) < 1e-6
    posterior_ = torch.softmax(logits.detach(), 1)[0]
    assert posterior_.tolist() == pytest.approx([0.277778, 0.666667, 0.055556], abs=1e-4)


def test_raising_the_bound_can_lower_the_likelihood():
    # covariance with eigenvalues (9, 4, .5, .3, .2), q of unit covariance, dim z = 2, s = 1:
    # the bound prefers smaller loadings than the likelihood
    eigenvalues = torch.tensor([9.0, 4.0, 0.5, 0.3, 0.2], dtype=F64)
    x = torch.cat([torch.diag((5 * eigenvalues).sqrt()), -torch.diag((5 * eigenvalues).sqrt())])

    def measured(w):
        energy = LinearGaussianEnergy(5, 2).double()
        energy.W.data.zero_()
        energy.W.data[:2] = torch.diag(torch.tensor(w, dtype=F64))
        eye = torch.eye(2, dtype=F64).expand(10, 2, 2)
        mean = energy.encode(x).detach()
        found = elbo(energy, MultivariateNormal(mean, eye), {"x": x})
        return float(found.value.detach().mean()), float((found.value + found.gap).detach().mean())

    likely = measured([math.sqrt(8.0), math.sqrt(3.0)])  # maximum likelihood
    assert likely == pytest.approx((-11.594693, -7.886452), abs=1e-6)
    best = measured([math.sqrt(2.0), 1.0])  # the bound is largest where w² + 1 = √eigenvalue
    assert best == pytest.approx((-9.094693, -8.490572), abs=1e-6)
    for w in ([1.4, 1.0], [1.43, 1.0], [math.sqrt(2.0), 0.97], [math.sqrt(2.0), 1.03]):
        assert measured(w)[0] < best[0]


def test_groupings_share_their_mean_and_differ_in_variance():
    g = torch.Generator().manual_seed(0)
    energy = DecoderEnergy(3, 1, generator=g).double()
    given = {"x": torch.ones(1, 3, dtype=F64)}
    prior = Independent(Normal(torch.zeros(1, dtype=F64), torch.ones(1, dtype=F64)), 1)
    q = normal(0.3, 0.4)
    found = {
        form: elbo(energy, q, given, form=form, prior=prior, n=20_000, generator=g)
        for form in ("entropy", "kl", "sampled")
    }
    values = [float(f.value.detach()) for f in found.values()]
    errors = [float(f.stderr) for f in found.values()]
    assert max(values) - min(values) < 5 * max(errors)
    assert len({round(e, 5) for e in errors}) == 3
    assert not found["kl"].exact
    assert elbo(energy, q, given, form="kl", prior=prior, n=8).kl == pytest.approx(
        torch.distributions.kl_divergence(q, prior.expand([1]))
    )


def test_directed_energy_brings_its_prior():
    prior = Independent(Normal(torch.zeros(2, dtype=F64), torch.ones(2, dtype=F64)), 1)
    weight = torch.tensor([[1.0, 0.5], [0.2, 2.0]], dtype=F64)
    energy = DirectedEnergy(prior, LinearNormal(weight, scale=0.5))
    found = elbo(energy, normal(0.1, 0.3, 2), {"x": torch.ones(1, 2, dtype=F64)})
    assert found.exact and float(found.gap.detach()) > 0
    torch.testing.assert_close(found.value, found.reconstruction - found.kl, rtol=0, atol=1e-12)


def test_gradient_reaches_theta_and_q():
    energy = DecoderEnergy(2, 1).double()
    mean = torch.zeros(3, 1, dtype=F64, requires_grad=True)
    q = Independent(Normal(mean, torch.ones(3, 1, dtype=F64)), 1)
    found = elbo(energy, q, {"x": torch.ones(3, 2, dtype=F64)}, generator=torch.Generator())
    found.value.sum().backward()
    assert mean.grad is not None and float(mean.grad.abs().sum()) > 0
    assert all(p.grad is not None for p in energy.parameters())


def test_impossible_values_of_q_count_nothing():
    found = elbo(Bayes(), torch.tensor([[0.0, 1.0, 0.0]], dtype=F64), X0)
    assert float(found.value) == pytest.approx(math.log(0.3 * 0.4), abs=1e-12)
    assert float(found.entropy) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: elbo(Bayes(), torch.ones(1, 2), X0), ShapeError, "probabilities \\(1, 3\\)"),
        (lambda: elbo(Bayes(), torch.ones(1, 3), {}), Unsupported, "exactly one variable"),
        (
            lambda: elbo(line(), Dirichlet(torch.ones(2, 3)), {"x": torch.ones(1, 1).double()}),
            ShapeError,
            "batch shape",
        ),
        (
            lambda: elbo(
                DecoderEnergy(1, 1), Independent(Normal(torch.zeros(1, 1), torch.ones(1, 1)), 1),
                {"x": torch.ones(1, 1)}, form="kl",
            ),
            Unsupported,
            "pass prior=",
        ),
    ],
)  # fmt: skip
def test_errors_teach(call, error, message):
    with pytest.raises(error, match=message):
        call()
