r"""The loss of every member of a network instead of the loss of their mean."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.registry import rules


@rules.register(
    formula=r"L = \tfrac1M\sum_m\ell(f_m(x), y)",
    make=lambda energy: MemberLoss(),
)
class MemberLoss(Rule):
    r""":math:`L = \tfrac1M\sum_m\ell(f_m(x), y)`. Lowers e of every member on the target and raises e on
    its other outcomes, each member by itself.

    By Jensen's inequality :math:`L \ge \ell(\bar f(x), y)`, the loss of the answer, in which the
    members' probabilities or values are averaged; what lies between is their spread. Lowering the
    loss of the mean instead would let members lean on each other.

    Parameters
    ----------
    label_smoothing : ε of labels: the target is :math:`1 - \varepsilon` of the right class and ε spread
        over all

    Examples
    --------
    >>> from groundstate.energy.networks.network import NetworkClassEnergy
    >>> from groundstate.nn.tabular import TabularNet
    >>> e = NetworkClassEnergy(2, 3, TabularNet(2, (4,), 3, members=5, mean="probabilities"))
    >>> batch = {"x": torch.zeros(6, 2), "y": torch.zeros(6, dtype=torch.int64)}
    >>> bool((MemberLoss()(e, batch).loss >= e(**batch)).all())
    True
    """

    over = "y"

    def __init__(self, label_smoothing: float = 0.0) -> None:
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in [0, 1), got {label_smoothing}")
        self.label_smoothing = float(label_smoothing)

    def extra_repr(self) -> str:
        return f"label_smoothing={self.label_smoothing}"

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if "y" not in batch or not hasattr(getattr(energy, "net", None), "each"):
            return "it needs targets y and a network with members, such as nn.tabular.TabularNet"
        return None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        net: Any = energy.net
        f, y = net.each(batch["x"]), batch["y"]  # (B, M, K)
        rows, members = f.shape[:2]
        flat = f.flatten(0, 1)
        if y.is_floating_point():
            own = ((y - net.shift) / net.gain).to(f.dtype)  # the network's units
            head: Any = energy.head
            each: Tensor = head(flat, own.repeat_interleave(members, 0))
        else:
            each = cross_entropy(
                flat, y.repeat_interleave(members), reduction="none",
                label_smoothing=self.label_smoothing,
            )  # fmt: skip
        loss = each.view(rows, members).mean(1)

        def parts() -> tuple[Tensor, Tensor]:
            lowered = energy(**batch)
            return lowered, lowered - loss

        return Terms(loss, parts)
