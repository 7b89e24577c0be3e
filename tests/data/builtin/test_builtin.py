"""Built-in tables: there, described, seeded, and what they claim to be."""

from __future__ import annotations

import sys
from subprocess import run

import numpy as np
import pytest

from groundstate.data import available, load
from groundstate.errors import DataError

GENERATED = [
    name
    for name in available()
    if name not in ("iris", "wine", "breast_cancer", "digits", "diabetes", "linnerud")
]


@pytest.mark.parametrize("name", list(available()))
def test_every_table_loads_with_a_target(name: str) -> None:
    table = load(name)
    assert table.description == available()[name]
    assert table.name == name
    assert table.target in table.columns
    assert table.task in ("classification", "regression")
    assert np.isfinite(table.matrix()).all()


@pytest.mark.parametrize("name", GENERATED)
def test_generated_tables_follow_n_and_the_seed(name: str) -> None:
    one, same, other = (load(name, n=40, random_state=seed) for seed in (1, 1, 2))
    assert one.n_rows == 40
    assert one.equals(same)
    assert not one.frame.equals(other.frame)


def test_shapes_and_tasks() -> None:
    shapes = {
        n: (load(n).n_rows, load(n).n_columns - 1, load(n).task)
        for n in ("iris", "digits", "diabetes")
    }
    assert shapes == {
        "iris": (150, 4, "classification"),
        "digits": (1797, 64, "classification"),
        "diabetes": (442, 10, "regression"),
    }
    assert load("linnerud").task == "regression"
    assert load("iris").schema["target"].categories == ("setosa", "versicolor", "virginica")


@pytest.mark.parametrize("side", [2, 3, 4])
def test_bars_and_stripes_are_all_different(side: int) -> None:
    count = 2 * (2**side - 1)
    table = load("bars_and_stripes", n=count, side=side)
    pictures = table.matrix().reshape(count, side, side)
    assert len(np.unique(pictures.reshape(count, -1), axis=0)) == count
    bars, stripes = pictures[table.y == 0], pictures[table.y == 1]
    assert (bars == bars[:, :1, :]).all()
    assert (stripes == stripes[:, :, :1]).all()


def test_geometry_of_the_generators() -> None:
    ring = load("rings", n=8000, noise=0.05)
    radius = np.hypot(*ring.matrix().T)
    assert abs(radius.mean() - 2) < 0.01
    assert len(np.unique(ring.y)) == 8
    board = load("checkerboard", n=500)
    cell = np.floor(board.matrix() + 2).astype(int).sum(axis=1) % 2
    assert np.array_equal(cell, board.y)
    clouds = load("two_gaussians", n=20_000, noise=1.0)
    gap = clouds.matrix()[clouds.y == 1].mean(axis=0) - clouds.matrix()[clouds.y == 0].mean(axis=0)
    np.testing.assert_allclose(gap, [2, 0], atol=0.05)
    signs = np.sign(load("xor", noise=0.01).matrix())
    assert np.array_equal(signs[:, 0] != signs[:, 1], load("xor", noise=0.01).y == 1)
    curve = load("sine", noise=0.0)
    np.testing.assert_allclose(curve.y, np.sin(2 * np.pi * curve.matrix()[:, 0]), atol=1e-12)


def test_prefixes_of_scikit_learn_are_understood() -> None:
    assert load("make_moons", n=10).equals(load("moons", n=10))
    assert load("load_iris") is load("iris")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("iriss", {}, "no built-in table 'iriss' .did you mean 'iris'..; there are 'iris'"),
        (3, {}, "no built-in table 3"),
        ("iris", {"n": 10}, "'iris' is a fixed table"),
        ("moons", {"n": 0}, "n must be a positive whole number"),
        ("moons", {"noise": -1}, "noise must be a number of at least 0"),
        ("moons", {"noise": float("nan")}, "noise must be a number"),
        ("hastie", {"noise": 1}, "has no noise level"),
        ("moons", {"wings": 2}, "cannot generate 'moons'"),
    ],
)
def test_bad_requests(name: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(name, **options)  # type: ignore[arg-type]


def test_the_room_does_not_import_scikit_learn_or_torch() -> None:
    code = "import groundstate.data, sys; assert not {'torch', 'sklearn'} & set(sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0
