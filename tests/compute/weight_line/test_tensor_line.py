"""The line of rows on a device is the line of the CPU: the same order, lengths and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate.compute.random import Key
from groundstate.compute.reduce import Reduce
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.compute.weight_line.tensor_line import TensorLine, tensor_hash
from groundstate.errors import DataError, ShapeError


def table(n: int, kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    X[n // 2 : n // 2 + 20] = X[:20]  # contents that come twice
    weights = {
        "ones": None, "whole": rng.integers(0, 3, n).astype(float), "real": rng.uniform(size=n),
    }  # fmt: skip
    return X, weights[kind]


@pytest.mark.parametrize("kind", ["ones", "whole", "real"])
@pytest.mark.parametrize("n", [50, 6000])
def test_same_line_and_same_draws(n: int, kind: str) -> None:
    X, w = table(n, kind)
    host = WeightLine(row_hash(X), w)
    line = TensorLine(tensor_hash(torch.from_numpy(X)), None if w is None else torch.from_numpy(w))
    np.testing.assert_array_equal(line.rows.numpy(), host.contents[0])
    np.testing.assert_array_equal(line.lengths.numpy(), host.contents[1])
    key = Key.of(3)
    np.testing.assert_array_equal(line.draw(key, 200).numpy(), host.draw(key, 200))
    own, theirs = line.draw(key, 10, distinct=True), host.draw(key, 10, distinct=True)
    np.testing.assert_array_equal(own.numpy(), theirs)
    extra = np.square(X).sum(1)
    drawn = line.weighted_draw(torch.from_numpy(extra), torch.from_numpy(key.uniform(50)))
    np.testing.assert_array_equal(drawn.numpy(), host.weighted_draw(key, extra, 50))


def test_hash_of_several_columns_and_kinds() -> None:
    X, y = torch.randn(7, 3), torch.arange(7)
    found = tensor_hash(X, None, y, seed=5).numpy().view(np.uint64)
    np.testing.assert_array_equal(found, row_hash(X.numpy(), None, y.numpy(), seed=5))


def test_gathered_alone_is_the_line_itself() -> None:
    X, w = (torch.from_numpy(a) for a in table(60, "real"))
    line, own = TensorLine.gathered(tensor_hash(X), w, Reduce())
    assert own == slice(0, 60)
    assert torch.equal(line.rows, TensorLine(tensor_hash(X), w).rows)


def test_what_has_no_line() -> None:
    hashes = tensor_hash(torch.randn(4, 2))
    with pytest.raises(DataError, match="sum to 0.0"):
        TensorLine(hashes, torch.zeros(4))
    with pytest.raises(DataError, match="5 distinct rows were asked for, but only 4"):
        TensorLine(hashes).draw(Key.of(0), 5, distinct=True)
    with pytest.raises(DataError, match="no columns"):
        tensor_hash(None)
    with pytest.raises(ShapeError, match=r"\[4, 3\] rows"):
        tensor_hash(torch.ones(4), torch.ones(3))
