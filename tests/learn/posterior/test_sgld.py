"""Stochastic gradient Langevin dynamics: the known moments, resume, temperature."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, Real, offers
from groundstate.learn import SGLD, Checkpoint, GaussianPrior, Naive, Snapshots, fit
from groundstate.learn.base import Problem

F64 = torch.float64
CHAINS = 4000


class Means(Energy):
    """½ Σ_c (x − θ_c)²: every coordinate of θ is a chain of its own."""

    def __init__(self, chains: int = CHAINS) -> None:
        super().__init__(x=Real(1))
        self.mean = nn.Parameter(torch.full((chains,), 2.25, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.mean).square().sum(-1)

    @offers.log_partition("x")  # one x for all chains: a constant stands in for the normaliser
    def volume(self, T: float = 1.0) -> Tensor:
        return torch.zeros(1, dtype=F64)


DATA = {"x": torch.tensor([[1.0], [2.0], [6.0]], dtype=F64)}


def run(solver: SGLD, start: int, every: int, chains: int = CHAINS, **options) -> Tensor:
    snapshots = Snapshots(every=every, start=start)
    energy = Means(chains)
    fit(
        energy, DATA, Naive(), solver, penalty=GaussianPrior(1.0, select="mean"),
        callbacks=[snapshots], random_state=0, **options,
    )  # fmt: skip
    return snapshots.draws.theta


def test_full_batch_moments():
    theta = run(SGLD(0.01, batch_size=None, max_epochs=700), start=250, every=50)
    assert theta.shape == (9, CHAINS)
    assert float(theta.mean()) == pytest.approx(2.25, abs=0.01)
    assert float(theta.var()) == pytest.approx(0.252525, rel=0.02)


def test_temperature_scales_the_variance():
    theta = run(SGLD(0.01, T=2.0, batch_size=None, max_epochs=500), start=250, every=50)
    assert float(theta.var()) == pytest.approx(2 * 0.252525, rel=0.03)
    still = run(SGLD(0.01, T=0.0, batch_size=None, max_epochs=500), start=499, every=1)
    torch.testing.assert_close(still, torch.full_like(still, 2.25))


def test_mini_batches_add_their_variance():
    full = run(SGLD(0.05, batch_size=None, max_epochs=300), start=100, every=10)
    rows = run(SGLD(0.05, batch_size=1, max_epochs=300), start=300, every=10)
    assert float(rows.mean()) == pytest.approx(2.25, abs=0.1)
    # all chains see the same rows, so the excess is in the mean over chains, step by step
    assert float(rows.mean(1).var()) > 10 * float(full.mean(1).var())


class _Rows:
    """200 batches of one row, every chain with an entry of its own from {1, 2, 6}."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self) -> int:
        return 200

    def __iter__(self):
        for _ in range(200):
            pick = torch.randint(3, (1, CHAINS), generator=self.generator)
            yield {"x": DATA["x"][pick, 0]}


def test_mini_batch_excess_is_the_known_one():
    class Wide(Means):
        def __init__(self) -> None:
            super().__init__()
            self.spaces = {"x": Real(CHAINS)}

    N, eps = 200, 1e-3
    snapshots = Snapshots(every=40, start=100)
    fit(
        Wide(), _Rows(), Naive(), SGLD(eps, max_epochs=2), callbacks=[snapshots],
        penalty=GaussianPrior(1.0, select="mean"), random_state=0,
    )  # fmt: skip
    shrink = 1 - eps * (N + 1) / 2
    spread = DATA["x"].var(correction=0)
    expected = (eps + (eps * N / 2) ** 2 * spread) / (1 - shrink**2)
    assert float(snapshots.draws.theta.var()) == pytest.approx(float(expected), rel=0.03)


def test_steps_may_shrink():
    solver = SGLD(0.05, batch_size=None, max_epochs=400, schedule=lambda done: 1 / (1 + 9 * done))
    theta = run(solver, start=300, every=20)
    assert float(theta.var()) == pytest.approx(0.25, rel=0.03)


def test_resumes_to_the_same_bits(tmp_path):
    penalty = GaussianPrior(1.0, select="mean")
    whole, first, second = Means(5), Means(5), Means(5)
    fit(
        whole, DATA, Naive(), SGLD(0.1, batch_size=1, max_epochs=6), penalty=penalty, random_state=1
    )
    fit(
        first, DATA, Naive(), SGLD(0.1, batch_size=1, max_epochs=3), penalty=penalty,
        callbacks=[Checkpoint(tmp_path)], random_state=1,
    )  # fmt: skip
    history = fit(
        second, DATA, Naive(), SGLD(0.1, batch_size=1, max_epochs=6), penalty=penalty,
        callbacks=[Checkpoint(tmp_path)], random_state=1,
    )  # fmt: skip
    assert torch.equal(whole.mean, second.mean)
    assert history.solver == "SGLD"


def test_settings_and_streams():
    with pytest.raises(ValueError, match="step_size must be positive"):
        SGLD(0.0)
    with pytest.raises(ValueError, match="temperature"):
        SGLD(T=-1.0)
    reason = SGLD().reason_against(Problem(Means(2), Naive(), iter([DATA])))
    assert reason is not None and "how many rows" in reason
