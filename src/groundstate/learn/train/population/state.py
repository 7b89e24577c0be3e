"""The state of a run of many members, in the layout of every checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from groundstate.errors import ShapeError
from groundstate.learn.train.state import KEYS, VERSION, check_keys

if TYPE_CHECKING:
    from groundstate.learn.train.population.run import PopulationRun


def pack(t: PopulationRun) -> dict[str, Any]:
    """The state after a finished step."""
    run = t.progress
    state: dict[str, Any] = dict.fromkeys(KEYS)
    histories = [
        [h.objective, h.seconds, h.n_iter, h.converged, h.stop, h.extra] for h in t.histories
    ]
    return state | {
        "version": VERSION,
        "energy": {"members": len(t.population), "good": t.good, **t.population.buffers},
        "optimizer": [tensor.clone() for tensor in (t.optimizer.active, *t.optimizer.state())],
        "place": [run.epoch, run.step, run.total_steps],
        "values": torch.stack(t.losses) if t.losses else None,
        "weights": torch.stack(t.parts) if t.parts else None,
        "plateau": t.stop.state(),
        "history": histories,
        "callbacks": run.callback_states(),
    }


def unpack(t: PopulationRun, state: dict[str, Any]) -> None:
    """Go on from a state."""
    if "version" not in state:
        state = _upgraded(state, t.feed.steps)
    check_keys(state, KEYS)
    energy = dict(state["energy"])
    members, size = energy.pop("members", 1), len(t.population)
    if members != size:
        raise ShapeError(
            f"the checkpoint holds {members} members, this population has {size}; resume with the "
            "grid that was begun, or use a new folder"
        )
    run, optimizer = t.progress, t.optimizer
    for tensor, saved in zip(
        (optimizer.active, *optimizer.state()), state["optimizer"], strict=True
    ):
        tensor.copy_(saved)
    optimizer.masked = not bool(optimizer.active.all())
    t.good.copy_(energy.pop("good"))
    for name, saved in energy.items():
        t.population.buffers[name].copy_(saved)
    device = t.population.flat.device
    t.losses = [] if state["values"] is None else list(state["values"].to(device))
    t.parts = [] if state["weights"] is None else list(state["weights"].to(device))
    run.epoch, run.step, run.total_steps = state["place"]
    for history, saved in zip(t.histories, state["history"], strict=True):
        objective, seconds, history.n_iter, history.converged, history.stop, extra = saved
        history.objective, history.seconds = list(objective), list(seconds)
        history.extra = {name: list(v) for name, v in extra.items()}
    t.stop.load(state["plateau"])
    run.load_callbacks(state["callbacks"])


def _upgraded(old: dict[str, Any], steps: int) -> dict[str, Any]:
    """A state as early files of populations hold it."""
    epoch, done = old["place"]
    watched = old["validation"]
    plateau = [*old["plateaus"], None][:3]
    if watched is not None:
        plateau = [watched["best"], watched["age"], watched]
    return dict.fromkeys(KEYS) | {
        "version": VERSION,
        "energy": {"members": old["members"], "good": old["good"], **old["buffers"]},
        "optimizer": [old["active"], *old["optimizer"]],
        "place": [epoch, done, epoch * steps + done],
        "values": old["losses"],
        "weights": old["parts"],
        "plateau": plateau,
        "history": old["histories"],
        "callbacks": {},
    }
