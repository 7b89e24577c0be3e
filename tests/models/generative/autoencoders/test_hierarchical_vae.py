"""A variational autoencoder with levels: one level, linear stacks, terms of the bound."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from groundstate import VAE, HierarchicalVAE
from groundstate.energy import DeepLatentEnergy
from groundstate.energy.latent.deep.hierarchy import FromBottom, HierarchicalPrior
from groundstate.infer.variational.hierarchy import BottomUp, Ladder
from groundstate.learn import NegativeELBO
from groundstate.nn import MLP
from groundstate.nn.heads.likelihoods import GaussianLikelihood

QUICK: dict[str, Any] = {
    "hidden_layer_sizes": (8,),
    "max_iter": 5,
    "random_state": 0,
    "device": None,
}


def affine(A: torch.Tensor, var: torch.Tensor) -> nn.Linear:
    """A network N(Az, diag var): means and constant log variances."""
    k, above = A.shape
    net = nn.Linear(above, 2 * k).double()
    with torch.no_grad():
        net.weight.zero_()
        net.bias.zero_()
        net.weight[:k] = A
        net.bias[k:] = var.log()
    return net


def stack() -> tuple[DeepLatentEnergy, torch.Tensor]:
    """A linear-Gaussian stack 1 → 2 → 3 → x of 3 columns, and its marginal covariance."""
    g = torch.Generator().manual_seed(0)
    A2, A1 = (torch.randn(*s, generator=g, dtype=torch.float64) for s in ((2, 1), (3, 2)))
    v2, v1 = torch.tensor([0.5, 0.8]).double(), torch.tensor([0.3, 0.6, 0.2]).double()
    W = torch.randn(3, 3, generator=g, dtype=torch.float64)
    out = nn.Linear(3, 3, bias=False).double()
    with torch.no_grad():
        out.weight.copy_(W)
    prior = HierarchicalPrior((3, 2, 1), [affine(A1, v1), affine(A2, v2)]).double()
    head = GaussianLikelihood(3, 0.5).double()
    energy = DeepLatentEnergy(FromBottom(out, 3, 6), head, prior).double()
    S2 = A2 @ A2.T + v2.diag()
    S1 = A1 @ S2 @ A1.T + v1.diag()
    return energy, W @ S1 @ W.T + 0.25 * torch.eye(3, dtype=torch.float64)


def test_a_linear_stack_has_its_marginal_covariance() -> None:
    energy, exact = stack()
    n = 200_000
    x = energy.ancestral(n, generator=torch.Generator().manual_seed(1))["x"]
    spread = (exact.diagonal()[:, None] * exact.diagonal() + exact**2) / n
    assert bool(((x.T.cov() - exact).abs() < 5 * spread.sqrt()).all())
    assert bool((x.mean(0).abs() < 5 * (exact.diagonal() / n).sqrt()).all())


@pytest.mark.parametrize("kind", [BottomUp, Ladder])
def test_weights_of_any_posterior_average_to_the_exact_density(kind: type) -> None:
    energy, exact = stack()
    sizes, g = (3, 2, 1), torch.Generator().manual_seed(2)
    pairs = [(3, 2), (2, 1)] if kind is BottomUp else [(2, 3), (1, 2)]
    nets = [MLP(a, (), 2 * b, generator=g) for a, b in pairs]
    family = kind(sizes, nets).double()
    numbers = family.size(energy.spaces["z"])
    encoder = MLP(3, (), numbers, generator=g).double()
    x = torch.tensor([[0.3, -0.2, 0.5]], dtype=torch.float64)
    with torch.no_grad():
        for p in encoder.parameters():
            p.mul_(0.1)
        q = family.parts(encoder(x))
        z, log_q = family.draws(q, 100_000, g)
        torch.testing.assert_close(log_q(), family.log_prob(q, z))
        many = x.expand(len(z), -1)
        log_w = -energy(x=many, z=z[:, 0]) - log_q()[:, 0]
        found = float(log_w.logsumexp(0) - math.log(len(z)))
        expected = torch.distributions.MultivariateNormal(torch.zeros(3).double(), exact)
        assert found == pytest.approx(float(expected.log_prob(x)[0]), abs=0.1)
        assert float(log_w.mean()) < found  # the bound
        assert family.centre(q).shape == (1, 6)
    rule = NegativeELBO(encoder, family)
    loss = rule(energy, {"x": x}, generator=g).loss
    loss.sum().backward()
    assert all(p.grad is not None for p in [*rule.parameters(), *energy.prior.parameters()])


def test_one_level_is_a_vae() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    one, plain = HierarchicalVAE((2,), **QUICK), VAE(2, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.fit(X), plain.fit(X)
    np.testing.assert_array_equal(one.transform(X), plain.transform(X))
    np.testing.assert_array_equal(one.elbo(X), plain.elbo(X))
    np.testing.assert_array_equal(one.sample(5, random_state=0), plain.sample(5, random_state=0))
    assert one.elbo_terms(X).steps.shape == (0, 60)


@pytest.mark.parametrize("encoder", ["ladder", "bottom_up"])
def test_the_terms_add_up_to_the_bound_below_the_density(encoder: str) -> None:
    t = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    X = np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t)])
    X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    model = HierarchicalVAE(
        (3, 2), encoder=encoder, hidden_layer_sizes=(32,), max_iter=60, learning_rate_init=5e-3,
        n_iter_no_change=np.inf, random_state=0,
    ).fit(X)  # fmt: skip
    terms = model.elbo_terms(X)
    np.testing.assert_allclose(terms.value, model.elbo(X), rtol=1e-5)
    np.testing.assert_allclose(
        terms.reconstruction - terms.prior - terms.steps.sum(0), terms.value, rtol=1e-5
    )
    np.testing.assert_allclose(terms.bits_per_dim, -terms.value / (3 * math.log(2)), rtol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.score(X) > terms.value.mean()
    assert model.loss_curve_[-1] < model.loss_curve_[0] - 1
    assert model.active_units_.shape == (5,)
    assert model.sample(4, return_latent=True, random_state=0)[1].shape == (4, 5)


def test_levels_are_checked() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="at least 1 each"):
        HierarchicalVAE((2, 0)).fit(X)
    with pytest.raises(ValueError, match="normal posteriors"):
        HierarchicalVAE((2, 1), **QUICK).fit_local(X)
    with pytest.raises(ValueError, match="1 networks between"):
        HierarchicalPrior((2, 1), [])
