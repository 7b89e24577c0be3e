"""Devices, keys, the weight line, sums over shards and populations: what everything runs on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundstate.compute.device import (
        as_tensor,
        one_device,
        resolve_device,
        resolve_dtype,
        threads,
    )
    from groundstate.compute.dropout import KeyedDropout, keyed_dropout
    from groundstate.compute.population.optimizers import (
        SGD,
        Adagrad,
        Adam,
        AdamW,
        RMSprop,
        StackedOptimizer,
    )
    from groundstate.compute.population.stack import Population, stack
    from groundstate.compute.population.training import Step, by_vmap
    from groundstate.compute.random import Key, RandomState, mix64, seeded, split
    from groundstate.compute.reduce import Reduce, current, run_local
    from groundstate.compute.weight_line.batches import Batches, stack_batches
    from groundstate.compute.weight_line.hashing import row_hash
    from groundstate.compute.weight_line.line import WeightLine

_HOMES = {
    "weight_line.batches": ("Batches", "stack_batches"),
    "device": ("as_tensor", "one_device", "resolve_device", "resolve_dtype", "threads"),
    "dropout": ("KeyedDropout", "keyed_dropout"),
    "weight_line.hashing": ("row_hash",),
    "weight_line.line": ("WeightLine",),
    "population.optimizers": ("SGD", "Adagrad", "Adam", "AdamW", "RMSprop", "StackedOptimizer"),
    "population.stack": ("Population", "stack"),
    "random": ("Key", "RandomState", "mix64", "seeded", "split"),
    "reduce": ("Reduce", "current", "run_local"),
    "population.training": ("Step", "by_vmap"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Batches",
    "Key",
    "KeyedDropout",
    "Population",
    "RMSprop",
    "RandomState",
    "Reduce",
    "StackedOptimizer",
    "Step",
    "WeightLine",
    "as_tensor",
    "by_vmap",
    "current",
    "keyed_dropout",
    "mix64",
    "one_device",
    "resolve_device",
    "resolve_dtype",
    "row_hash",
    "run_local",
    "seeded",
    "split",
    "stack",
    "stack_batches",
    "threads",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
