"""Values survive the way to JSON and arrays and back, or are refused by name."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from groundstate.errors import StoreError
from groundstate.store import dumps, loads, register


def same(a: Any, b: Any) -> bool:
    """Equal in type, shape, dtype and every bit that matters; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and all(map(same, a.flat, b.flat))
    if isinstance(a, torch.Tensor):
        bits = a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        return bits and torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5))
    if isinstance(a, dict):
        keys = list(a) == list(b)
        return keys and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (float, np.floating)):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    return bool(a == b)


def round_trip(value: Any) -> Any:
    data = dumps(value)
    back = loads(data)
    assert dumps(back) == data, "storing what was loaded must give the same bytes"
    return back


rng = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "json": {"a": [1, 2.5, None, True, "ä\ud800\n"], "b": {}, "": []},
    "floats": [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1, 1e308],
    "big ints": [2**63, -(2**200), 10**300],
    "tuples and sets": ((1, (2,)), {3, 1, 2}, frozenset({"b", "a"}), ()),
    "any keys": {1: "a", (2, "x"): "b", None: "c", True + 1: "d", "$": "e"},
    "bytes": [b"", b"\x00\xff"],
    "slices": [slice(None), slice(1, 5, 2)],
    "numpy scalars": [np.float32(0.1), np.float64("nan"), np.int8(-3), np.uint64(2**64 - 1)],
    "more scalars": [
        np.bool_(True),
        np.str_("é"),
        np.datetime64("2026-01-02", "D"),
        np.complex64(1j),
    ],
    "plain arrays": [
        rng.normal(size=(3, 4)).astype(t) for t in ("f2", "f4", "f8", "i1", "i8", "u2", "?")
    ],
    "views": [np.arange(20.0)[::-3], np.arange(6).reshape(2, 3).T, np.broadcast_to(1.0, (2, 2))],
    "empty arrays": [np.zeros((0, 3)), np.zeros(0, "U3"), np.zeros((2, 0), "c16"), np.array(2.0)],
    "text arrays": [np.array(["a", "éß€"]), np.array([[b"x"], [b"yz\xff"]]), np.array("one")],
    "objects": np.array(["a", 3, None, 2.5, (1, 2), [3]], dtype=object),
    "object grid": np.array([["a", "b"], ["c", "d"]], dtype=object),
    "dates": [np.array(["2026-01-01", "NaT"], "M8[ns]"), np.array([3, 4], "m8[25s]")],
    "complex": np.array([[1 + 2j, np.nan]]),
    "dtypes": [np.dtype("f4"), np.dtype("U5"), np.float64, np.dtype("M8[us]")],
    "tensors": [torch.arange(3), torch.tensor([[True]]), torch.tensor(1.5), torch.zeros(0, 2)],
    "small floats": [torch.randn(3).to(t) for t in (torch.bfloat16, torch.float16)],
    "gradients": [torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))],
    "torch words": [torch.float32, torch.bfloat16, torch.device("cpu"), torch.device("cuda", 1)],
    "strided tensor": torch.arange(12.0).reshape(3, 4).T[::2],
}


@pytest.mark.parametrize("name", VALUES)
def test_round_trip(name: str) -> None:
    value = VALUES[name]
    back = round_trip(value)
    if name == "views":  # a view comes back as an array of its own
        assert all(np.array_equal(a, b) for a, b in zip(value, back))
    else:
        assert same(value, back)


def test_byte_order_and_memory_order() -> None:
    big = np.arange(3, dtype=">f8")
    back = round_trip(big)
    assert back.dtype == np.dtype("f8") and np.array_equal(big, back)
    fortran = np.asfortranarray(rng.normal(size=(4, 5)))
    assert round_trip(fortran).flags.f_contiguous


def test_loaded_arrays_are_independent_and_writable() -> None:
    w = np.ones(3)
    back = loads(dumps([w, w]))
    back[0][0] = 5
    assert back[1][0] == 1 and w[0] == 1


def test_equal_arrays_are_kept_once() -> None:
    w = np.random.default_rng(1).normal(size=10_000)
    assert len(dumps([w, w.copy(), torch.from_numpy(w)])) < len(dumps(w)) + 1000


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(json_like)
def test_any_nested_value(value: Any) -> None:
    assert same(value, round_trip(value))


@pytest.mark.parametrize("matrix", ["csr_matrix", "csc_matrix", "csr_array", "csc_array"])
def test_sparse(matrix: str) -> None:
    dense = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    value = getattr(scipy.sparse, matrix)(dense)
    back = round_trip(value)
    assert type(back) is type(value) and np.array_equal(back.toarray(), dense)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_numpy_generators_continue(bits: str) -> None:
    generator = np.random.Generator(getattr(np.random, bits)(3))
    generator.integers(5, size=7, dtype=np.int32)
    back = round_trip(generator)
    assert np.array_equal(back.normal(size=50), generator.normal(size=50))


def test_legacy_and_torch_generators_continue() -> None:
    legacy = np.random.RandomState(4)
    legacy.normal(size=3)  # leaves half a pair behind
    assert np.array_equal(round_trip(legacy).normal(size=9), legacy.normal(size=9))
    stream = torch.Generator().manual_seed(5)
    torch.randn(3, generator=stream)
    back = round_trip(stream)
    assert torch.equal(torch.randn(9, generator=back), torch.randn(9, generator=stream))
    states = {"torch": stream.get_state(), "numpy": np.random.default_rng(1).bit_generator.state}
    assert same(states, round_trip(states))


@register
@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    tags: tuple[str, ...] = ()
    norm: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", abs(self.x))


@register
class Colour(enum.Enum):
    RED = 1


@register
class Counter:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def to_state(self) -> dict[str, Any]:
        return {"counts": self.counts}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Counter:
        counter = cls()
        counter.counts = state["counts"]
        return counter


def test_registered_objects() -> None:
    assert round_trip({"p": Point(-2.0, ("a",)), "c": Colour.RED}) == {
        "p": Point(-2.0, ("a",)),
        "c": Colour.RED,
    }
    counter = Counter()
    counter.counts["a"] = 3
    assert round_trip(counter).counts == {"a": 3}


class Stranger:
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, Stranger()]}, r"cannot store value\.a\.1: a .*Stranger is not a type"),
        ({"f": len}, r"value\.f: a builtin_function_or_method"),
        (lambda: 0, "a function"),
        (np.zeros(2, "f4,i4"), "has no portable form"),
        (np.ma.masked_array([1.0], [True]), "MaskedArray"),
        (np.array([Stranger()], object), r"value\.0: a .*Stranger"),
        (torch.eye(2).to_sparse(), "only dense tensors"),
        (scipy.sparse.coo_matrix(np.eye(2)), r"\.tocsr\(\)"),
        ([10**5000], "cannot store a number"),
    ],
)
def test_other_types_are_refused_by_name(value: Any, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        dumps(value)


def test_a_value_that_contains_itself() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(StoreError, match="does it contain itself"):
        dumps(loop)


def test_registering_needs_a_way_to_store() -> None:
    with pytest.raises(StoreError, match="to_state"):
        register(Stranger)
