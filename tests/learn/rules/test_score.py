"""Score matching: slopes and curvatures instead of normalisers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Uniform

from groundstate.energy import CentroidEnergy, Energy, LinearEnergy, NetEnergy, Real, SquaredEnergy
from groundstate.errors import Unsupported
from groundstate.learn import DenoisingScoreMatching, ScoreMatching, denoise

F64 = torch.float64


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Gauss(Energy):
    """(x − m)² / (2v) with a learned mean and variance, without its normaliser."""

    def __init__(self, m: float, v: float, d: int = 1) -> None:
        super().__init__(x=Real(d))
        self.m = nn.Parameter(torch.tensor(m, dtype=F64))
        self.v = nn.Parameter(torch.tensor(v, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * ((x - self.m).square() / self.v).sum(-1)


DATA = {"x": torch.tensor([[1.0], [2.0], [6.0]], dtype=F64)}


def test_minimiser_on_three_points() -> None:
    energy = Gauss(3.0, 14 / 3)
    loss = ScoreMatching()(energy, DATA).loss.mean()
    assert math.isclose(float(loss.detach()), -0.107143, abs_tol=5e-7)
    slope = torch.autograd.grad(loss, list(energy.parameters()))
    assert all(abs(float(g)) < 1e-12 for g in slope)
    for m, v in ((2.9, 14 / 3), (3.1, 14 / 3), (3.0, 4.0), (3.0, 5.5)):
        other = ScoreMatching()(Gauss(m, v), DATA).loss.mean()
        assert float(other.detach()) > float(loss.detach())


def test_fisher_divergence() -> None:
    """Twice the excess over the data's own energy is (a−b)²/σ⁴."""
    a, b, var = 0.5, -0.7, 1.7
    x = {"x": a + math.sqrt(var) * torch.randn(200_000, 1, generator=generator(), dtype=F64)}
    own = ScoreMatching()(Gauss(a, var), x).loss.mean()
    other = ScoreMatching()(Gauss(b, var), x).loss.mean()
    fisher = 2 * float((other - own).detach())
    assert math.isclose(fisher, (a - b) ** 2 / var**2, abs_tol=0.01)


@pytest.mark.parametrize("method", ["hutchinson", "sliced"])
def test_random_directions_have_the_exact_mean(method: str) -> None:
    energy = NetEnergy(3, net=(8,), generator=generator()).double()
    x = torch.randn(1, 3, generator=generator(1), dtype=F64).expand(8000, 3)
    exact = ScoreMatching()(energy, {"x": x[:1]})
    rough = ScoreMatching(method, n=2)(energy, {"x": x}, generator=generator())
    assert exact.exact and not rough.exact
    stderr = float(rough.loss.detach().std()) / math.sqrt(8000)
    assert abs(float((rough.loss.mean() - exact.loss[0]).detach())) < 4 * stderr


def test_curvature_of_a_net_by_finite_differences() -> None:
    energy = NetEnergy(2, net=(8,), generator=generator()).double()
    x = torch.randn(4, 2, generator=generator(1), dtype=F64)
    terms = ScoreMatching()(energy, {"x": x})
    h = 1e-4
    eye = h * torch.eye(2, dtype=F64)
    with torch.no_grad():
        e = energy(x=x)
        up = [energy(x=x + eye[i]) for i in range(2)]
        down = [energy(x=x - eye[i]) for i in range(2)]
    laplacian = sum((u + d - 2 * e) / h**2 for u, d in zip(up, down, strict=True))
    squares = sum(((u - d) / (2 * h)) ** 2 for u, d in zip(up, down, strict=True))
    assert torch.allclose(terms.contrast, laplacian, atol=1e-5)
    assert torch.allclose(terms.positive, 0.5 * squares, atol=1e-5)
    terms.loss.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in energy.parameters() if p.grad is not None)


