r"""Gradients and hessians of what boosting lowers, in the raw scores F of `BoostedEnergy`.

.. math:: g = \partial L / \partial F, \qquad h = \partial^2 L / \partial F^2 .
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.trees.boosted import half_deviance

F64 = NDArray[np.float64]


def weighted_quantile(values: F64, weight: F64 | None, q: float) -> float:
    """The q-quantile of weighted values; between two values that share it, their mean.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0, 4.0]), None, 0.5)
    2.5
    >>> weighted_quantile(np.array([3.0, 1.0]), np.array([2.0, 1.0]), 0.5)
    3.0
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    below = np.arange(1.0, len(values) + 1) if weight is None else np.cumsum(weight[order])
    mark = q * below[-1]
    slack = 1e-12 * below[-1]
    at = int(np.searchsorted(below, mark - slack))
    at = min(at, len(values) - 1)
    after = at
    if abs(below[at] - mark) <= slack:
        rest = np.flatnonzero(below > below[at] + slack)
        after = int(rest[0]) if len(rest) else at
    return float(0.5 * (ordered[at] + ordered[after]))


class Loss:
    """One loss on n rows: y is fixed, the scores F ``(n, k)`` move.

    Parameters
    ----------
    kind : ``"classes"`` or a loss of `BoostedEnergy`
    y : ``(n,)`` int64 classes, or ``(n,)`` float64 targets
    outputs : number of scores; 1 for two classes and for values
    """

    def __init__(self, kind: str, y: Tensor, outputs: int, quantile: float = 0.5) -> None:
        self.kind, self.y, self.outputs, self.quantile = kind, y, outputs, quantile
        self.one = torch.ones(len(y), dtype=torch.float64, device=y.device)  # many hessians
        self.renews = kind in ("absolute_error", "quantile")  # leaves by quantiles of residuals

    def start(self, weight: Tensor | None) -> F64:
        """The best constant score, ``(k,)``."""
        y = self.y
        y, weight = y.cpu(), None if weight is None else weight.cpu()
        w = torch.ones(len(y), dtype=torch.float64) if weight is None else weight
        if self.kind == "classes":
            mass = torch.zeros(max(2, self.outputs), dtype=torch.float64).index_add(0, y, w)
            p = (mass / mass.sum()).clamp(1e-15, 1.0)
            if self.outputs == 1:
                return (p[1].log() - p[0].log()).reshape(1).numpy()
            return (p.log() - p.log().mean()).numpy()
        if self.renews:
            q = self.quantile if self.kind == "quantile" else 0.5
            return np.array(
                [weighted_quantile(y.numpy(), None if weight is None else w.numpy(), q)]
            )
        mean = torch.dot(w, y) / w.sum()
        return (mean.log() if self.kind in ("poisson", "gamma") else mean).reshape(1).numpy()

    def gradients(self, F: Tensor) -> list[tuple[Tensor, Tensor]]:
        """g and h of each output, ``(n,)`` each."""
        y, f, one = self.y, F[:, 0], self.one
        if self.kind == "classes" and self.outputs == 1:
            p = torch.sigmoid(f)
            return [(p - y, p * (1 - p))]
        if self.kind == "classes":
            scores = F.T.contiguous()  # (k, n), quicker than row by row
            p = (scores - scores.amax(0)).exp_()
            p /= p.sum(0)
            h = p * (1 - p)
            p[y, torch.arange(len(y), device=y.device)] -= 1
            return [(p[c], h[c]) for c in range(self.outputs)]
        if self.kind == "squared_error":
            return [(f - y, one)]
        if self.kind == "absolute_error":
            return [(torch.sign(f - y), one)]
        if self.kind == "quantile":
            return [((y < f).double() - self.quantile, one)]
        if self.kind == "poisson":
            return [(f.exp() - y, f.exp())]
        scaled = y * torch.exp(-f)
        return [(1 - scaled, scaled)]

    def mean(self, F: Tensor, weight: Tensor | None) -> float:
        """The weighted mean loss."""
        if self.kind == "classes" and self.outputs == 1:
            f = F[:, 0]
            loss = torch.nn.functional.softplus(f) - self.y * f
        elif self.kind == "classes":
            loss = torch.nn.functional.cross_entropy(F, self.y, reduction="none")
        else:
            mu = F[:, 0].exp() if self.kind in ("poisson", "gamma") else F[:, 0]
            loss = half_deviance(self.kind, self.y, mu, self.quantile)
        return float(loss.mean() if weight is None else torch.dot(loss, weight) / weight.sum())

    def leaf_value(self, residual: F64, weight: F64 | None) -> float:
        """The best constant to add to rows of these residuals, where ``renews``."""
        q = self.quantile if self.kind == "quantile" else 0.5
        return weighted_quantile(residual, weight, q)


__all__ = ["Loss", "weighted_quantile"]
