"""ScoreModel and ScoreSDE on rows whose scores are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import Normal

from groundstate import ScoreModel, ScoreSDE
from groundstate.energy import Energy, Real
from groundstate.energy.networks.score import ScoreEnergy
from groundstate.infer.sampling.langevin import Langevin
from groundstate.learn import DenoisingScoreMatching, ScoreMatching
from groundstate.math.divergences.fisher import fisher

QUICK = {"hidden_layer_sizes": (64, 64), "learning_rate_init": 5e-3, "random_state": 0}


def ring(n: int = 400, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.random(n) * 2 * np.pi
    return np.c_[2 * np.cos(t), 2 * np.sin(t)] + 0.15 * rng.normal(size=(n, 2))


class Bowl(Energy):
    def __init__(self, precision: float) -> None:
        super().__init__(x=Real(1))
        self.p = torch.nn.Parameter(torch.tensor(precision, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * self.p * x.square().sum(-1)


def test_fisher_divergence_of_two_gaussians() -> None:
    a, b, s = 0.5, 2.0, 1.5
    assert float(fisher(Normal(a, s), Normal(b, s), random_state=0)) == pytest.approx(
        (a - b) ** 2 / s**4, rel=1e-5
    )


def test_implicit_loss_is_least_at_the_precision_of_the_data() -> None:
    v = 2.0
    x = torch.randn(1000, 1, dtype=torch.float64)
    x = x * (v / x.square().mean()).sqrt()
    losses = {
        p: float(ScoreMatching()(Bowl(p), {"x": x}).loss.detach().mean())
        for p in (0.8 / v, 1 / v, 1.2 / v)
    }
    assert losses[1 / v] == min(losses.values())
    assert losses[1 / v] == pytest.approx(-1 / (2 * v), abs=1e-9)


def test_denoising_finds_the_smoothed_score() -> None:
    x = torch.randn(200_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    energy = Bowl(1.0)
    rule = DenoisingScoreMatching(0.5)
    for p, lower in ((0.7, 0.8), (0.9, 0.8)):
        at = {
            q: float(
                rule(energy_at(energy, q), {"x": x}, generator=torch.Generator().manual_seed(1))
                .loss.detach()
                .mean()
            )
            for q in (p, lower)
        }
        assert at[lower] < at[p]  # the score −x/1.25 has precision .8


def energy_at(energy: Bowl, p: float) -> Bowl:
    with torch.no_grad():
        energy.p.fill_(p)
    return energy


def test_unadjusted_langevin_has_a_known_bias() -> None:
    eta = 0.4
    kernel = Langevin(step_size=eta, adjusted=False).kernel(Bowl(1.0), {})
    start = {"x": torch.zeros(50_000, 1, dtype=torch.float64)}
    x = kernel.run(start, 40, torch.Generator().manual_seed(0))["x"]
    assert float(x.var()) == pytest.approx(1 / (1 - eta / 2), abs=0.03)


def test_an_energy_is_told_the_noise_level() -> None:
    energy = ScoreEnergy(2, (8,)).double()
    x = torch.randn(6, 2, dtype=torch.float64)
    seen = []
    hook = energy.net.register_forward_hook(lambda m, i, o: seen.append(i[0][:, 2].exp()))
    DenoisingScoreMatching((0.5, 2.0))(energy, {"x": x})
    hook.remove()
    assert len(seen[0].unique()) == 6 and (seen[0] >= 0.5).all() and (seen[0] <= 2.0).all()
    assert torch.autograd.gradcheck(
        lambda v: energy(x=v, sigma=torch.full((6,), 0.7, dtype=torch.float64)),
        (x.requires_grad_(),),
    )


@pytest.mark.parametrize(
    "model",
    [
        ScoreModel(max_iter=60, **QUICK),
        ScoreSDE(max_iter=80, **QUICK),
        ScoreSDE("ve", max_iter=80, sampler="pc", n_steps=100, **QUICK),
        ScoreSDE("subvp", max_iter=80, sampler="ode", **QUICK),
    ],
    ids=["ladder", "vp", "ve", "subvp"],
)
def test_rows_on_a_ring(model: ScoreModel | ScoreSDE) -> None:
    model.fit(ring())
    r = np.hypot(*model.sample(300, random_state=0).T)
    assert r.mean() == pytest.approx(2.0, abs=0.25) and r.std() < 0.7
    if model.log_prob_kind_ == "exact":
        X = ring(seed=1)
        gauss = -np.log(2 * np.pi * np.e) - 0.5 * np.linalg.slogdet(np.cov(X.T))[1]
        assert model.score(X[:100]) > gauss + 0.3


def test_density_integrates_to_one_and_codes_come_back() -> None:
    X = np.random.default_rng(0).normal(3.0, 0.5, (300, 1))
    model = ScoreSDE(max_iter=60, **QUICK).fit(X)
    grid = np.linspace(0, 6, 241)[:, None]
    assert np.exp(model.score_samples(grid)).sum() * 0.025 == pytest.approx(1.0, abs=0.03)
    np.testing.assert_allclose(model.reconstruct(X[:5]), X[:5], atol=0.02)
    x = torch.tensor(X[:3], requires_grad=True)
    (g,) = torch.autograd.grad(model.log_prob(x).sum(), x)
    assert g.shape == x.shape and torch.isfinite(g).all()


def test_denoise_and_refusals() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 1))
    model = ScoreModel(max_iter=15, sigma_max=2.0, **QUICK).fit(X)
    noisy = X + X.std() * np.random.default_rng(1).normal(size=X.shape)
    clean = model.denoise(noisy, 1.0)
    assert np.mean((clean - X) ** 2) < 0.7 * np.mean((noisy - X) ** 2)
    assert model.sigmas_[0] == 2.0 and len(model.sigmas_) == 10
    with pytest.raises(ValueError, match="sigma_min < sigma_max"):
        ScoreModel(sigma_min=3.0, sigma_max=1.0).fit(X)
    with pytest.raises(ValueError, match="noise='single'"):
        ScoreModel(loss="sliced").fit(X)
    for loss in ("exact", "hutchinson", "sliced"):
        single = ScoreModel("single", loss=loss, max_iter=10, **QUICK).fit(X)
        slope = single.score_function(np.array([[1.0]]))
        assert slope[0, 0] == pytest.approx(-1.0, abs=0.4)
