r"""Pairs that belong together should be alike, and unlike the partners of other rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from groundstate.compute.reduce import gather_with_gradient
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.contrastive import pairs
from groundstate.learn.rules.views.distinct import distinct
from groundstate.registry import rules

LOSSES = ("softmax", "sigmoid")


@rules.register(
    formula=r"L = \tfrac12\big(2e_{ii} + \log\sum_je^{-e_{ij}} + \log\sum_je^{-e_{ji}}\big)",
    make=lambda energy: PairedViews(),
)
class PairedViews(Rule):
    r""":math:`L_i = \tfrac12\big(2e_{ii} + \log\sum_je^{-e_{ij}} + \log\sum_je^{-e_{ji}}\big)`,
    :math:`e_{ij} = e(x_i, y_j)`. Lowers e on pairs that belong together, raises it between x and the y
    of other rows, and between y and the x of other rows.

    That is the mean of two cross-entropies on the table of similarities, of its rows and of its columns.
    "sigmoid" judges every cell alone, :math:`L_i = -\sum_j\log\sigma(\pm(-e_{ij}))`, minus off the diagonal,
    and needs no sums over the batch. Equal pairs of a batch count as one. Under several processes a row is
    held against those of all of them.

    Parameters
    ----------
    loss : "softmax" or "sigmoid"

    Examples
    --------
    >>> from torch import nn
    >>> from groundstate.energy.networks.similarity import SimilarityEnergy
    >>> from groundstate.energy.spaces import Real
    >>> e = SimilarityEnergy(Real(2), Real(2), nn.Identity(), nn.Identity(), scale=1.0)
    >>> PairedViews()(e, {"x": torch.eye(2), "y": torch.eye(2)}).loss.detach()  # log(1 + exp(-1))
    tensor([0.3133, 0.3133])
    """

    def __init__(self, loss: str = "softmax") -> None:
        super().__init__()
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
        self.loss = loss

    def config(self) -> dict[str, Any]:
        return {"loss": self.loss}

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        model: Any = energy
        x, y, place = distinct(batch["x"], batch["y"])
        q, k = model.scale * model.embed(x), model.embed_y(y)
        near = (q * k).sum(1) + (0.0 if model.bias is None else model.bias)
        loss = (self._softmax if self.loss == "softmax" else self._sigmoid)(q, k, model.bias)[place]

        def parts() -> tuple[Tensor, Tensor]:
            positive = -near[place]
            return positive, positive - loss

        return Terms(loss, parts, exact=True)

    def _softmax(self, q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
        share = self.training
        return 0.5 * (pairs(q, k, gather=share) + pairs(k, q, gather=share))

    def _sigmoid(self, q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
        keys, first = gather_with_gradient(k) if self.training else (k, 0)
        s = q @ keys.T  # (U, all)
        s = s if bias is None else s + bias
        own = torch.arange(len(q), device=q.device)
        right = s[own, first + own]
        return -logsigmoid(-s).sum(1) + logsigmoid(-right) - logsigmoid(right)

    @torch.no_grad()
    def project(self, energy: Any) -> None:
        """After a step: the scale of similarities back below its largest."""
        energy.bound()

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not hasattr(energy, "embed_y"):
            return "it has no codes of both x and y; use a SimilarityEnergy"
        absent = [name for name in ("x", "y") if name not in batch]
        return f"the batch holds no {absent[0]!r}, which the rule learns from" if absent else None

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return ()
