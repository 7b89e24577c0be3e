r"""Several outcomes of mixed type from one network, :math:`\ell = \sum_j -\log p_j(y_j \mid x)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.errors import ShapeError
from groundstate.nn.heads.base import Head


class MultiHead(nn.Module):
    r"""A joint loss over named outputs, :math:`\ell = \sum_j w_j\ell_j`: a sum, never a mean.

    With weights of one it is the likelihood of outputs that are independent given x. Learned
    weights are :math:`w_j = e^{-a_j}` with :math:`a_j` added to the loss, so that they cannot all
    vanish: an output that fits badly counts less.

    Parameters
    ----------
    heads : name to head; the raw outputs stand side by side in this order
    weights : None, name to number, or "learned"

    Examples
    --------
    >>> from groundstate.nn.heads.base import DistributionHead
    >>> head = MultiHead({"size": DistributionHead("normal"), "kind": DistributionHead("categorical", 3)})
    >>> head.n_outputs
    5
    >>> y = {"size": torch.zeros(2, 1), "kind": torch.tensor([0, 2])}
    >>> head(torch.zeros(2, 5), y).shape, {k: v.shape[0] for k, v in head.predict(torch.zeros(2, 5)).items()}
    (torch.Size([2]), {'size': 2, 'kind': 2})
    """

    def __init__(
        self,
        heads: Mapping[str, Head],
        weights: Mapping[str, float] | Literal["learned"] | None = None,
    ) -> None:
        super().__init__()
        if not heads:
            raise ValueError("MultiHead needs at least one head, got none")
        self.heads = nn.ModuleDict(heads)
        self.weights = weights
        self.n_outputs = sum(h.n_outputs for h in heads.values())
        if weights == "learned":
            self.log_scale = nn.Parameter(torch.zeros(len(heads)))
        elif weights is not None and set(weights) != set(heads):
            raise ValueError(
                f"weights are for {sorted(weights)}, but the heads are {sorted(heads)}; name each once"
            )

    def config(self) -> dict[str, Any]:
        return {"heads": dict(self.heads.items()), "weights": self.weights}

    def items(self) -> list[tuple[str, Head]]:
        return list(self.heads.items())  # type: ignore[arg-type]

    def split(self, raw: Tensor) -> dict[str, Tensor]:
        """The raw outputs of every head."""
        if raw.ndim != 2 or raw.shape[1] != self.n_outputs:
            raise ShapeError(
                f"these heads need raw outputs (B, {self.n_outputs}), got {tuple(raw.shape)}"
            )
        sizes = [h.n_outputs for _, h in self.items()]
        return dict(zip(self.heads, raw.split(sizes, 1), strict=True))

    def terms(self, raw: Tensor, y: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The unweighted loss of every output, each ``(B,)``."""
        parts = self.split(raw)
        missing = set(self.heads) - set(y)
        if missing:
            raise ShapeError(f"y has no {sorted(missing)}; it needs {sorted(self.heads)}")
        return {name: head(parts[name], y[name]) for name, head in self.items()}

    def forward(self, raw: Tensor, y: Mapping[str, Tensor]) -> Tensor:
        terms = list(self.terms(raw, y).values())
        if self.weights is None:
            return torch.stack(terms).sum(0)
        if self.weights == "learned":
            a = self.log_scale[:, None]
            return ((-a).exp() * torch.stack(terms) + a).sum(0)
        each = [self.weights[name] for name in self.heads]
        return torch.stack([w * t for w, t in zip(each, terms, strict=True)]).sum(0)

    def dist(self, raw: Tensor) -> dict[str, Distribution]:
        """The distribution of every output."""
        parts = self.split(raw)
        return {name: head.dist(parts[name]) for name, head in self.items()}

    def predict(self, raw: Tensor) -> dict[str, Tensor]:
        """One value of every output per row."""
        parts = self.split(raw)
        return {name: head.predict(parts[name]) for name, head in self.items()}
