"""Devices, keys, the weight line, sums over shards and populations: what everything runs on."""

from __future__ import annotations

from groundstate.compute.batches import Batches, stack_batches
from groundstate.compute.device import as_tensor, one_device, resolve_device, resolve_dtype, threads
from groundstate.compute.hashing import row_hash
from groundstate.compute.line import WeightLine
from groundstate.compute.optimizers import SGD, Adam, AdamW, StackedOptimizer
from groundstate.compute.population import Population, stack
from groundstate.compute.random import Key, RandomState, mix64, seeded, split
from groundstate.compute.reduce import Reduce, current, run_local
from groundstate.compute.training import Step, train

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Batches",
    "Key",
    "Population",
    "RandomState",
    "Reduce",
    "StackedOptimizer",
    "Step",
    "WeightLine",
    "as_tensor",
    "current",
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
    "train",
]
