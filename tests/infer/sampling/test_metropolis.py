"""Metropolis: transition matrices, acceptance formulas, targets, masks, adaptation."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
import torch
from tests.infer.samplers import (
    Dirichlet,
    Normal,
    Shifted,
    Spins,
    Word,
    chi_square_p,
    seeded,
    state_counts,
)
from torch import Tensor

from groundstate.energy import TableEnergy
from groundstate.infer import Metropolis, kernel_matrix, run_chains, sample
from groundstate.math.chains.markov import MarkovChain

WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)


class Ring:
    """One step left or right on a ring of n states."""

    def __init__(self, n: int) -> None:
        self.n = n

    def propose(self, v: Tensor, generator: torch.Generator) -> tuple[Tensor, None]:
        by = 2 * torch.randint(2, v.shape, generator=generator) - 1
        return (v + by) % self.n, None

    def outcomes(self, v: Tensor) -> Iterable[tuple[Tensor, Tensor, None]]:
        for by in (-1, 1):
            yield torch.full(v.shape, 0.5, dtype=torch.float64), (v + by) % self.n, None


def ring() -> tuple[TableEnergy, Metropolis]:
    return TableEnergy(-WEIGHTS.log()), Metropolis(proposal=Ring(4), adapt=False)


def test_ring_target() -> None:
    energy, method = ring()
    P = kernel_matrix(method.kernel(energy))
    columns = [
        [0, 0.5, 0, 0.5],
        [0.25, 0.25, 0.5, 0],
        [0, 1 / 3, 1 / 6, 0.5],
        [0.125, 0, 0.375, 0.5],
    ]
    torch.testing.assert_close(P.T, torch.tensor(columns, dtype=torch.float64))
    chain = MarkovChain(P)
    p = WEIGHTS / 10
    assert float((P @ p - p).abs().max()) < 1e-12
    assert chain.is_reversible(p) and chain.is_ergodic
    values = sorted(chain.eigenvalues.real.tolist(), reverse=True)
    assert values == pytest.approx([1, 0.386235, 0.051735, -0.521303], abs=1e-6)
    off = P - torch.diag(P.diagonal())
    assert float((off.sum(0) * p).sum()) == pytest.approx(0.7)  # no proposal stays


def test_ring_draws() -> None:
    energy, method = ring()
    draws = sample(energy, "x", n=4000, method=method, generator=seeded())
    assert draws.kind == "asymptotic" and draws.accept is not None
    assert float(draws.accept) == pytest.approx(0.7, abs=0.005)
    counts, p = state_counts(energy, "x", draws["x"][:, 0])
    assert chi_square_p(counts, p) > 0.01


@pytest.mark.parametrize(("tau", "rate"), [(1.0, 0.7048), (2.4, 0.4423)])
def test_acceptance_on_a_normal(tau: float, rate: float) -> None:
    assert 2 / math.pi * math.atan(2 / tau) == pytest.approx(rate, abs=1e-4)
    kernel = Metropolis(scale=tau).kernel(Normal())
    start = {"x": torch.randn(2000, 1, generator=seeded(), dtype=torch.float64)}
    done = run_chains(kernel, start, 200, generator=seeded(1), keep=False)
    assert float(done.accept.mean()) == pytest.approx(rate, abs=0.003)


@pytest.mark.parametrize("d", [1, 8])
def test_adaptation_reaches_the_window(d: int) -> None:
    energy = Normal(torch.eye(d) * 400)  # standard deviation 0.05, scale starts at 1
    draws = sample(energy, "x", n=500, method=Metropolis(n_steps=400), generator=seeded())
    assert draws.accept is not None
    assert 0.2 < float(draws.accept) < 0.5
    assert float(draws["x"].std()) == pytest.approx(0.05, rel=0.1)


def test_adaptation_is_by_row() -> None:
    energy = Shifted().double()
    c = torch.tensor([[0.0], [50.0]]).double()
    draws = sample(energy, "x", {"c": c}, n=800, method=Metropolis(n_steps=300), generator=seeded())
    assert draws["x"].shape == (800, 2, 1) and draws.energy.shape == (800, 2)
    torch.testing.assert_close(draws["x"].mean(0), c, atol=0.15, rtol=0)


@pytest.mark.parametrize("energy", [Spins(), Word()], ids=["binary", "sequence"])
def test_single_site_targets(energy: Spins | Word) -> None:
    (name,) = energy.spaces
    P = kernel_matrix(Metropolis().kernel(energy))
    every = energy.spaces[name].enumerate()
    p = torch.softmax(-energy(**{name: every}).double(), 0)
    assert float((P.double() @ p - p).abs().max()) < 1e-6
    chain = MarkovChain(P)
    assert chain.is_reversible(p, tol=1e-6) and chain.is_irreducible
    draws = sample(energy, name, n=3000, method=Metropolis(n_steps=60), generator=seeded(2))
    counts, p = state_counts(energy, name, draws[name][:, 0])
    assert chi_square_p(counts, p) > 0.01


def test_temperature() -> None:
    energy = TableEnergy(-WEIGHTS.log())
    for T in (0.5, 2.0, math.inf):
        P = kernel_matrix(Metropolis().kernel(energy, T=T))
        p = torch.softmax(WEIGHTS.log() / T, 0)
        torch.testing.assert_close(MarkovChain(P).stationary(), p)
    with pytest.raises(ValueError, match="T=0 is the minimum"):
        Metropolis().kernel(energy, T=0.0)


def test_only_unknown_coordinates_move() -> None:
    A = torch.tensor([[2.0, -1.0], [-1.0, 2.0]]) / 3  # precision of [[2, 1], [1, 2]]
    x = torch.tensor([[1.0, 0.0]]).double()
    mask = torch.tensor([[False, True]])
    method = Metropolis(n_steps=100)
    draws = sample(Normal(A), {"x": mask}, {"x": x}, n=4000, method=method, generator=seeded())
    assert bool((draws["x"][..., 0] == 1).all())
    assert float(draws["x"][..., 1].mean()) == pytest.approx(0.5, abs=0.06)
    assert float(draws["x"][..., 1].var()) == pytest.approx(1.5, abs=0.12)

    bits = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    known = torch.tensor([[False, True, True, False]])
    draws = sample(
        Spins(),
        {"x": known},
        {"x": bits},
        n=3000,
        method=Metropolis(n_steps=40),
        generator=seeded(),
    )
    assert bool((draws["x"][:, 0, [0, 3]] == 1).all())
    states = torch.tensor([[1, a, b, 1] for a in (0, 1) for b in (0, 1)]).float()
    p = torch.softmax(-Spins()(x=states).double(), 0)
    counts = (draws["x"][:, 0, None] == states).all(-1).sum(0).double()
    assert chi_square_p(counts, p) > 0.01


def test_lengths_are_respected() -> None:
    lengths = torch.tensor([1])
    draws = sample(
        Word(),
        "y",
        {"lengths": lengths},
        n=3000,
        method=Metropolis(n_steps=40),
        generator=seeded(1),
    )
    p = torch.softmax(-0.4 * torch.arange(3).double(), 0)
    counts = torch.bincount(draws["y"][:, 0, 0], minlength=3).double()
    assert chi_square_p(counts, p) > 0.01


def test_simplex() -> None:
    alpha = torch.tensor([2.0, 3.0, 5.0])
    draws = sample(
        Dirichlet(alpha).double(), "x", n=4000, method=Metropolis(n_steps=150), generator=seeded()
    )
    torch.testing.assert_close(
        draws["x"].mean((0, 1)), (alpha / alpha.sum()).double(), atol=0.012, rtol=0
    )
    torch.testing.assert_close(draws["x"].sum(-1), torch.ones(4000, 1).double())


def test_box() -> None:
    energy = Normal(low=0.0)
    draws = sample(energy, "x", n=4000, method=Metropolis(n_steps=100), generator=seeded())
    assert bool((draws["x"] >= 0).all())
    assert float(draws["x"].mean()) == pytest.approx(math.sqrt(2 / math.pi), abs=0.03)


def test_restart_goes_on_and_same_seed_same_draws() -> None:
    energy, method = Normal(), Metropolis(n_steps=50)
    a, b = (sample(energy, "x", n=20, method=method, generator=seeded(3)) for _ in range(2))
    assert torch.equal(a["x"], b["x"])
    still = Metropolis(n_steps=0, adapt=False)
    again = sample(energy, "x", n=20, method=still, init=a.state, generator=seeded())
    assert torch.equal(again["x"], a["x"])
