r"""One against one: the margin rule of machines that compare classes two by two."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.rules.common import against_classes, pick
from groundstate.registry import rules


@rules.register(formula=r"L = \sum_{k \ne y} \max(0, m - f_{yk})", make=lambda energy: OneVsOne())
class OneVsOne(Rule):
    r""":math:`\sum_{k \ne y} \max(0, m - f_{yk}(x))`. Lowers e on the target, raises e on each other
    class until the target wins every comparison by the margin m.

    :math:`f_{yk}` is the score of y against k: the energy's own where it compares classes in pairs,
    else :math:`e_k - e_y`.

    Parameters
    ----------
    m : float, default=1.0
        Margin.

    Examples
    --------
    >>> import torch
    >>> OneVsOne.loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]), 3)
    tensor([0.5000])
    """

    smooth = False

    def __init__(self, m: float = 1.0) -> None:
        super().__init__()
        if not m > 0:
            raise ValueError(f"the margin m must be positive, got {m}")
        self.m = float(m)
        self.over = "y"

    @staticmethod
    def loss(f: Tensor, y: Tensor, k: int, m: float = 1.0) -> Tensor:
        """The loss of each row of pair scores ``(B, k(k-1)/2)``, ``(B,)``."""
        pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
        first = torch.tensor([a for a, _ in pairs], device=y.device)
        second = torch.tensor([b for _, b in pairs], device=y.device)
        sign = (y[:, None] == first).to(f.dtype) - (y[:, None] == second).to(f.dtype)
        return torch.where(sign != 0, (m - sign * f).clamp(min=0), 0.0).sum(1)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        return against_classes(self, energy, batch, "are compared two by two")

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        y = batch["y"]
        given = {name: v for name, v in batch.items() if name != "y"}
        scores = energy.ability("pairs", "y")
        k = int(energy.spaces["y"].size)
        if scores is None:
            e = energy.table("y", **given)
            a, b = torch.triu_indices(k, k, 1, device=e.device)
            f = e[:, b] - e[:, a]
        else:
            f = scores(**given)
        loss = self.loss(f, y, k, self.m)

        def parts() -> tuple[Tensor, Tensor]:
            positive = pick(energy.table("y", **given), y)
            return positive, positive - loss

        return Terms(loss, parts)
