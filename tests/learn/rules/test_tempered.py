"""Chains at several temperatures that change places."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate import BernoulliRBM
from groundstate.energy import BilinearEnergy, RestrictedEnergy
from groundstate.learn import PersistentCD, Stochastic, fit
from groundstate.learn.rules.negatives.tempered import Tempered, exchange, ladder


def two_modes(energy_type: type = BilinearEnergy) -> torch.nn.Module:
    """Six bits that are all one or all zero, with a hill between that Gibbs sweeps do not pass."""
    energy = (
        BilinearEnergy(6, 2) if energy_type is BilinearEnergy else RestrictedEnergy((2,) * 6, 2)
    )
    with torch.no_grad():
        energy.W.fill_(6.0)
        energy.b.fill_(-6.0)
        energy.c.fill_(-18.0)
    return energy


def test_exchange_keeps_the_product_of_both_distributions() -> None:
    e = torch.tensor([0.0, 1.0, 2.5], dtype=torch.float64)
    T, n = (1.0, 2.0), 200_000
    g = torch.Generator().manual_seed(0)
    p = [(-e / t).softmax(0) for t in T]
    states = [{"v": torch.multinomial(q, n, True, generator=g)[:, None]} for q in p]
    after = exchange(states, [e[s["v"][:, 0]] for s in states], T, g)
    for q, s in zip(p, after, strict=True):
        seen = torch.bincount(s["v"][:, 0], minlength=3) / n
        torch.testing.assert_close(seen.double(), q, atol=5e-3, rtol=0)
    assert bool((after[0]["v"] != states[0]["v"]).any())


@pytest.mark.parametrize("kind", [BilinearEnergy, RestrictedEnergy])
def test_hot_chains_carry_cold_ones_over_the_hill(kind: type) -> None:
    share = []
    for temperatures in (None, ladder(8)):
        energy = two_modes(kind)
        rule = PersistentCD(100, 1, temperatures=temperatures, over="x")
        start = {"x": torch.zeros(100, 6), "z": torch.zeros(100, 2)}
        rule.source._keep(start)  # all chains begin in one mode
        solver = Stochastic(lr=1e-9, max_epochs=60, tol=None)
        fit(energy, {"x": torch.zeros(4, 6)}, rule, solver, random_state=0)
        share.append(float(rule.source.chains["x"].mean()))
    # both modes weigh the same: e(1, 1) = e(0, 0)
    assert share[0] < 0.1
    assert share[1] == pytest.approx(0.5, abs=0.15)


def test_a_machine_learns_with_tempering_as_by_exact_gradients() -> None:
    X = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]], 30, axis=0).astype(float)
    settings = {"learning_rate": 0.3, "n_iter": 150, "batch_size": 30, "random_state": 0}
    exact = BernoulliRBM(4, method="exact", **settings).fit(X)
    hot = BernoulliRBM(4, n_temperatures=4, **settings).fit(X)
    assert hot.rule_.source.temperatures == ladder(4)
    assert hot.score(X) == pytest.approx(exact.score(X), abs=0.03)
    with pytest.raises(ValueError, match="method='pcd'"):
        BernoulliRBM(2, n_temperatures=3, method="cd").fit(X)


def test_hot_chains_are_kept_and_ladders_are_checked(tmp_path: object) -> None:
    rule = PersistentCD(5, temperatures=ladder(3), over="x")
    energy = BilinearEnergy(3, 2)
    rule(energy, {"x": torch.ones(4, 3)}, generator=torch.Generator())
    assert rule.source.hot["x"].shape == (2, 5, 3) and rule.config()["temperatures"] == [
        1.0,
        1.5,
        3.0,
    ]
    again = PersistentCD(**rule.config())
    again.load_state_dict(rule.state_dict())
    assert torch.equal(again.source.hot["z"], rule.source.hot["z"])
    for wrong in ((1.0,), (2.0, 3.0), (1.0, 3.0, 2.0)):
        with pytest.raises(ValueError, match="rise from 1"):
            Tempered(wrong)
