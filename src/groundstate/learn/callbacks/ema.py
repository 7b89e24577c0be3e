"""A running mean of the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import foreach_copy_, foreach_lerp_
from groundstate.learn.callbacks.base import Callback, Run


class EMA(Callback):
    r"""Exponential moving average of θ, :math:`\bar\theta \leftarrow d_t\,\bar\theta +
    (1-d_t)\,\theta`, put in place of θ at the end.

    With ``warm`` the decay grows as :math:`d_t = \min(d, (1+t)/(10+t))`, so that the start is
    forgotten in a short run. Parameters of the rule that learn along with θ (an encoder) are averaged
    with it. Buffers (batch-norm statistics) are those of the last step.

    Parameters
    ----------
    decay : float in [0, 1), default=0.999
        :math:`d`.
    every : int, default=1
        Steps between updates.
    start : int, default=0
        Steps before the first.
    warm : bool, default=True
    keep : bool, default=True
        Leave the average in the energy at the end; False leaves θ.

    Attributes
    ----------
    values : list of Tensor, the averages, in the order of the learned parameters of energy and rule

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> energy, mean = LinearEnergy(1, 2), EMA(0.9)
    >>> _ = fit(energy, data, SoftMin(), Stochastic(max_epochs=9, tol=None), callbacks=[mean])
    >>> torch.equal(next(energy.parameters()), mean.values[0])
    True
    """

    def __init__(
        self,
        decay: float = 0.999,
        *,
        every: int = 1,
        start: int = 0,
        warm: bool = True,
        keep: bool = True,
    ) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), got {decay}")
        if every < 1:
            raise ValueError(f"every must be at least 1 step, got {every}")
        self.decay, self.every, self.start, self.warm, self.keep = decay, every, start, warm, keep

    def on_begin(self, run: Run) -> None:
        self._theta = _learned(run)
        self.values: list[Tensor] = [p.detach().clone() for p in self._theta]
        self.updates = 0

    @torch.no_grad()
    def on_step(self, run: Run) -> None:
        t = run.total_steps - self.start
        if t < 1 or t % self.every:
            return
        theta = [p.detach() for p in self._theta]
        if self.updates == 0 and self.start:
            foreach_copy_(self.values, theta)
        else:
            d = self.decay
            if self.warm:
                d = min(d, (1 + self.updates) / (10 + self.updates))
            foreach_lerp_(self.values, theta, 1 - d)
        self.updates += 1

    def on_end(self, run: Run) -> None:
        if self.keep and self.updates and not run.restored:
            self.swap()

    @torch.no_grad()
    def swap(self) -> None:
        """Copy the averages into the energy."""
        for p, mean in zip(self._theta, self.values, strict=True):
            p.copy_(mean)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside the block the energy has the averages, after it its own θ again."""
        kept = [p.detach().clone() for p in self._theta]
        self.swap()
        try:
            yield
        finally:
            with torch.no_grad():
                for p, own in zip(self._theta, kept, strict=True):
                    p.copy_(own)

    def state(self) -> dict[str, Any]:
        return {"values": [v.clone() for v in self.values], "updates": self.updates}

    def load(self, state: dict[str, Any]) -> None:
        own = state["values"]  # older runs averaged the energy alone
        more = [p.detach().clone() for p in self._theta[len(own) :]]
        self.values = [v.to(p.device) for v, p in zip([*own, *more], self._theta, strict=True)]
        self.updates = state["updates"]


def _learned(run: Run) -> list[Tensor]:
    """The parameters of the energy, and those of the rule that the same optimiser moves."""
    theta: list[Tensor] = [p for p in run.energy.parameters() if p.requires_grad]
    seen = {id(p) for p in theta}
    own = {id(p) for p in run.problem.rule.parameters()} - seen
    return theta + [p for p in run.learned if id(p) in own]
