r"""Snapshots of θ while it is learned: constant-rate SGD and SGLD as samplers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.posterior.parameters import ThetaDraws


class Snapshots(Callback):
    r"""Keep every so many-th θ of a stochastic solver as a draw of the parameters.

    At a constant rate α and batches of one independent row, SGD on
    :math:`\tfrac12(\theta - a_i)^2` does not settle but wanders with variance
    :math:`\tfrac{\alpha}{2-\alpha}\operatorname{Var}(a)`; with ``SGLD`` the draws follow the Gibbs
    posterior. (Epochs visit every row once, which wanders less than independent rows.)

    Parameters
    ----------
    every : steps between snapshots; for solvers without steps, epochs
    keep : how many of the latest to keep; None keeps all
    start : steps (epochs) before the first

    Attributes
    ----------
    draws : the kept parameters as ``ThetaDraws``, ready for ``posterior_predictive``

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.randn(8, 2), "y": torch.arange(8) % 2}
    >>> snapshots = Snapshots(every=2, keep=3)
    >>> solver = Stochastic(batch_size=4, max_epochs=10, tol=None)
    >>> _ = fit(LinearEnergy(2, 2), data, SoftMin(), solver, callbacks=[snapshots], random_state=0)
    >>> len(snapshots.draws)
    3
    """

    def __init__(self, every: int = 1, keep: int | None = None, *, start: int = 0) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1 step, got {every}")
        if keep is not None and keep < 1:
            raise ValueError(f"keep must be at least 1 snapshot or None, got {keep}")
        self.every, self.keep, self.start = every, keep, start

    def on_begin(self, run: Run) -> None:
        self._energy: Energy = run.energy
        self._names = tuple(n for n, p in run.energy.named_parameters() if p.requires_grad)
        self._kept: list[Tensor] = []

    def on_step(self, run: Run) -> None:
        self._take(run.total_steps)

    def on_epoch(self, run: Run) -> None:
        if not run.total_steps:  # a solver without steps
            self._take(run.epoch)

    def _take(self, t: int) -> None:
        if t <= self.start or (t - self.start) % self.every:
            return
        parameters = dict(self._energy.named_parameters())
        self._kept.append(torch.cat([parameters[n].detach().reshape(-1) for n in self._names]))
        if self.keep is not None:
            del self._kept[: -self.keep]

    def state(self) -> dict[str, Any]:
        return {"kept": torch.stack(self._kept)} if self._kept else {}

    def load(self, state: dict[str, Any]) -> None:
        self._kept = list(state["kept"].to(self._energy.placement()[0]).unbind())

    @property
    def draws(self) -> ThetaDraws:
        if not getattr(self, "_kept", None):
            raise ValueError(
                f"no snapshot was taken: the run was shorter than start={self.start} plus "
                f"every={self.every} steps"
            )
        return ThetaDraws(self._energy, torch.stack(self._kept), self._names)
