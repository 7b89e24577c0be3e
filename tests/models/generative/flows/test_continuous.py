"""Fields that carry noise to data: learned by likelihood and by regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate import CNF, FlowMatching
from groundstate.data import make_eight_gaussians
from groundstate.energy import NormalizingFlowEnergy
from groundstate.errors import Unsupported
from groundstate.learn.rules.paths.flow_matching import VelocityMatching, best_pairs, coefficients


def test_the_best_field_between_two_gaussians() -> None:
    """N(0, 1) to N(2, 1/4): v(x, 1/2) = 2 − 1.2 (x − 1)."""
    X = np.random.default_rng(0).normal(2.0, 0.5, (4000, 1))
    model = FlowMatching(scale=None, hidden_layer_sizes=(64,), max_iter=60, random_state=0).fit(X)
    v = model.velocity(0.5, np.array([[1.0], [1.5]]))[:, 0]
    assert v == pytest.approx([2.0, 1.4], abs=0.12)
    assert model.score_samples([[2.0], [1.0]]) == pytest.approx([-0.225791, -2.225791], abs=0.25)
    drawn = model.sample(4000, random_state=0)
    assert drawn.mean() == pytest.approx(2, abs=0.05) and drawn.std() == pytest.approx(
        0.5, abs=0.04
    )


@pytest.mark.parametrize("path", ["linear", "vp"])
def test_paths_go_from_noise_to_data(path: str) -> None:
    t = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64, requires_grad=True)
    a, b, da, db = coefficients(path, t)
    assert a[0].item() == pytest.approx(1) and b[0].item() == pytest.approx(0)
    assert a[-1].item() == pytest.approx(0, abs=1e-12) and b[-1].item() == pytest.approx(1)
    for value, slope in ((a, da), (b, db)):
        (found,) = torch.autograd.grad(value.sum(), t, retain_graph=True)
        expected = torch.as_tensor(slope, dtype=torch.float64).expand(3)
        assert torch.allclose(found, expected)


def test_pairs_are_the_best() -> None:
    g = torch.Generator().manual_seed(0)
    x0, x1 = torch.randn(6, 2, generator=g), torch.randn(6, 2, generator=g)
    least = (x0[best_pairs(x0, x1)] - x1).square().sum()
    for _ in range(200):
        other = torch.randperm(6, generator=g)
        assert least <= (x0[other] - x1).square().sum() + 1e-6


@pytest.mark.slow
def test_transport_straightens_paths() -> None:
    X, _ = _ring(1000, 0)
    bend, gap = {}, {}
    for coupling in ("independent", "ot"):
        model = FlowMatching(
            coupling, hidden_layer_sizes=(64, 64), max_iter=60, random_state=0
        ).fit(X)
        step = model.energy_.continuous
        z = torch.randn(500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        with torch.no_grad():
            way = step.path(z, times=torch.linspace(0, 1, 21), method="rk4", n_steps=100)
            few = step.path(z, method="euler", n_steps=5)[-1]
        straight = way[0] + torch.linspace(0, 1, 21)[:, None, None] * (way[-1] - way[0])
        bend[coupling] = (way - straight).norm(dim=-1).mean().item()
        gap[coupling] = (few - way[-1]).norm(dim=-1).mean().item()
    assert bend["ot"] < bend["independent"] and gap["ot"] < gap["independent"]


def _ring(n: int, seed: int) -> Any:
    return make_eight_gaussians(n, random_state=seed)


def test_rectified_flows_need_fewer_steps() -> None:
    X, _ = _ring(600, 0)
    model = FlowMatching(hidden_layer_sizes=(64, 64), max_iter=50, random_state=0).fit(X)
    z = torch.randn(400, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def gap() -> float:
        step = model.energy_.continuous
        with torch.no_grad():
            one = step.path(z, method="euler", n_steps=2)[-1]
            many = step.path(z, method="rk4", n_steps=50)[-1]
        return float((one - many).norm(dim=1).mean())

    before, epochs = gap(), model._epochs
    model.rectify(1, 600)
    assert gap() < 0.7 * before and model._epochs > epochs
    with pytest.raises(ValueError, match="at least 1"):
        model.rectify(0)


def test_guidance_moves_samples_apart() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 1)) + 2.0 * y[:, None]
    model = FlowMatching(hidden_layer_sizes=(32,), max_iter=60, random_state=0).fit(X, y)
    plain = model.sample(1000, y=1, random_state=0)
    assert plain.mean() == pytest.approx(2, abs=0.3)
    model.set_params(guidance=3.0)
    assert model.sample(1000, y=1, random_state=0).mean() > plain.mean() + 0.3
    with pytest.raises(Unsupported, match="without y"):
        model.rectify()


@pytest.mark.slow
def test_cnf_learns_a_mixture_by_likelihood() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 1)) < 0.5, -2.0, 2.0) + 0.4 * rng.normal(size=(400, 1))
    model = CNF(
        hidden_layer_sizes=(32,), method="rk4", n_steps=4, learning_rate_init=1e-2, max_iter=60,
        batch_size=50, random_state=0,
    ).fit(X)  # fmt: skip
    gauss = -0.5 * np.log(2 * np.pi * np.e * X.var())
    assert model.score(X) > gauss + 0.3
    side = np.linspace(-6, 6, 1201)[:, None]
    assert np.exp(model.score_samples(side)).sum() * 0.01 == pytest.approx(1, abs=1e-3)
    assert model.log_prob_kind_ == "exact"


def test_many_columns_give_an_estimate() -> None:
    X = np.random.default_rng(0).normal(size=(60, 11))
    model = CNF(hidden_layer_sizes=(8,), method="euler", n_steps=2, max_iter=2, random_state=0).fit(
        X
    )
    assert model.log_prob_kind_ == "estimate"
    np.testing.assert_array_equal(model.score_samples(X), model.score_samples(X))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="coupling must be one of independent, ot"):
        VelocityMatching("near")
    with pytest.raises(ValueError, match="label_dropout"):
        VelocityMatching(label_dropout=1.0)
    with pytest.raises(Unsupported, match="no velocity"):
        VelocityMatching()(NormalizingFlowEnergy(2, "maf"), {"x": torch.zeros(3, 2)})
