"""Smaller steps when the objective stands still."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor

from groundstate.learn.callbacks.base import Run
from groundstate.learn.callbacks.early_stop import Criterion, Watched


class Plateau(Watched):
    r"""Multiply the learning rate by ``factor`` after ``patience`` epochs without improvement.

    .. math:: \eta \leftarrow \max(\gamma\,\eta, \eta_{\min})

    ``schedule="plateau"`` is this callback with its defaults.

    Parameters
    ----------
    factor : float in (0, 1), default=0.1
        :math:`\gamma`.
    patience : int, default=10
        Epochs that may pass without improvement; the next one lowers the rate.
    threshold : float, default=1e-4
        Smallest relative improvement that counts.
    cooldown : int, default=0
        Epochs after a change in which nothing is counted.
    minimum : float, default=0.0
        Lowest factor on the initial rate.
    validation, sample_weight, monitor, mode
        What is watched; see ``EarlyStopping``. The training objective by default.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.zeros(4, 1), "y": torch.tensor([0, 1, 0, 1])}  # nothing to learn
    >>> plateau = Plateau(factor=0.5, patience=1)
    >>> solver = Stochastic(max_epochs=5, tol=None)
    >>> history = fit(LinearEnergy(1, 2), data, SoftMin(), solver, callbacks=[plateau])
    >>> history.extra["factor"]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        factor: float = 0.1,
        patience: int = 10,
        *,
        threshold: float = 1e-4,
        cooldown: int = 0,
        minimum: float = 0.0,
        validation: Mapping[str, Tensor] | None = None,
        sample_weight: Tensor | None = None,
        monitor: Criterion = "val_loss",
        mode: Literal["min", "max"] = "min",
    ) -> None:
        super().__init__(validation, sample_weight=sample_weight, monitor=monitor, mode=mode)
        if not 0 < factor < 1:
            raise ValueError(f"factor must be between 0 and 1, got {factor}")
        if patience < 0:
            raise ValueError(f"patience must be at least 0 epochs, got {patience}")
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.cooldown, self.minimum = cooldown, minimum

    def on_begin(self, run: Run) -> None:
        self._run = run
        self._lowest, self._bad, self._cooling = math.inf, 0, 0

    def on_epoch(self, run: Run) -> None:
        value = self.badness(self.value(run))
        if value < self._lowest - self.threshold * abs(self._lowest) or math.isinf(self._lowest):
            self._lowest, self._bad = value, 0
        else:
            self._bad += 1
        if self._cooling > 0:
            self._cooling, self._bad = self._cooling - 1, 0
        if self._bad > self.patience:
            run.factor = max(run.factor * self.factor, self.minimum)
            self._bad, self._cooling = 0, self.cooldown
        run.history.extra.setdefault("factor", []).append(run.factor)

    def state(self) -> dict[str, Any]:
        return {"place": [self._lowest, self._bad, self._cooling], "factor": self._run.factor}

    def load(self, state: dict[str, Any]) -> None:
        self._lowest, self._bad, self._cooling = state["place"]
        self._run.factor = state["factor"]
