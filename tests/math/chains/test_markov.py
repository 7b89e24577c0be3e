"""Finite chains: stationary distributions, periods, reversibility, spectra."""

from __future__ import annotations

import pytest
import torch

from groundstate.math.chains.markov import MarkovChain

SWAP = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
CYCLE = 0.9 * torch.eye(3).roll(1, 0) + 0.1 * torch.eye(3).roll(-1, 0)


def test_swap_has_one_stationary_distribution_but_does_not_converge() -> None:
    chain = MarkovChain(SWAP)
    torch.testing.assert_close(chain.stationary(), torch.tensor([0.5, 0.5]).double())
    assert chain.period == 2 and chain.is_irreducible and not chain.is_ergodic
    path = chain.run(torch.tensor([1.0, 0.0]), 5)
    assert path.tolist() == [[1.0, 0.0], [0.0, 1.0]] * 3
    assert chain.spectral_gap == pytest.approx(0.0)


def test_three_cycle_is_not_reversible() -> None:
    chain = MarkovChain(CYCLE)
    torch.testing.assert_close(chain.stationary(), torch.full((3,), 1 / 3).double())
    assert not chain.is_reversible() and chain.is_ergodic and chain.period == 1
    assert float((chain.P @ chain.stationary() - chain.stationary()).abs().max()) < 1e-12


def test_pure_cycle_has_period_three() -> None:
    assert MarkovChain(torch.eye(3).roll(1, 0)).period == 3


def test_rows_flag_transposes() -> None:
    P = torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    torch.testing.assert_close(MarkovChain(P, rows=True).P, P.double().T, atol=1e-7, rtol=0)
    with pytest.raises(ValueError, match="pass rows=True"):
        MarkovChain(P)


def test_transient_states_and_several_classes() -> None:
    absorbing = MarkovChain(torch.tensor([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.5, 1.0]]))
    with pytest.raises(ValueError, match="2 closed classes"):
        absorbing.stationary()
    leak = MarkovChain(torch.tensor([[0.5, 0.0], [0.5, 1.0]]))
    torch.testing.assert_close(leak.stationary(), torch.tensor([0.0, 1.0]).double())
    assert leak.is_ergodic and not leak.is_irreducible


def test_convergence_at_the_rate_of_the_gap() -> None:
    P = torch.tensor([[0.9, 0.2], [0.1, 0.8]], dtype=torch.float64)
    chain = MarkovChain(P)
    assert chain.spectral_gap == pytest.approx(0.3)
    gaps = (chain.run(torch.tensor([1.0, 0.0]), 10) - chain.stationary()).abs().sum(1)
    torch.testing.assert_close(gaps[1:] / gaps[:-1], torch.full((10,), 0.7).double())
    assert chain.is_reversible()  # every chain with two states is


def test_paths_visit_states_as_often_as_the_stationary_distribution() -> None:
    chain = MarkovChain(torch.tensor([[0.5, 0.2], [0.5, 0.8]]))
    start = torch.zeros(500, dtype=torch.int64)
    path = chain.sample(start, 100, torch.Generator().manual_seed(0))
    assert path.shape == (101, 500)
    assert float(path[20:].double().mean()) == pytest.approx(float(chain.stationary()[1]), abs=0.01)
