r"""Pseudo-labels: rows without a label learn from what the network says of them now."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.callbacks import Callback, Run


class PseudoLabel(Rule):
    r""":math:`L = L_{lab} + \alpha(t)\,L_{unl}`. Lowers e on the given and on the presently best labels,
    raises e on all labels ∝ their probability.

    Labelled rows have cross-entropy. A row with y = −1 has the cross-entropy of its own label of
    lowest energy, found anew in every step and without gradient. Both are means over their rows. The
    share grows from 0 at the epoch T1 to :math:`\alpha_f` at T2,

    .. math:: \alpha(t) = \alpha_f\,\min\Bigl(1, \max\Bigl(0, \frac{t - T_1}{T_2 - T_1}\Bigr)\Bigr) .

    Parameters
    ----------
    alpha_f : final share of the rows without a label; 0 is supervised learning
    T1, T2 : epochs between which the share grows

    Examples
    --------
    >>> PseudoLabel(3.0, 100, 600).alpha(350)
    1.5
    """

    is_objective = False  # what is lowered changes from epoch to epoch
    smooth = False

    def __init__(self, alpha_f: float = 3.0, T1: float = 100, T2: float = 600) -> None:
        super().__init__()
        if alpha_f < 0 or not 0 <= T1 <= T2:
            raise ValueError(
                f"needs alpha_f >= 0 and 0 <= T1 <= T2, got alpha_f={alpha_f}, T1={T1}, T2={T2}"
            )
        self.alpha_f, self.T1, self.T2 = float(alpha_f), float(T1), float(T2)
        self.t = 0

    def get_extra_state(self) -> dict[str, int]:
        return {"t": self.t}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.t = int(state["t"])

    def alpha(self, t: float) -> float:
        """The share of the rows without a label in epoch t."""
        if t <= self.T1 and t < self.T2:
            return 0.0
        if t >= self.T2:
            return self.alpha_f
        return self.alpha_f * (t - self.T1) / (self.T2 - self.T1)

    def _rows(self, energy: Energy, batch: Batch) -> tuple[Tensor, Tensor]:
        """Losses of the rows and which of them have a label."""
        table = energy.table("y", x=batch["x"])
        known = batch["y"] >= 0
        label = torch.where(known, batch["y"], table.detach().argmin(1))
        return cross_entropy(-table, label, reduction="none"), known

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        rows, known = self._rows(energy, batch)
        loss = torch.where(known, rows, self.alpha(self.t) * rows)
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), is_objective=False)

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        rows, known = self._rows(energy, batch)
        w = torch.ones_like(rows) if weight is None else weight
        tiny = torch.finfo(rows.dtype).tiny
        has, lacks = w * known, w * ~known
        loss = torch.dot(rows, has) / has.sum().clamp_min(tiny)
        share = self.alpha(self.t)
        if share > 0:
            loss = loss + share * torch.dot(rows, lacks) / lacks.sum().clamp_min(tiny)
        return loss, lambda: self(energy, batch, generator=generator)


class Clock(Callback):
    """Sets the epoch of a ``PseudoLabel``, counted on from that of an earlier run."""

    def __init__(self, rule: PseudoLabel) -> None:
        self.rule, self.before = rule, rule.t

    def on_begin(self, run: Run) -> None:
        self.rule.t = self.before + run.epoch

    on_epoch = on_begin
