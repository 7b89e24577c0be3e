"""Gibbs: exact kernels, blocks, two layers, masks."""

from __future__ import annotations

import pytest
import torch
from tests.infer.samplers import Normal, Spins, Word, bilinear, chi_square_p, seeded, state_counts

from groundstate.energy import LinearGaussianEnergy, TableEnergy
from groundstate.errors import Unsupported
from groundstate.infer import Gibbs, kernel_matrix, run_chains, sample
from groundstate.math.chains.markov import MarkovChain

JOINT = torch.tensor([[0.4, 0.1], [0.2, 0.3]], dtype=torch.float64)


def test_random_scan_spectrum() -> None:
    P = kernel_matrix(Gibbs(scan="random"), TableEnergy(-JOINT.log()))
    chain = MarkovChain(P)
    values = sorted(chain.eigenvalues.real.tolist(), reverse=True)
    assert values == pytest.approx([1, 0.704124, 0.295876, 0], abs=1e-6)
    assert chain.is_reversible(JOINT.flatten())
    torch.testing.assert_close(chain.stationary(), JOINT.flatten())


def test_systematic_scan_keeps_the_target_but_not_the_balance() -> None:
    P = kernel_matrix(Gibbs().kernel(TableEnergy(-JOINT.log())))
    p = JOINT.flatten()
    assert float((P @ p - p).abs().max()) < 1e-12
    assert not MarkovChain(P).is_reversible(p)


def test_two_layers_block_kernel() -> None:
    P = kernel_matrix(Gibbs(blocks=("z", "x")).kernel(bilinear()), on="x")
    values = sorted(MarkovChain(P).eigenvalues.real.tolist(), reverse=True)
    assert values == pytest.approx([1, 0.200096, 0.048580, 0.004654], abs=1e-6)
    states = bilinear().spaces["x"].enumerate().double()
    p = torch.softmax(-bilinear().marginal("z")(x=states).detach(), 0)
    assert float((P @ p - p).abs().max()) < 1e-7
    with pytest.raises(ValueError, match="put its block last"):
        kernel_matrix(Gibbs(blocks=("x", "z")).kernel(bilinear()), on="x")


def test_contrastive_steps_from_the_data() -> None:
    """E[x after k block steps from (1, 1)], exactly and by draws."""
    kernel = Gibbs(blocks=("z", "x")).kernel(bilinear())
    P = kernel_matrix(kernel, on="x")
    states = bilinear().spaces["x"].enumerate().double()
    expected = {1: (0.571875, 0.779480), 2: (0.554655, 0.766454), 5: (0.554310, 0.765031)}
    start = {"x": torch.ones(20_000, 2).double(), "z": torch.zeros(20_000, 2).double()}
    for k, mean in expected.items():
        distribution = torch.linalg.matrix_power(P, k)[:, 3]
        assert (distribution @ states).tolist() == pytest.approx(mean, abs=1e-6)
        drawn = kernel.run(start, k, seeded(k))["x"].mean(0)
        assert drawn.tolist() == pytest.approx(mean, abs=0.012)


def test_joint_block_is_an_exact_draw() -> None:
    P = kernel_matrix(Gibbs(blocks=(("x", "y"),)).kernel(TableEnergy(-JOINT.log())))
    torch.testing.assert_close(P, JOINT.flatten()[:, None].expand(4, 4))


@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_sites_of_bits_and_words(scan: str) -> None:
    method = Gibbs(scan=scan, n_steps=40)  # type: ignore[arg-type]
    for energy, name in ((Spins(), "x"), (Word(), "y")):
        P = kernel_matrix(method.kernel(energy))
        every = energy.spaces[name].enumerate()
        p = torch.softmax(-energy(**{name: every}).double(), 0)
        assert float((P.double() @ p - p).abs().max()) < 1e-6
        draws = sample(energy, name, n=3000, method=method, generator=seeded(1))
        counts, p = state_counts(energy, name, draws[name][:, 0])
        assert chi_square_p(counts, p) > 0.01
        assert draws.accept is not None and bool((draws.accept == 1).all())


def test_real_blocks() -> None:
    energy = LinearGaussianEnergy(2, 1, s=2.0).double()
    energy.W.data = torch.tensor([[1.0], [2.0]]).double()
    draws = sample(energy, ("x", "z"), n=6000, method=Gibbs(n_steps=150), generator=seeded())
    covariance = torch.cov(draws["x"][:, 0].T)
    exact = torch.eye(2).double() + 4.0 * (energy.W.detach() @ energy.W.detach().T)
    torch.testing.assert_close(covariance, exact, rtol=0.08, atol=0.2)
    assert float(draws["z"].std()) == pytest.approx(2.0, rel=0.05)


def test_known_bits_stay() -> None:
    bits = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    mask = torch.tensor([[False, True, True, False], [True, True, True, True]])
    draws = sample(
        Spins(), {"x": mask}, {"x": bits}, n=3000, method=Gibbs(n_steps=30), generator=seeded()
    )
    assert bool((draws["x"][:, 0, [0, 3]] == 1).all())
    counts, p = state_counts(Spins(), "x", draws["x"][:, 1])
    assert chi_square_p(counts, p) > 0.01


def test_two_layer_chains_reach_the_model() -> None:
    energy = bilinear()
    start = {"x": torch.zeros(500, 2).double(), "z": torch.zeros(500, 2).double()}
    done = run_chains(Gibbs().kernel(energy), start, 60, burn_in=10, generator=seeded())
    mean = done.values["x"].mean((0, 1))
    assert mean.tolist() == pytest.approx([0.554315, 0.765024], abs=0.01)
    again = run_chains(Gibbs().kernel(energy), start, 60, burn_in=10, generator=seeded())
    assert torch.equal(done.values["x"], again.values["x"])


def test_refusals() -> None:
    with pytest.raises(Unsupported, match="block 'x' has no conditional and is not finite"):
        sample(Normal(), "x", method=Gibbs())
    with pytest.raises(Unsupported, match="are not the free variables"):
        sample(bilinear(), ("x", "z"), method=Gibbs(blocks=("x",)))
    with pytest.raises(ValueError, match="scan must be"):
        Gibbs(scan="zigzag")  # type: ignore[arg-type]
