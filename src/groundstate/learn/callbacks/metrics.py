"""Numbers that people read: accuracy, error, any function of the energy and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from groundstate.learn.callbacks.base import Callback, Run
from groundstate.learn.callbacks.held_out import evaluating

if TYPE_CHECKING:
    from groundstate.energy.base import Energy

Metric = Callable[["Energy", Mapping[str, Tensor]], Tensor]


class Metrics(Callback):
    r"""Evaluate functions of the energy and of rows after every epoch.

    All numbers of an epoch come to the host in one transfer. They appear in ``run.logs`` (for
    loggers and ``EarlyStopping(monitor=name)``) and in ``History.extra``.

    Parameters
    ----------
    functions : dict of functions ``(energy, rows) -> scalar tensor``
    data : mapping of tensors, optional
        The rows; None takes the training rows.
    prefix : str, default=""
        Put before the names, e.g. ``"val_"``.
    every : int, default=1
        Epochs between evaluations.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> def accuracy(energy, rows):
    ...     return (energy.table("y", x=rows["x"]).argmin(1) == rows["y"]).float().mean()
    >>> solver = Stochastic(max_epochs=3, tol=None)
    >>> watch = Metrics({"accuracy": accuracy})
    >>> fit(LinearEnergy(1, 2), data, SoftMin(), solver, callbacks=[watch]).extra["accuracy"]
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        functions: Mapping[str, Metric],
        data: Mapping[str, Tensor] | None = None,
        *,
        prefix: str = "",
        every: int = 1,
    ) -> None:
        if not functions:
            raise ValueError("Metrics needs at least one function, such as {'accuracy': f}")
        self.functions, self.data = dict(functions), data
        self.prefix, self.every = prefix, every

    def on_epoch(self, run: Run) -> None:
        if run.epoch % self.every:
            return
        if self.data is None and not run.problem.is_resident:
            raise ValueError("with a stream of batches, give Metrics its rows as data=")
        rows = run.problem.resident if self.data is None else self.data
        with evaluating(run.energy), torch.no_grad():
            values = [f(run.energy, rows) for f in self.functions.values()]
        device = run.energy.placement()[0]
        numbers = torch.stack(
            [torch.as_tensor(v, dtype=torch.float64, device=device).reshape(()) for v in values]
        ).tolist()
        for name, number in zip(self.functions, numbers, strict=True):
            run.logs[self.prefix + name] = number
            run.history.extra.setdefault(self.prefix + name, []).append(number)
