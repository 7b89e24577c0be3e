r"""Losses that are negative log-likelihoods: :math:`\text{loss} = a\cdot\bigl(-\log p(y)\bigr) + c(y)`.

Minimising such a loss is maximum likelihood: a is positive and c does not depend on the model. The mean of
:math:`-\log q` over rows is :math:`\mathrm{KL}(\hat p, q) + H(\hat p)` for their empirical distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional as F

from groundstate.math.arrays import as_tensor


@dataclass(frozen=True)
class LossAsNLL:
    """A loss and the distribution whose likelihood it measures.

    Attributes
    ----------
    name : of the loss
    loss : (y, output) ↦ loss of each row
    distribution : output ↦ distribution of y
    factor : a
    const : y ↦ c(y)
    """

    name: str
    loss: Callable[[Tensor, Tensor], Tensor]
    distribution: Callable[[Tensor], Distribution]
    factor: float
    const: Callable[[Tensor], Tensor]

    def nll(self, y: Any, output: Any) -> Tensor:
        """−log p(y) of each row."""
        return -self.distribution(as_tensor(output, "output")).log_prob(as_tensor(y, "y"))

    def gap(self, y: Any, output: Any) -> float:
        """How far the loss is from a·NLL + c(y), at most; zero up to rounding."""
        rows, out = as_tensor(y, "y"), as_tensor(output, "output")
        exact = self.factor * self.nll(rows, out) + self.const(rows)
        return float((self.loss(rows, out) - exact).detach().abs().max())


def loss_as_nll(loss: str, *, scale: float = 1.0) -> LossAsNLL:
    r"""The likelihood behind a loss.

    =====================  ======================================  ==================================
    loss                   distribution of y                       output
    =====================  ======================================  ==================================
    ``squared_error``      Normal(output, scale)                   mean
    ``absolute_error``     Laplace(output, scale)                  median
    ``cross_entropy``      Categorical(logits)                     logits ``(n, K)``, y labels
    ``binary``             Bernoulli(logits)                       logits
    ``poisson``            Poisson(:math:`e^{\text{output}}`)      log of the mean
    =====================  ======================================  ==================================

    Parameters
    ----------
    loss : one of the above
    scale : the fixed scale of the first two, which changes a and c, never the best output

    Examples
    --------
    >>> pair = loss_as_nll("squared_error", scale=2.0)
    >>> pair.factor, pair.gap([1.0, 3.0], [0.5, 0.5]) < 1e-12
    (8.0, True)
    """
    if not scale > 0:
        raise ValueError(f"scale is positive, got {scale}")
    zero: Callable[[Tensor], Tensor] = torch.zeros_like
    s = float(scale)
    if loss == "squared_error":
        shift = -(s**2) * math.log(2 * math.pi * s**2)
        return LossAsNLL(loss, lambda y, f: (y - f).square(), lambda f: D.Normal(f, s), 2 * s**2,
                         lambda y: torch.full_like(y, shift))  # fmt: skip
    if loss == "absolute_error":
        return LossAsNLL(loss, lambda y, f: (y - f).abs(), lambda f: D.Laplace(f, s), s,
                         lambda y: torch.full_like(y, -s * math.log(2 * s)))  # fmt: skip
    if loss == "cross_entropy":
        return LossAsNLL(loss, lambda y, f: F.cross_entropy(f, y.long(), reduction="none"),
                         lambda f: D.Categorical(logits=f), 1.0, zero)  # fmt: skip
    if loss == "binary":
        return LossAsNLL(
            loss, lambda y, f: F.binary_cross_entropy_with_logits(f, y, reduction="none"),
            lambda f: D.Bernoulli(logits=f), 1.0, zero,
        )  # fmt: skip
    if loss == "poisson":
        return LossAsNLL(loss, lambda y, f: f.exp() - y * f, lambda f: D.Poisson(f.exp()), 1.0,
                         lambda y: -torch.lgamma(y + 1))  # fmt: skip
    raise ValueError(
        f"loss must be 'squared_error', 'absolute_error', 'cross_entropy', 'binary' or 'poisson', got "
        f"{loss!r}"
    )
