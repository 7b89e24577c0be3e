"""Claims compare as their words say, results draw the same bytes, lists and errors help."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path

import pytest
import torch

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy
from groundstate.errors import DataError, Unsupported
from groundstate.experiments import Claim, Result, get
from groundstate.experiments.tools import Watch, accuracy, blobs, plane
from groundstate.learn import SoftMin, Stochastic, fit
from groundstate.registry import experiments

CASES = [
    (Claim.close("", 1.0, 1.1, tol=0.1001), True, "1.1 ± 0.1001"),
    (Claim.close("", 1.0, 1.2, tol=0.1), False, "1.2 ± 0.1"),
    (Claim.between("", 0.5, 0.5, 1.0), True, "0.5 to 1"),
    (Claim.between("", 1.1, 0.5, 1.0), False, "0.5 to 1"),
    (Claim.at_most("", 5.0, 5.0), True, "at most 5"),
    (Claim.at_least("", 4.9, 5.0), False, "at least 5"),
    (Claim.below("", 5.0, 5.0), False, "below 5"),
    (Claim.above("", 5.1, 5.0), True, "above 5"),
    (Claim.equal("", [1, 2], [1, 2]), True, "[1, 2]"),
    (Claim.equal("", True, False), False, "False"),
]


@pytest.mark.parametrize(("claim", "holds", "expected"), CASES)
def test_claims(claim: Claim, holds: bool, expected: str) -> None:
    assert claim.holds is holds and claim.expected == expected


@pytest.mark.parametrize("make", ["close", "at_most", "at_least", "below", "above", "between"])
def test_nan_never_holds(make: str) -> None:
    arguments = {"close": (1.0,), "between": (0.0, 1.0)}.get(make, (1.0,))
    extra = {"tol": 1.0} if make == "close" else {}
    assert getattr(Claim, make)("nothing", math.nan, *arguments, **extra).holds is False


def line(figure) -> None:
    figure.subplots().plot([0, 1], [0, 1], label="a")


def test_verdict_needs_every_claim() -> None:
    good, bad = Claim.above("a", 1, 0), Claim.above("b", -1, 0)
    assert Result([good, good], {}, line).verdict is True
    assert Result([good, bad], {}, line).verdict is False
    with pytest.raises(DataError, match="an experiment checks at least one"):
        Result([], {}, line)


def test_pictures(tmp_path: Path) -> None:
    result = Result([Claim.above("a", 1, 0)], {}, line)
    buffers = [BytesIO(), BytesIO()]
    for out in buffers:
        result.picture(out)
    assert buffers[0].getvalue() == buffers[1].getvalue()
    assert buffers[0].getvalue().lstrip().startswith(b"<?xml")
    result.picture(tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(DataError, match="'gif'; use svg, png or pdf"):
        result.picture(tmp_path / "a.gif")


def test_lists_and_errors() -> None:
    assert all(row.theme and row.title for row in experiments)
    with pytest.raises(Unsupported, match="did you mean 'ENE-X-collapse'"):
        get("ENE-X-colapse")
    assert repr(get("ENE-X-collapse")).startswith("<experiment ENE-X-collapse: Lowering")


def test_tools() -> None:
    x, y = blobs(Key.of(1), [[-4.0, 0.0], [4.0, 0.0]], 0.5, 100)
    assert torch.equal(x, blobs(Key.of(1), [[-4.0, 0.0], [4.0, 0.0]], 0.5, 100)[0])
    assert y.bincount().tolist() == [50, 50]
    assert abs(float(x[y == 1, 0].mean()) - 4) < 0.3
    energy = LinearEnergy(2, 2).double()
    watch = Watch(lambda e: e.W.norm(), every=2)
    solver = Stochastic(lr=0.1, max_epochs=4, tol=None)
    fit(energy, {"x": x, "y": y}, SoftMin(), solver, callbacks=[watch], random_state=0)
    assert watch.seen.shape == (3,) and float(watch.seen[0]) == 0.0
    assert bool((watch.seen.diff() > 0).all())
    assert accuracy(energy, x, y) == 1.0
    a, b, points = plane(x, n=5)
    assert points.shape == (25, 2) and points[1, 0] == a[1] and points[5, 1] == b[1]
