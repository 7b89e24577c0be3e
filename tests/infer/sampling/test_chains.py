"""run_chains: what is kept, streaming moments, restarts, bad energies."""

from __future__ import annotations

import pytest
import torch
from tests.infer.samplers import Normal, seeded
from torch import Tensor

from groundstate.energy import Energy, Real, TableEnergy
from groundstate.errors import Unsupported
from groundstate.infer import Gibbs, Metropolis, kernel_matrix, run_chains
from groundstate.math.chains.diagnostics import autocorr


@pytest.mark.parametrize(("n", "burn", "thin"), [(10, 0, 1), (10, 3, 2), (100, 10, 7), (5, 9, 1)])
def test_kept_count(n: int, burn: int, thin: int) -> None:
    kernel = Metropolis().kernel(Normal())
    start = {"x": torch.zeros(3, 1).double()}
    done = run_chains(kernel, start, n, burn, thin, generator=seeded())
    kept = max(n - burn, 0) // thin
    assert done.n_kept == kept
    assert done.values["x"].shape == (kept, 3, 1) and done.energy.shape == (kept, 3)


def test_thinning_keeps_every_kth_state() -> None:
    kernel = Metropolis().kernel(Normal())
    start = {"x": torch.zeros(4, 1).double()}
    every = run_chains(kernel, start, 200, burn_in=20, generator=seeded())
    some = run_chains(kernel, start, 200, burn_in=20, thin=5, generator=seeded())
    assert torch.equal(some.values["x"], every.values["x"][4::5])
    lag = autocorr(every.values["x"])[1].mean(), autocorr(some.values["x"])[1].mean()
    assert float(lag[1]) < float(lag[0])


def test_streaming_moments_and_energies() -> None:
    kernel = Metropolis().kernel(Normal())
    start = {"x": torch.zeros(4, 1).double()}
    done = run_chains(kernel, start, 300, burn_in=50, generator=seeded())
    lean = run_chains(kernel, start, 300, burn_in=50, generator=seeded(), keep=False)
    x = done.values["x"]
    torch.testing.assert_close(lean.mean["x"], x.mean(0))
    torch.testing.assert_close(lean.variance["x"], x.var(0, unbiased=False))
    assert lean.values["x"].shape[0] == 0 and lean.n_kept == 250
    torch.testing.assert_close(done.energy, 0.5 * x.square().sum(-1))
    moved = (x[1:] != x[:-1]).double().mean()
    assert float(done.accept.mean()) == pytest.approx(float(moved), abs=0.05)


def test_state_continues_the_run() -> None:
    kernel = Metropolis().kernel(Normal())
    start = {"x": torch.zeros(2, 1).double()}
    g = seeded()
    first = run_chains(kernel, start, 64, generator=g)
    second = run_chains(kernel, first.state, 64, generator=g)
    whole = run_chains(kernel, start, 128, generator=seeded())
    joined = torch.cat([first.values["x"], second.values["x"]])
    assert torch.equal(joined, whole.values["x"])


def test_chains_do_not_mix() -> None:
    """Far-apart chains of a finite energy keep their own distributions."""
    joint = torch.tensor([[0.7, 0.3], [0.1, 0.9]]).double()
    energy = TableEnergy(-joint.log(), ("x", "y"))
    x = torch.tensor([0, 1]).repeat(500)
    kernel = Gibbs().kernel(energy, {"x": x})
    done = run_chains(kernel, {"y": torch.zeros(1000, dtype=torch.int64)}, 3, generator=seeded())
    y = done.values["y"][-1].double()
    assert float(y[x == 0].mean()) == pytest.approx(0.3, abs=0.06)
    assert float(y[x == 1].mean()) == pytest.approx(0.9, abs=0.06)


class Hole(Energy):
    """Not a number beyond 2."""

    def __init__(self) -> None:
        super().__init__(x=Real(1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x > 2, torch.nan, 0.5 * x.square()).sum(-1)


def test_nan_is_reported_with_step_and_chain() -> None:
    kernel = Metropolis(scale=3.0).kernel(Hole())
    with pytest.raises(FloatingPointError, match=r"Hole is nan in step \d+ of chain \d+"):
        run_chains(kernel, {"x": torch.zeros(50, 1)}, 20, generator=seeded())


def test_messages() -> None:
    kernel = Metropolis().kernel(Normal())
    with pytest.raises(ValueError, match="thin >= 1"):
        run_chains(kernel, {"x": torch.zeros(1, 1).double()}, 5, thin=0)
    with pytest.raises(ValueError, match="start values for 'x' are missing"):
        run_chains(kernel, {}, 5)
    with pytest.raises(Unsupported, match="kernel_matrix needs finite variables"):
        kernel_matrix(kernel)
    with pytest.raises(ValueError, match="needs an energy"):
        kernel_matrix(Metropolis())
