r"""One against the rest: any loss of the table for each class, as support vector machines learn."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.rules.common import against_classes, terms_of
from groundstate.math.losses import Hinge, LogLoss, PointLoss, ResidualLoss, SquaredHinge
from groundstate.registry import rules


@rules.register(
    formula=r"L = \sum_k \ell(-e_k, 1[k = y])", make=lambda energy: OneVsRestLoss(LogLoss())
)
class OneVsRestLoss(Rule):
    r""":math:`\sum_k \ell(-e_k, 1[k = y])` with a loss of the table. Lowers e on the target, raises e
    on each other class, as far as the loss of the score :math:`-e_k` asks for.

    With two classes one score is learned, :math:`\ell(e_0 - e_1, y)`. Losses of a residual see the
    targets ±1.

    Parameters
    ----------
    loss : of ``groundstate.math.losses``, for two classes or of a residual

    Examples
    --------
    >>> from groundstate.math.losses import Hinge
    >>> OneVsRestLoss(Hinge()).rows(torch.tensor([[-2.0, 0.5, 3.0]]), torch.tensor([0]))
    tensor([0.5000])
    """

    def __init__(self, loss: PointLoss) -> None:
        super().__init__()
        self.loss, self.over, self.smooth = loss, "y", loss.smooth

    def extra_repr(self) -> str:
        return repr(self.loss)

    def rows(self, e: Tensor, y: Tensor) -> Tensor:
        """The loss of each row of a table of energies ``(B, K)``, ``(B,)``."""
        two = e.shape[1] == 2
        score = (e[:, :1] - e[:, 1:]) if two else -e
        own = (y[:, None] == torch.arange(1 if two else 0, e.shape[1], device=y.device)).to(e.dtype)
        target = 2 * own - 1 if isinstance(self.loss, ResidualLoss) else own
        return self.loss.value(score, target).sum(1)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        return against_classes(self, energy, batch, "each class needs against the rest")

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        y = batch["y"]
        e = energy.table("y", **{name: v for name, v in batch.items() if name != "y"})
        return terms_of(e, y, self.rows(e, y))


@rules.register(
    formula=r"L = \sum_k \max(0, m + t_k e_k)^p,\quad t_k = 1 \text{ if } k = y \text{ else } -1",
    make=lambda energy: OneVsRest(),
)
class OneVsRest(OneVsRestLoss):
    r""":math:`\sum_k \max(0, m + t_k e_k)^p`. Lowers e on the target below −m, raises e on each
    other class above m.

    Every class is contrasted with a rest of energy zero, :math:`t_k = +1` for the target and −1 for
    the others, so the K classes are learned as K separate problems. With two classes the other
    class is the rest: :math:`\max(0, m + e_y - e_{y'})^p`.

    Parameters
    ----------
    m : float, default=1.0
        Margin.
    power : {1, 2}, default=2
        1 is the hinge, 2 the squared hinge, which is smooth.

    Examples
    --------
    >>> OneVsRest().rows(torch.tensor([[-2.0, 0.5, 3.0]]), torch.tensor([0]))
    tensor([0.2500])
    """

    def __init__(self, m: float = 1.0, power: int = 2) -> None:
        if not m > 0:
            raise ValueError(f"the margin m must be positive, got {m}")
        if power not in (1, 2):
            raise ValueError(f"power must be 1 (hinge) or 2 (squared hinge), got {power}")
        super().__init__(Hinge(float(m)) if power == 1 else SquaredHinge(float(m)))
        self.m, self.power = float(m), power
