"""Contract of mathematical functions: one array rule for all (MAT-conv-arrays).

NumPy in, NumPy out; torch in, torch out with a gradient; single precision stays; a batch is a loop; NaN
is refused with the name of the argument.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.math_rows.base import Row, numbers, tensors
from torch import Tensor

FILES = sorted((Path(__file__).parent / "math_rows").glob("*.py"))
ROWS: list[Row] = [
    row
    for file in FILES
    if file.stem != "base"
    for row in import_module(f"tests.contracts.math_rows.{file.stem}").ROWS
]
every = pytest.mark.parametrize("row", ROWS, ids=str)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


@every
def test_numpy_equals_torch(row: Row) -> None:
    args = row.draw(rng())
    plain = list(numbers(row.call(*args)))
    ours = list(numbers(row.call(*tensors(args))))
    assert plain and len(plain) == len(ours)
    assert not any(isinstance(a, Tensor) for a in plain)
    assert all(isinstance(b, Tensor) for b in ours if not isinstance(b, int | float))
    for a, b in zip(plain, ours, strict=True):
        assert array(a).dtype == array(b).dtype or not isinstance(a, np.ndarray)
        if row.exact:
            np.testing.assert_array_equal(a, array(b))
        else:
            np.testing.assert_allclose(a, array(b), rtol=1e-12, atol=1e-13)


@every
def test_lists_are_arrays(row: Row) -> None:
    args = row.draw(rng())
    for a, b in zip(
        numbers(row.call(*(np.asarray(a).tolist() for a in args))),
        numbers(row.call(*args)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@every
def test_arguments_are_left_alone(row: Row) -> None:
    args = row.draw(rng())
    before = [np.array(a, copy=True) for a in args]
    row.call(*args)
    row.call(*tensors(args))
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@every
def test_single_precision_stays(row: Row) -> None:
    args = row.draw(rng())
    small = tuple(np.asarray(a, np.float32) for a in args)
    for made in (row.call(*small), row.call(*tensors(small, torch.float32))):
        for found, exact in zip(numbers(made), numbers(row.call(*args)), strict=True):
            if not isinstance(found, np.ndarray | Tensor):
                continue
            kind = array(found).dtype
            assert kind.kind in "biu" or kind in (np.dtype("f4"), np.dtype("c8")), kind
            wide = np.abs(array(exact)).max(initial=0.0)
            np.testing.assert_allclose(
                array(found), array(exact), rtol=row.single, atol=row.single * float(wide)
            )


@pytest.mark.parametrize("row", [row for row in ROWS if row.gradient], ids=str)
def test_gradient(row: Row) -> None:
    free = [a.requires_grad_() for a in tensors((row.free or row.draw)(rng()))]

    def smooth(*raw: Tensor) -> tuple[Tensor, ...]:
        made = numbers(row.call(*row.valid(*raw)))
        return tuple(m for m in made if isinstance(m, Tensor) and m.requires_grad)

    assert smooth(*free), "no output has a gradient"
    assert torch.autograd.gradcheck(smooth, free, eps=1e-6, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("row", [row for row in ROWS if row.batched], ids=str)
def test_a_batch_is_a_loop(row: Row) -> None:
    singles = [row.draw(rng(seed)) for seed in (0, 1, 2)]
    batch = tuple(np.stack(parts) for parts in zip(*singles, strict=True))
    together = list(numbers(row.call(*batch)))
    for i, args in enumerate(singles):
        alone = list(numbers(row.call(*args)))
        for whole, part in zip(together, alone, strict=True):
            np.testing.assert_allclose(array(whole)[i], part, rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_numbers_name_the_argument(row: Row, bad: float) -> None:
    assert len(row.names) == len(row.draw(rng()))
    for i, name in enumerate(row.names):
        args = [np.array(a, dtype=float, copy=True) for a in row.draw(rng())]
        args[i].flat[0] = bad
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            row.call(*args)
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            row.call(*tensors(tuple(args)))
