"""The state of a training run as plain values, and back: what an exact resume needs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from groundstate import __version__
from groundstate.compute.dropout import KeyedDropout
from groundstate.errors import StoreError
from groundstate.learn.train import guard as guard
from groundstate.learn.train.fsdp import full, part_like, spread_state

if TYPE_CHECKING:
    from groundstate.learn.train.run import Training

VERSION = 1
KEYS = (
    "version", "energy", "rule", "optimizer", "players", "precision", "generator", "masks", "random",
    "place", "objective", "rates", "values", "weights", "plateau", "mean", "averaged", "history",
    "extra", "stop", "callbacks",
)  # fmt: skip


def pack(t: Training) -> dict[str, Any]:
    """The state after a finished step; refuses one that is not finite."""
    run, history = t.progress, t.history
    t.readings.read()
    t.gather()
    whole = t.problem.energy
    bad = guard.bad_parameters([*whole.named_parameters(), *t.rule.named_parameters()])
    if bad:
        raise guard.theta_not_finite(bad, run.step, run.epoch, t.saved)
    return {
        "version": VERSION,
        "energy": whole.state_dict(),
        "rule": t.rule.state_dict(),
        "optimizer": pack_optimizer(t.optimizer),
        "players": {name: pack_optimizer(o) for name, o in t.turns.optimizers.items()},
        "precision": t.precision.state(),
        "generator": t.generator.get_state(),
        "masks": {name: layer.count.clone() for name, layer in keyed_layers(t.energy)},
        "random": pack_random(),
        "place": [run.epoch, run.step, run.total_steps],
        "objective": [run.objective, run.examples, t.readings.first],
        "rates": [run.factor, t.applied, run.lr],
        "values": list(t.readings.values),
        "weights": list(t.readings.weights),
        "plateau": [float(t.stop.best[0]), int(t.stop.stale[0])],
        "mean": [full(m) for m in t.mean],
        "averaged": t.averaged,
        "history": [history.objective, history.positive, history.contrast, history.seconds],
        "extra": history.extra,
        "stop": [history.stop, history.converged],
        "callbacks": run.callback_states(),
    }


def unpack(t: Training, state: dict[str, Any]) -> None:
    """Go on from a state."""
    run, history = t.progress, t.history
    check_keys(state, KEYS)
    load_module(t.problem.energy, state["energy"], "energy")
    if t.spread is not None:
        t.spread.scatter()
    t.rule.load_state_dict(state["rule"])
    unpack_optimizer(t.optimizer, state["optimizer"])
    t.update.forget()
    for name, optimizer in t.turns.optimizers.items():
        unpack_optimizer(optimizer, state["players"][name])
        t.turns.updates[name].forget()
    t.precision.load(state["precision"])
    t.generator.set_state(state["generator"].cpu())
    for name, layer in keyed_layers(t.energy):
        layer.count.copy_(state["masks"].get(name, layer.count))
    unpack_random(state["random"])
    run.epoch, run.step, run.total_steps = state["place"]
    run.objective, run.examples, t.readings.first = state["objective"]
    run.factor, t.applied, run.lr = state["rates"]
    t.readings.losses, t.readings.values = [], [float(v) for v in state["values"]]
    t.readings.weights = [float(w) for w in state["weights"]]
    t.stop.load(state["plateau"])
    t.mean = [part_like(m.to(t.device), p) for m, p in zip(state["mean"], t.theta, strict=False)]
    t.averaged = state["averaged"]
    history.objective, history.positive, history.contrast, history.seconds = map(
        list, state["history"]
    )
    history.extra = {k: list(v) for k, v in state["extra"].items()}
    history.stop, history.converged = state["stop"]
    history.n_iter = run.epoch
    run.load_callbacks(state["callbacks"])


def about(training: Training, threads: int) -> dict[str, Any]:
    """What the result depends on besides data and settings: seed, device, threads, versions."""
    key = training.problem.key
    return {
        "seed": f"{key.high:016x}{key.low:016x}",
        "device": str(training.device),
        "threads": threads,
        "precision": training.settings.precision,
        "processes": training.shards.world,
        "versions": {
            "groundstate": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
        },
    }


def measured(training: Training, terms: Callable[[], Any]) -> Tensor:
    """Mean energies of the targets and of what they are contrasted with.  # (2,)"""
    energy, rule = training.energy, training.rule
    was_training = energy.training
    if training.moving:  # looking must not change running statistics
        energy.eval()
    with torch.enable_grad() if rule.needs_gradient else torch.no_grad():
        last = terms()
        means = torch.stack([v.detach().mean() for v in (last.positive, last.contrast)])
    if training.moving:
        energy.train(was_training)
    return means