def test_free_energy_has_the_score_of_a_mixture() -> None:
    energy = CentroidEnergy(2, 1).double()
    with torch.no_grad():
        energy.mu.copy_(torch.tensor([[-1.0], [2.0]]))
    x = torch.tensor([[0.3], [1.0]], dtype=F64)
    terms = ScoreMatching()(energy, {"x": x})
    r = torch.softmax(-0.5 * (x - energy.mu.T) ** 2, 1)
    mean = (r * energy.mu.T).sum(1)
    variance = (r * energy.mu.T**2).sum(1) - mean**2
    assert terms.exact
    assert torch.allclose(terms.positive, 0.5 * (x[:, 0] - mean) ** 2, atol=1e-12)
    assert torch.allclose(terms.contrast, 1 - variance, atol=1e-12)


def test_conditional_scores_are_taken_in_y() -> None:
    energy = SquaredEnergy(2, 1).double()
    y = torch.tensor([[1.0], [3.0]], dtype=F64)
    terms = ScoreMatching()(energy, {"x": torch.zeros(2, 2, dtype=F64), "y": y})
    assert torch.allclose(terms.loss, 0.5 * y[:, 0] ** 2 - 1)


def test_denoising_minimiser() -> None:
    """Data of variance v: the best energy is x²/(2(v + σ²))."""
    v, sigma = 1.5, 0.8
    x = {"x": math.sqrt(v) * torch.randn(200_000, 1, generator=generator(), dtype=F64)}
    energy = Gauss(0.0, v + sigma**2)
    loss = DenoisingScoreMatching(sigma)(energy, x, generator=generator(1)).loss.mean()
    slopes = torch.autograd.grad(loss, list(energy.parameters()))
    assert all(abs(float(g)) < 0.005 for g in slopes)
    for other in (v, v + 2 * sigma**2):
        worse = DenoisingScoreMatching(sigma)(Gauss(0.0, other), x, generator=generator(1))
        assert float(worse.loss.mean().detach()) > float(loss.detach())


def test_tweedie() -> None:
    energy = Gauss(0.0, 2.0)  # N(0, 1) smoothed by unit noise
    x = torch.tensor([[2.0]], dtype=F64)
    at = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(energy(x=at).sum(), at)
    assert float(-slope) == -1.0
    assert float(denoise(energy, x, 1.0)) == 1.0
    both = denoise(energy, x.expand(2, 1), torch.tensor([1.0, 0.0], dtype=F64))
    assert both[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "sigma",
    [0.5, (0.1, 1.0), Uniform(0.1, 1.0), lambda n, generator: torch.full((n,), 0.3)],
    ids=["number", "pair", "distribution", "function"],
)
def test_noise_levels(sigma: object) -> None:
    rule = DenoisingScoreMatching(sigma)
    x = torch.zeros(50, 2, dtype=F64)
    drawn = rule.draw_sigma(x, generator())
    assert drawn.shape == (50, 1) and bool(((drawn >= 0.1) & (drawn <= 1.0)).all())
    terms = rule(Gauss(0.0, 1.0, 2), {"x": x}, generator=generator())
    assert torch.allclose(terms.loss, terms.positive - terms.contrast, atol=1e-12)
    assert torch.equal(terms.loss, rule(Gauss(0.0, 1.0, 2), {"x": x}, generator=generator()).loss)


def test_no_graph_when_nobody_wants_one() -> None:
    with torch.no_grad():
        for rule in (ScoreMatching(), DenoisingScoreMatching()):
            assert not rule(Gauss(0.0, 1.0), DATA, generator=generator()).loss.requires_grad


def test_refusals() -> None:
    batch = {"x": torch.zeros(1, 2), "y": torch.zeros(1, dtype=torch.int64)}
    with pytest.raises(Unsupported, match="which has no slope; scores need real values"):
        ScoreMatching()(LinearEnergy(2, 3), batch)
    boxed = NetEnergy(2, low=0.0, high=1.0)
    with pytest.raises(Unsupported, match="has a boundary .* use DenoisingScoreMatching"):
        ScoreMatching()(boxed, {"x": torch.zeros(1, 2)})
    with pytest.raises(ValueError, match="method must be one of exact, hutchinson, sliced"):
        ScoreMatching("magic")
    with pytest.raises(ValueError, match="sigma must be positive"):
        DenoisingScoreMatching(0.0)
