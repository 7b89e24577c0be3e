"""Spaces of rows that differ in size, and energies over them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from groundstate.compute.rows import Graphs, Ragged, Rows, Texts, Tokens, mean_items
from groundstate.energy import (
    Energy,
    Finite,
    GraphSpace,
    ObjectSpace,
    RaggedOf,
    Real,
    TextSpace,
    TokenSequence,
    Trajectory,
)
from groundstate.energy.spaces import Space
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import minimise
from groundstate.learn import SoftMin, fit
from groundstate.learn.train.hold_out import hold_out
from groundstate.learn.train.stochastic import Stochastic
from groundstate.store import dumps, loads

SPACES: list[Space] = [
    RaggedOf(Real(2)),
    RaggedOf(Finite(3)),
    TokenSequence(7),
    TextSpace(),
    GraphSpace(2),
    GraphSpace(2, 3),
    ObjectSpace(3, 16, 12),
    ObjectSpace(2, 16, 12, masks=True),
    Trajectory(Real(2), Finite(3), Real()),
    Trajectory(Real(1)),
    Real(3, 4, 4),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_a_space_knows_its_rows(space: Space) -> None:
    v = space.draw(6, generator=torch.Generator().manual_seed(0))
    assert space.count(v) == 6 and space.fits(v) and bool(space.contains(v).all())
    index = torch.tensor([5, 0, 0])
    taken = space.take(v, index)
    assert space.fits(taken) and (space.hashes(taken) == space.hashes(v)[index.numpy()]).all()
    assert space.count(space.join([v, taken])) == 9
    assert "6" in space.describe(space.to_device(v, torch.device("cpu")))
    assert loads(dumps(space)) == space
    if not space.is_finite:
        with pytest.raises(Unsupported, match="cannot be enumerated"):
            space.enumerate()


def test_other_rows_do_not_fit() -> None:
    assert not GraphSpace(2).fits(torch.zeros(3, 2))
    assert not RaggedOf(Real(2)).fits(Ragged.of([[1.0]]))
    assert not Real(2).fits(Ragged.of([[1.0]]))
    assert not TokenSequence(3).fits(Texts.of(["a"]))
    bad = Graphs(
        Ragged.of([[[1.0]], [[1.0]]]),
        Ragged(torch.tensor([[0, 0], [0, 1]]), torch.tensor([0, 1, 2])),
    )
    assert GraphSpace(1).contains(bad).tolist() == [True, False]


class MeanClass(Energy):
    """A linear score of the mean item."""

    def __init__(self, d: int, k: int) -> None:
        super().__init__(x=RaggedOf(Real(d)), y=Finite(k))
        self.W = torch.nn.Parameter(torch.zeros(d, k))

    def forward(self, x: Ragged, y: Tensor) -> Tensor:
        scores = mean_items(x.values, x.offsets) @ self.W
        return -scores.gather(1, y[:, None])[:, 0]


def rows(n: int = 40) -> dict[str, Any]:
    g = torch.Generator().manual_seed(1)
    y = torch.arange(n) % 2
    items = [
        torch.randn(int(torch.randint(1, 5, (), generator=g)), 2, generator=g) + 2 * c - 1
        for c in y.tolist()
    ]
    return {"x": Ragged.of(items), "y": y}


def test_an_energy_takes_containers() -> None:
    data, energy = rows(), MeanClass(2, 2)
    assert energy(**data).shape == (40,)
    assert energy.table("y", x=data["x"]).shape == (40, 2)
    with pytest.raises(ShapeError, match="same leading batch size"):
        energy(x=data["x"], y=data["y"][:3])
    with pytest.raises(ShapeError, match="sequences of items of shape"):
        fit(energy, {"x": torch.zeros(40, 2), "y": data["y"]}, SoftMin())


@pytest.mark.parametrize("solver", [None, Stochastic(batch_size=7, max_epochs=30, tol=None)])
def test_learning_from_containers(solver: Any) -> None:
    data, energy = rows(), MeanClass(2, 2)
    fit(energy, data, SoftMin(), solver, random_state=0)
    found = minimise(energy, "y", {"x": data["x"]})["y"]
    assert float((found == data["y"]).float().mean()) > 0.9


def test_bad_numbers_name_their_row() -> None:
    data = rows(4)
    data["x"].values[-1] = torch.nan
    with pytest.raises(FloatingPointError, match="first in row 3"):
        fit(MeanClass(2, 2), data, SoftMin())


def test_a_part_of_any_rows_is_held_out() -> None:
    data = rows()
    parts = hold_out(data, 0.25, random_state=0)
    assert len(parts.train["x"]) == 30 and len(parts.held["x"]) == 10
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    mixed: dict[str, Rows] = {"x": data["x"][order], "y": data["y"][order]}
    again = hold_out(mixed, 0.25, random_state=0)
    assert set(again.held["x"].hashes()) == set(parts.held["x"].hashes())


def test_tokens_of_a_vocabulary() -> None:
    assert TokenSequence(2).contains(Tokens.of(Ragged.of([[0, 1], [2], []]))).tolist() == [
        True,
        False,
        True,
    ]
