"""Devices, keys, the weight line, sums over shards and populations: what everything runs on."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.compute.device import as_tensor as as_tensor
    from groundstate.compute.device import one_device as one_device
    from groundstate.compute.device import resolve_device as resolve_device
    from groundstate.compute.device import resolve_dtype as resolve_dtype
    from groundstate.compute.device import same_convolutions as same_convolutions
    from groundstate.compute.device import threads as threads
    from groundstate.compute.dropout import KeyedDropout as KeyedDropout
    from groundstate.compute.dropout import keyed_dropout as keyed_dropout
    from groundstate.compute.population.optimizers import SGD as SGD
    from groundstate.compute.population.optimizers import Adagrad as Adagrad
    from groundstate.compute.population.optimizers import Adam as Adam
    from groundstate.compute.population.optimizers import AdamW as AdamW
    from groundstate.compute.population.optimizers import RMSprop as RMSprop
    from groundstate.compute.population.optimizers import StackedOptimizer as StackedOptimizer
    from groundstate.compute.population.stack import Population as Population
    from groundstate.compute.population.stack import stack as stack
    from groundstate.compute.population.training import Step as Step
    from groundstate.compute.population.training import by_vmap as by_vmap
    from groundstate.compute.random import Key as Key
    from groundstate.compute.random import RandomState as RandomState
    from groundstate.compute.random import mix64 as mix64
    from groundstate.compute.random import seeded as seeded
    from groundstate.compute.random import split as split
    from groundstate.compute.reduce import Reduce as Reduce
    from groundstate.compute.reduce import current as current
    from groundstate.compute.reduce import run_local as run_local
    from groundstate.compute.weight_line.batches import Batches as Batches
    from groundstate.compute.weight_line.batches import stack_batches as stack_batches
    from groundstate.compute.weight_line.hashing import row_hash as row_hash
    from groundstate.compute.weight_line.line import WeightLine as WeightLine

lazy(__name__)
