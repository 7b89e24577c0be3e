"""The written-out objective of a network is the rule's, and L-BFGS ends where it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate.energy.base import Energy
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkClassEnergy, NetworkEnergy
from groundstate.learn import L1, L2, LBFGS, NLL, Naive, SoftMin
from groundstate.learn.base import Batch, Problem, Rule
from groundstate.learn.solvers import lbfgs_dense as module
from groundstate.learn.solvers.lbfgs_dense import NetworkRows
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.base import DistributionHead

D = 4


def problem(head: str = "softmax", weighted: bool = True, penalty: Any = None) -> Problem:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(600, D, generator=generator, dtype=torch.float64)
    f = torch.sin(x @ torch.randn(D, 3, generator=generator, dtype=torch.float64))
    net = MLP(D, (8, 5), 1 if head == "single" else 3, "tanh", generator=generator)
    energy: Energy
    rule: Rule = NLL(over="y")
    data: Batch
    if head == "softmax":
        energy, rule, data = NetworkClassEnergy(D, 3, net), SoftMin(), {"x": x, "y": f.argmax(1)}
    elif head == "single":
        energy, data = NetworkClassEnergy(D, 2, net), {"x": x, "y": (f[:, 0] > 0).long()}
    elif head == "bernoulli":
        energy = NetworkEnergy(D, DistributionHead("bernoulli", 3), net)
        data = {"x": x, "y": (f > 0).double()}
    else:
        energy, rule = NetworkEnergy(D, LocationHead("squared_error", 3), net), Naive(over="y")
        data = {"x": x, "y": f}
    weight = torch.rand(600, generator=generator, dtype=torch.float64) if weighted else None
    return Problem(energy.double().eval(), rule, data, weight, penalty)


@pytest.mark.parametrize("head", ["softmax", "single", "bernoulli", "squared"])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient(head: str, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(head, weighted, L2(2.0))
    value, gradient = given.value_and_gradient(list(given.energy.parameters()))
    for cells in (2**22, 1):  # all rows at once, and in pieces of 256
        monkeypatch.setattr(module, "_CELLS", cells)
        assert NetworkRows.takes(given)
        ours = NetworkRows(given)
        assert len(ours.parts) == (1 if cells > 1 else 3)
        found, slope = ours.value_and_gradient(ours.start())
        assert found == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(slope, gradient.numpy(), rtol=1e-11, atol=1e-14)


def test_the_run_ends_where_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = LBFGS(max_iter=2000, tol=1e-6)
    ends = []
    for written in (True, False):
        if not written:
            monkeypatch.setattr(NetworkRows, "takes", staticmethod(lambda problem: False))
        given = problem(penalty=L2(30.0))
        history = solver.run(given)
        assert history.converged
        ends.append(given.value_and_gradient([])[0])
        assert history.objective[-1] == pytest.approx(ends[-1], rel=1e-12)
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


def test_what_is_left_to_autograd() -> None:
    assert NetworkRows.takes(problem(penalty=L2(1.0)))
    assert not NetworkRows.takes(problem(penalty=L1(1.0)))
    learning = problem()
    learning.energy.train()
    assert not NetworkRows.takes(learning)
    narrow = problem()
    narrow.energy.float()
    assert not NetworkRows.takes(narrow)
    heard = problem()
    net: Any = heard.energy.net
    net.register_forward_hook(lambda *_: None)
    assert not NetworkRows.takes(heard)
