r"""Losses of the scores of all labels, such as regression onto the corners of the simplex."""

from __future__ import annotations

from typing import Any

import torch

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.heads import ROWS
from groundstate.learn.rules.common import pick

SCORE_LOSSES = tuple(name for name, row in ROWS.items() if row.kind == "labels")


class ScoreLoss(Rule):
    r""":math:`L = \ell(-e(x,\cdot), y)`. Lowers e on the target and raises e on the other labels, as
    far as the loss of the scores :math:`s = -e` asks for.

    Parameters
    ----------
    name : "brier" :math:`\|\mathrm{softmax}(s) - \mathrm{onehot}(y)\|^2`, "squared_onehot"
        :math:`\|s - \mathrm{onehot}(y)\|^2`, "hinge", "focal", "dice" or "smoothed_cross_entropy"
    options : settings of the loss

    Examples
    --------
    >>> from groundstate.energy.networks.network import NetworkClassEnergy
    >>> net = torch.nn.Linear(2, 3)
    >>> _ = torch.nn.init.zeros_(net.weight), torch.nn.init.zeros_(net.bias)
    >>> batch = {"x": torch.zeros(1, 2), "y": torch.tensor([1])}
    >>> ScoreLoss("squared_onehot")(NetworkClassEnergy(2, 3, net), batch).loss.tolist()
    [1.0]
    """

    over = "y"

    def __init__(self, name: str, **options: float) -> None:
        super().__init__()
        if name not in SCORE_LOSSES:
            raise ValueError(f"a loss of scores is one of {', '.join(SCORE_LOSSES)}, got {name!r}")
        unknown = set(options) - set(ROWS[name].options)
        if unknown:
            known = ", ".join(ROWS[name].options) or "none"
            raise ValueError(f"{name!r} has no setting {sorted(unknown)[0]!r}; it has {known}")
        self.name, self.options = name, {**ROWS[name].options, **options}
        self.smooth = name != "hinge"

    def extra_repr(self) -> str:
        return ", ".join([repr(self.name), *(f"{k}={v}" for k, v in self.options.items())])

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if "y" not in batch or energy.ability("table", "y") is None:
            return "a loss of scores needs labels y and an energy that lists all of them"
        if self.name == "squared_onehot" and getattr(energy, "single", False):
            return (
                "one output stands for both classes, but squares onto the corners fit one score for "
                "each; give the network 2 outputs"
            )
        return None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        given: dict[str, Any] = {name: v for name, v in batch.items() if name != "y"}
        e, y = energy.table("y", **given), batch["y"]  # (B, K)
        loss = ROWS[self.name].loss(-e, y.clamp_min(0), **self.options).masked_fill(y < 0, 0.0)

        def parts() -> tuple[torch.Tensor, torch.Tensor]:
            own = pick(e, y)
            return own, own - loss

        return Terms(loss, parts)
