"""The table of solvers: its paths lead somewhere, and the most specific pair comes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from groundstate.energy import Energy, LinearEnergy, SquaredEnergy
from groundstate.learn import NLL, History, Naive, Problem, Rule, SoftMin, Solver, solver_for
from groundstate.learn import fit as learn
from groundstate.learn.fit import _ADDED, candidates
from groundstate.learn.solvers.table import GENERAL, SOLVERS, WRITTEN
from groundstate.registry import path_of, resolve

FIRST = ["Closed", "EM", "LBFGS", "Proximal", "Stochastic"]


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = list(_ADDED)
    yield
    _ADDED[:] = before


def names(energy: Energy, rule: Rule) -> list[str]:
    return [type(solver).__name__ for solver in candidates(energy, rule)]


def test_every_path_is_where_the_class_is_defined() -> None:
    """Rows are compared with ``path_of`` a class, so a path through another module would never match."""
    for row in (*SOLVERS, *WRITTEN):
        for path in (row.offer, row.energy, row.rule):
            assert isinstance(path, str) and path_of(resolve(path)) == path
        energy, rule = resolve(str(row.energy)), resolve(str(row.rule))
        assert issubclass(energy, Energy) and issubclass(rule, Rule)
    assert all(hasattr(resolve(row.offer), "takes") for row in WRITTEN)
    for path in (*(row.offer for row in SOLVERS), *GENERAL):
        assert isinstance(resolve(path)(), Solver), path
    assert len({*SOLVERS}) == len(SOLVERS)


def test_solvers_of_the_pair_come_first_in_the_order_of_the_table() -> None:
    assert names(LinearEnergy(2, 3), SoftMin()) == ["ProximalNewton", "Newton", *FIRST]
    assert names(LinearEnergy(2, 3), NLL()) == ["ProximalNewton", "Newton", *FIRST]
    assert names(SquaredEnergy(2, 1), Naive()) == ["LeastSquares", "CoordinateDescent", *FIRST]


@dataclass(frozen=True)
class Marked:
    def reason_against(self, problem: Problem) -> str | None:
        return None

    def run(self, problem: Problem) -> History:
        return History(solver="Marked")


class Narrow(LinearEnergy):
    """An energy of a user."""


def test_a_solver_can_be_added_and_the_nearer_class_wins() -> None:
    import torch

    data = {"x": torch.eye(2), "y": torch.tensor([0, 1])}
    solver_for(Narrow, SoftMin)(Marked)
    assert names(Narrow(2, 2), SoftMin())[:2] == ["Marked", "ProximalNewton"]
    assert names(LinearEnergy(2, 2), SoftMin())[0] == "ProximalNewton"
    assert learn(Narrow(2, 2), data, SoftMin()).solver == "Marked"
    solver_for(LinearEnergy, SoftMin)(Marked)
    assert names(LinearEnergy(2, 2), SoftMin())[:2] == ["Marked", "ProximalNewton"]


def test_a_process_of_two_classes_is_learned_with_the_kernel_it_has() -> None:
    import torch

    from groundstate.energy.kernels.gaussian_process.laplace import (
        LaplaceClassEnergy,
        LaplaceEnergy,
    )
    from groundstate.learn.solvers.gp.laplace import Laplace
    from groundstate.math.kernels import RBF

    x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]], dtype=torch.float64)
    data = {"x": x, "y": torch.tensor([0, 0, 1, 1])}
    energy = LaplaceEnergy(1, RBF(1.0)).double()
    assert learn(energy, data, SoftMin()).solver == "Laplace"
    assert energy.table("y", x=x).argmin(1).tolist() == [0, 0, 1, 1]
    problem = Problem(LaplaceClassEnergy(1, 2).double(), SoftMin(), data)
    assert Laplace().reason_against(problem) == (
        "the energy has no kernel of its own; pass Laplace(kernel)"
    )
