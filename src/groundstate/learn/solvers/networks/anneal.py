"""Regularisation that fades during a run."""

from __future__ import annotations

from typing import Any

from torch import nn

from groundstate.compute.dropout import KeyedDropout
from groundstate.learn.callbacks.base import Callback, Run
from groundstate.learn.solvers.networks.descent import Descent


class Anneal(Callback):
    r"""Multiply dropout and weight decay by a schedule :math:`s(t/T)` of the finished epochs.

    Strong at first, when a network finds its features, and gone at the end, when it settles.

    Parameters
    ----------
    schedule : of epochs; see ``groundstate.learn.train.schedules``
    descent : the optimiser whose decay fades
    """

    def __init__(self, schedule: Any, descent: Descent | None = None) -> None:
        self.schedule, self.descent = schedule, descent
        self.first: dict[nn.Module, int] = {}

    def on_begin(self, run: Run) -> None:
        layers = [m for m in run.energy.modules() if isinstance(m, KeyedDropout)]
        self.first = {layer: int(layer.cut) for layer in layers}

    def on_epoch(self, run: Run) -> None:
        self.set(self.schedule.factor(run.epoch, run.max_epochs))

    def set(self, factor: float) -> None:
        """Apply a factor to what there was at the start."""
        self.factor = factor
        for layer, cut in self.first.items():
            layer.cut.fill_(round(factor * cut))  # type: ignore[operator]
        if self.descent is not None:
            self.descent.fade(factor)

    def state(self) -> dict[str, Any]:
        return {"factor": getattr(self, "factor", 1.0)}

    def load(self, state: dict[str, Any]) -> None:
        self.set(float(state["factor"]))