@contextmanager
def deterministic(wish: bool) -> Iterator[None]:
    """Only deterministic algorithms of torch inside the block, if wished."""
    if not wish:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def pack_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimiser's state with text keys and without its parameters."""
    state = optimizer.state_dict()
    return {
        "state": {
            str(k): {name: full(v) for name, v in kept.items()}
            for k, kept in state["state"].items()
        },
        "groups": [{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]],
    }


def unpack_optimizer(optimizer: torch.optim.Optimizer, packed: dict[str, Any]) -> None:
    """Give the state back to an optimiser of the same parameters."""
    now = optimizer.state_dict()["param_groups"]
    if len(now) != len(packed["groups"]):
        raise StoreError(
            f"the checkpoint's optimiser has {len(packed['groups'])} parameter groups, this one "
            f"{len(now)}; resume with the optimizer and penalty it was started with"
        )
    groups = [
        {**saved, "params": group["params"]}
        for saved, group in zip(packed["groups"], now, strict=True)
    ]
    states = {int(k): v for k, v in packed["state"].items()}
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    spread_state(optimizer)


def keyed_layers(net: torch.nn.Module) -> Iterator[tuple[str, KeyedDropout]]:
    """The layers of a network whose masks depend on a count of passes."""
    for name, layer in net.named_modules():
        if isinstance(layer, KeyedDropout):
            yield name, layer


def global_generators(device: torch.device) -> list[torch.Generator]:
    """The generators of torch that modules on a device draw from when they are given none."""
    found = [torch.default_generator]
    if device.type == "cuda":
        torch.cuda.init()
        index = torch.cuda.current_device() if device.index is None else device.index
        found.append(torch.cuda.default_generators[index])
    return found


def pack_random() -> dict[str, Any]:
    """The global generators of torch, NumPy and Python, which users' modules may draw from."""
    version, words, gauss = random.getstate()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002
        "python": [version, np.array(words, dtype=np.uint64), gauss],
    }


def unpack_random(state: dict[str, Any]) -> None:
    """Set the global generators to where they stood."""
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"]])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    version, words, gauss = state["python"]
    random.setstate((int(version), tuple(int(w) for w in words), gauss))


def check_keys(state: dict[str, Any], wanted: Iterable[str]) -> None:
    """Refuse a state of another layout, naming the keys that differ."""
    version = state.get("version")
    lacking, unknown = sorted(set(wanted) - set(state)), sorted(set(state) - set(wanted))
    if version != VERSION or lacking or unknown:
        raise StoreError(
            f"the checkpoint has layout {version}, expected {VERSION}; missing keys: "
            f"{', '.join(lacking) or 'none'}; unknown keys: {', '.join(unknown) or 'none'}; "
            "start anew with resume=False or another folder"
        )


def load_module(module: torch.nn.Module, state: dict[str, Any], what: str) -> None:
    """Load parameters and buffers, or say which names and shapes do not match."""
    own = module.state_dict()
    lacking, unknown = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    shapes = [
        f"{k} {tuple(state[k].shape)} instead of {tuple(own[k].shape)}"
        for k in own
        if k in state and hasattr(own[k], "shape") and state[k].shape != own[k].shape
    ]
    if lacking or unknown or shapes:
        raise StoreError(
            f"the checkpoint does not fit the {what}; missing: {', '.join(lacking) or 'none'}; "
            f"unknown: {', '.join(unknown) or 'none'}; other shapes: {', '.join(shapes) or 'none'}"
        )
    module.load_state_dict(state)
