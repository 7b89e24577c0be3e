"""Settings every test shares; they must be in place before torch, numba or matplotlib load."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "groundstate",
    derandomize=True,  # the same examples everywhere: a red test is red for everybody
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("groundstate")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long experiments first: no worker is alone with one at the end."""
    items.sort(key=lambda item: "test_experiment" not in item.nodeid or _quick(item))


def _quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is None


_BEGUN: dict[int, Any] = {}  # where the generators of test files stood after import


def _generators(item: pytest.Item) -> list[np.random.Generator]:
    found = (getattr(getattr(item, "module", None), name, None) for name in ("rng", "RNG"))
    return [g for g in found if isinstance(g, np.random.Generator)]


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        for generator in _generators(item):
            _BEGUN.setdefault(id(generator), deepcopy(generator.bit_generator.state))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The generator of a file begins anew for every test: no test depends on those before it."""
    for generator in _generators(item):
        generator.bit_generator.state = _BEGUN[id(generator)]
