"""Chain distributions against worked numbers, enumeration and each other."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.chains.chain import Backend, ChainDistribution, ChainFactors

UNARY = torch.tensor([[[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]]], dtype=torch.float64)
PAIR = torch.tensor([[0.0, 0.7], [0.3, 0.0]], dtype=torch.float64)
BACKENDS: tuple[Backend, ...] = ("reference", "fast")


def random_factors(
    seed: int, shared: bool, b: int = 4, n: int = 4, k: int = 3, lengths: bool = True
) -> ChainFactors:
    g = torch.Generator().manual_seed(seed)
    u = torch.randn(b, n, k, generator=g, dtype=torch.float64)
    shape = (k, k) if shared else (b, n - 1, k, k)
    w = torch.randn(shape, generator=g, dtype=torch.float64)
    steps = torch.tensor([n, 1, max(1, n - 1), 2])[:b] if lengths else None
    return ChainFactors(u, w, steps)


def every_sequence(factors: ChainFactors, row: int) -> tuple[Tensor, Tensor]:
    """All sequences of one row in lexicographic order, padded with 0, and their energies."""
    n, k = int(factors.steps[row]), factors.unary.shape[2]
    full = torch.tensor(list(itertools.product(range(k), repeat=n)))
    y = torch.zeros(len(full), factors.unary.shape[1], dtype=torch.int64)
    y[:, :n] = full
    e = torch.stack([hand_energy(factors, row, s) for s in full])
    return y, e


def hand_energy(factors: ChainFactors, row: int, y: Tensor) -> Tensor:
    e = sum(factors.unary[row, t, s] for t, s in enumerate(y))
    for t in range(len(y) - 1):
        w = factors.pairwise if factors.pairwise.ndim == 2 else factors.pairwise[row, t]
        e = e + w[y[t], y[t + 1]]
    return torch.as_tensor(e)


@pytest.mark.parametrize("backend", BACKENDS)
def test_worked_chain(backend: Backend) -> None:
    distribution = ChainDistribution(ChainFactors(UNARY, PAIR), backend=backend)
    assert distribution.mode.tolist() == [[0, 1, 1]]
    y, e = distribution.topk(2)
    torch.testing.assert_close(e[:, 0], torch.tensor([0.9, 1.2], dtype=torch.float64))
    torch.testing.assert_close(distribution.factors.energy(y), e)
    assert float(distribution.free_energy) == pytest.approx(-0.449719, abs=1e-6)
    p = distribution.marginals[0, :, 1].tolist()
    assert p == pytest.approx([0.335598, 0.574443, 0.695875], abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("T", [1.0, 0.4])
def test_equals_enumeration(backend: Backend, shared: bool, T: float) -> None:
    factors = random_factors(0, shared)
    distribution = ChainDistribution(factors, T, backend=backend)
    best, best_e = distribution.topk(3)
    for row in range(4):
        y, e = every_sequence(factors, row)
        torch.testing.assert_close(distribution.log_partition[row], torch.logsumexp(-e / T, 0))
        p = torch.softmax(-e / T, 0)
        hot = torch.nn.functional.one_hot(y, 3).double() * factors.inside[row, :, None]
        torch.testing.assert_close(distribution.marginals[row], torch.einsum("s,stk->tk", p, hot))
        pair = torch.einsum("s,sti,stj->tij", p, hot[:, :-1], hot[:, 1:])
        torch.testing.assert_close(distribution.pair_marginals[row], pair)
        torch.testing.assert_close(distribution.entropy()[row], -(p * p.log()).sum())
        assert distribution.mode[row].tolist() == y[e.argmin()].tolist()
        count = min(3, len(y))
        torch.testing.assert_close(best_e[:count, row], e.sort().values[:count])
        assert best[:count, row].tolist() == y[e.argsort(stable=True)[:count]].tolist()
        value = y[:, None].expand(-1, 4, -1)
        torch.testing.assert_close(distribution.log_prob(value)[:, row], p.log())


def test_topk_beyond_the_number_of_sequences_is_forbidden() -> None:
    distribution = ChainDistribution(ChainFactors(UNARY[:, :1], PAIR))
    _, e = distribution.topk(4)
    assert e[:, 0].tolist() == [0.0, 1.0, math.inf, math.inf]


@pytest.mark.parametrize("backend", BACKENDS)
def test_ties_go_to_the_lexicographically_lowest(backend: Backend) -> None:
    u = torch.zeros(1, 3, 2)
    w = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # 010 and 101 tie
    distribution = ChainDistribution(ChainFactors(u, w), backend=backend)
    assert distribution.mode.tolist() == [[0, 1, 0]]
    assert distribution.topk(2)[0][:, 0].tolist() == [[0, 1, 0], [1, 0, 1]]


@pytest.mark.parametrize("shared", [True, False])
def test_fast_gradient_is_minus_the_marginals(shared: bool) -> None:
    factors = random_factors(1, shared)
    weight = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    grads = []
    for backend in BACKENDS:
        u, w = factors.unary.clone().requires_grad_(), factors.pairwise.clone().requires_grad_()
        distribution = ChainDistribution(
            ChainFactors(u, w, factors.lengths), T=0.7, backend=backend
        )
        grads.append(torch.autograd.grad((weight * distribution.log_partition).sum(), (u, w)))
    for fast, slow in zip(grads[1], grads[0], strict=True):
        torch.testing.assert_close(fast, slow)
    mu = ChainDistribution(factors, T=0.7).marginals
    torch.testing.assert_close(grads[0][0], -weight[:, None, None] * mu / 0.7)


def test_second_derivative_of_the_reference() -> None:
    u = UNARY.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda a: ChainDistribution(ChainFactors(a, PAIR)).log_partition, u
    )
    assert torch.autograd.gradcheck(lambda a: ChainDistribution(ChainFactors(a, PAIR)).entropy(), u)


@pytest.mark.parametrize("backend", BACKENDS)
def test_wide_energies_and_forbidden_values(backend: Backend) -> None:
    u = torch.tensor([[[0.0, 900.0, math.inf], [2000.0, 0.0, 1.0], [0.0, 1.0, 2.0]]] * 2).double()
    u[1] = torch.tensor([0.0, 1.0, 2.0])
    w = torch.zeros(3, 3).double()
    w[0, 1] = w[0, 2] = math.inf  # from the cheap first state only the dear second one follows
    factors = ChainFactors(u, w)
    distribution = ChainDistribution(factors, backend=backend)
    for row in range(2):
        _, e = every_sequence(factors, row)
        torch.testing.assert_close(distribution.log_partition[row], torch.logsumexp(-e, 0))
        torch.testing.assert_close(
            distribution.mode[row], every_sequence(factors, row)[0][e.argmin()]
        )
    assert torch.isfinite(distribution.marginals).all()
    torch.testing.assert_close(distribution.marginals.sum(-1), torch.ones(2, 3).double())
    u2 = u.clone().requires_grad_()
    (g,) = torch.autograd.grad(
        ChainDistribution(ChainFactors(u2, w), backend=backend).log_partition.sum(), u2
    )
    torch.testing.assert_close(g, -distribution.marginals)


@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_follow_the_distribution(backend: Backend) -> None:
    factors = random_factors(2, shared=True)
    distribution = ChainDistribution(factors, backend=backend)
    draws = distribution.sample((20_000,), generator=torch.Generator().manual_seed(0))
    assert draws.shape == (20_000, 4, 4)
    hot = torch.nn.functional.one_hot(draws, 3).double() * factors.inside[..., None]
    torch.testing.assert_close(hot.mean(0), distribution.marginals, atol=0.015, rtol=0)
    pair = torch.einsum("nbti,nbtj->btij", hot[:, :, :-1], hot[:, :, 1:]) / len(draws)
    torch.testing.assert_close(pair, distribution.pair_marginals, atol=0.015, rtol=0)
    same = ChainDistribution(factors, backend="reference").sample(
        (20_000,), generator=torch.Generator().manual_seed(0)
    )
    assert torch.equal(draws, same)


def test_temperature_limits() -> None:
    cold, hot = (ChainDistribution(ChainFactors(UNARY, PAIR), T=T) for T in (0.0, math.inf))
    assert float(cold.free_energy) == pytest.approx(0.9)
    assert cold.marginals[0, :, 1].tolist() == [0.0, 1.0, 1.0]
    assert float(cold.entropy()) == 0.0
    assert cold.sample((2,)).tolist() == [[[0, 1, 1]]] * 2
    assert cold.log_prob(cold.mode).tolist() == [0.0]
    assert float(hot.log_partition) == pytest.approx(math.log(8))
    assert float(hot.log_prob(cold.mode)) == pytest.approx(-math.log(8))
    with pytest.raises(ValueError, match="not defined at T=0"):
        _ = cold.log_partition


def test_padding_changes_nothing() -> None:
    factors = random_factors(3, shared=False, lengths=False)
    u = torch.cat([factors.unary, torch.full((4, 3, 3), 5.0).double()], 1)
    w = torch.cat([factors.pairwise, torch.full((4, 3, 3, 3), -4.0).double()], 1)
    padded = ChainDistribution(ChainFactors(u, w, torch.full((4,), 4)))
    distribution = ChainDistribution(factors)
    torch.testing.assert_close(padded.log_partition, distribution.log_partition)
    torch.testing.assert_close(padded.marginals[:, :4], distribution.marginals)
    assert torch.equal(padded.mode[:, :4], distribution.mode)
    assert not padded.mode[:, 4:].any()


def test_messages() -> None:
    with pytest.raises(ShapeError, match=r"pairwise must be \(2, 2\) or \(1, 2, 2, 2\)"):
        ChainFactors(UNARY, torch.zeros(3, 3))
    with pytest.raises(ShapeError, match=r"lengths must lie in 1\.\.3, got 4\.\.4"):
        ChainFactors(UNARY, PAIR, torch.tensor([4]))
    with pytest.raises(FloatingPointError, match=r"unary holds nan at \(0, 1, 0\)"):
        bad = UNARY.clone()
        bad[0, 1, 0] = math.nan
        ChainDistribution(ChainFactors(bad, PAIR))
    with pytest.raises(ValueError, match="every sequence is forbidden"):
        _ = ChainDistribution(
            ChainFactors(torch.full((1, 2, 2), math.inf), torch.zeros(2, 2))
        ).log_partition


def test_sum_and_scale_of_factors() -> None:
    a, b = random_factors(4, True), random_factors(5, False)
    y = ChainDistribution(a).sample((5,), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close((a + b).energy(y), a.energy(y) + b.energy(y))
    torch.testing.assert_close((2.0 * a).energy(y), 2.0 * a.energy(y))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_fast_paths_are_those_of_the_reference_ties_and_walls_included(
    shared: bool, k: int
) -> None:
    g = torch.Generator().manual_seed(k)
    b, n = 6, 9
    u = torch.randint(0, 4, (b, n, k), generator=g).double()
    w = torch.randint(0, 3, (k, k) if shared else (b, n - 1, k, k), generator=g).double()
    if k > 2:
        u[torch.rand(u.shape, generator=g) < 0.2] = math.inf
        u[..., 0] = 0.0
    steps = torch.tensor([n, 1, 2, n - 1, 5, n])
    found = [ChainDistribution(ChainFactors(u, w, steps), backend=name) for name in BACKENDS]
    assert torch.equal(found[0].mode, found[1].mode)
    assert torch.equal(found[0].mode, found[0].topk(1)[0][0])


def test_long_chains_without_gradients_are_compiled() -> None:
    factors = random_factors(0, True, b=1, n=80, lengths=False)
    assert ChainDistribution(factors)._fast()
    factors.unary.requires_grad_()
    assert not ChainDistribution(factors)._fast()  # may be differentiated again
