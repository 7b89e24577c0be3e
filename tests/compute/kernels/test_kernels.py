"""Loops that several compiled files share, and what is logged while they compile."""

from __future__ import annotations

import gc
import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundstate.compute.foreign.numba import event
from groundstate.compute.kernels import compile_numba
from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.compute.kernels.order_numba import select_by, sort_by


@outer
def _sorted(key: Any, index: Any, n: int) -> None:
    sort_by(key, index, n)


@outer
def _selected(key: Any, index: Any, lo: int, hi: int, k: int) -> None:
    select_by(key, index, lo, hi, k)


numbers = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)


@given(numbers)
def test_sort_by_orders_equal_keys_by_index(key: list[float]) -> None:
    index = np.arange(len(key))
    _sorted(np.array(key), index, len(key))
    np.testing.assert_array_equal(index, np.argsort(key, kind="stable"))


@given(numbers, st.data())
def test_select_by_parts_at_the_place(key: list[float], data: Any) -> None:
    values, n = np.array(key), len(key)
    k = data.draw(st.integers(0, n - 1))
    index = np.arange(n)
    _selected(values, index, 0, n, k)
    assert sorted(index) == list(range(n))
    assert values[index[k]] == np.sort(values)[k]
    assert values[index[:k]].max(initial=-np.inf) <= values[index[k]]
    assert values[index[k:]].min() == values[index[k]]


def test_a_constant_compiles_nothing_of_its_own() -> None:
    @inner
    def add(a: int, b: int) -> int:
        return a + b

    @compile_numba._njit
    def all_of(n: int) -> int:
        return add(1, 2) + add(n, 3) + add(4, n)

    assert all_of(10) == 30
    assert len(add.overloads) == 1


def test_compiling_for_a_while_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compile_numba, "SILENT", 0.0)

    def made(name: str) -> Any:
        def loop(n: int) -> int:
            return n + 1

        loop.__module__ = f"groundstate.some.{name}"
        return compile_numba._njit(loop)

    with caplog.at_level(logging.INFO, "groundstate"):
        made("one_numba")(1)
        made("two_numba")(1)
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "compiling the loops of groundstate.some"
    ]
    caplog.clear()
    compile_numba._njit(lambda n: n)(2)  # of somebody else
    assert not caplog.records


@pytest.mark.parametrize(
    ("module", "collects"), [("groundstate.some.one_numba", False), ("of.somebody.else", True)]
)
def test_no_garbage_is_collected_while_our_loops_compile(module: str, collects: bool) -> None:
    def loop(n: int) -> int:
        return n + 1

    loop.__module__ = module
    with event.install_listener("numba:compile", _Collecting()) as during:
        assert compile_numba._njit(loop)(1) == 2
    assert during.seen == [collects]
    assert gc.isenabled()


class _Collecting(event.Listener):
    """Whether garbage is collected while something compiles."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def on_start(self, event: Any) -> None:
        self.seen.append(gc.isenabled())

    def on_end(self, event: Any) -> None:
        pass
