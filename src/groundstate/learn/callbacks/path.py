"""The way of the parameters, for pictures of the landscape."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.learn.callbacks.base import Callback, Run


class PathRecorder(Callback):
    r"""Record :math:`\theta_0, \theta_1, \ldots` and the loss at each, flattened.

    Parameters
    ----------
    every : int, default=1
        Steps between points (epochs, for solvers without steps).

    Attributes
    ----------
    path : Tensor (T, D), the first row is the start
    losses : Tensor (T - 1,), the objective taken before the step to each later point
    names : names of the parameters in the order in which they are flattened

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> way = PathRecorder()
    >>> solver = Stochastic(max_epochs=4, tol=None)
    >>> _ = fit(LinearEnergy(1, 2), data, SoftMin(), solver, callbacks=[way])
    >>> way.path.shape
    torch.Size([5, 4])
    """

    def __init__(self, every: int = 1) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1 step, got {every}")
        self.every = every

    def on_begin(self, run: Run) -> None:
        learned = {n: p for n, p in run.energy.named_parameters() if p.requires_grad}
        self.names, self._theta = tuple(learned), list(learned.values())
        self._points, self._losses = [self._flat()], list[Tensor]()

    def _flat(self) -> Tensor:
        return torch.cat([p.detach().reshape(-1) for p in self._theta])

    def on_step(self, run: Run) -> None:
        if run.total_steps % self.every == 0:
            self._points.append(self._flat())
            if run.loss is not None:
                self._losses.append(run.loss)

    def on_epoch(self, run: Run) -> None:
        if not run.total_steps and run.epoch % self.every == 0:
            self._points.append(self._flat())
            self._losses.append(torch.tensor(run.objective))

    @property
    def path(self) -> Tensor:
        return torch.stack(self._points)

    @property
    def losses(self) -> Tensor:
        return torch.stack(self._losses) if self._losses else torch.zeros(0)

    def state(self) -> dict[str, Any]:
        return {"path": self.path, "losses": self.losses}

    def load(self, state: dict[str, Any]) -> None:
        device = self._theta[0].device
        self._points = list(state["path"].to(device).unbind())
        self._losses = list(state["losses"].to(device).unbind())
