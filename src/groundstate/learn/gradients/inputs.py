r"""Gradients in the input: which features matter, and how an input would have to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.energy.base import Energy
from groundstate.errors import DataError
from groundstate.learn.base import Batch, Terms

Rule = Callable[[Energy, Batch], Terms]


@dataclass(frozen=True)
class Adapted(Displayed):
    """Where an input went.

    Attributes
    ----------
    x : the input after the last step, ``(B, ...)``
    loss : before every step and at the end, ``(steps + 1, B)``
    """

    x: Tensor
    loss: Tensor


def _rows(energy: Energy, x: Tensor, y: Tensor | None, rule: Rule | None) -> Tensor:
    batch = {"x": x} if y is None else {"x": x, "y": y}
    return energy(**batch) if rule is None else rule(energy, batch).loss


def _float(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        raise DataError(
            f"x is {x.dtype}, which has no gradient; pass floats (embed or one-hot encode labels first)"
        )
    return x.detach()


def saliency(
    energy: Energy, x: Tensor, y: Tensor | None = None, rule: Rule | None = None
) -> Tensor:
    r"""The gradient :math:`\nabla_xe(x, y)` of every row, in the shape of x; θ is not touched.

    Parameters
    ----------
    energy : its parameters stay as they are
    x, y : rows; floats for x
    rule : a learning rule whose loss is differentiated instead of e

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> e = LinearEnergy(2, 2)
    >>> e.W.data = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> saliency(e, torch.ones(1, 2), torch.tensor([1])).shape
    torch.Size([1, 2])
    """
    leaf = _float(x).clone().requires_grad_()
    with torch.enable_grad():
        (g,) = torch.autograd.grad(_rows(energy, leaf, y, rule).sum(), leaf)
    return g


def adapt_input(
    energy: Energy,
    x: Tensor,
    y: Tensor | None = None,
    steps: int = 1,
    lr: float = 0.1,
    rule: Rule | None = None,
) -> Adapted:
    r"""Move the input and not the model: :math:`x \leftarrow x - \eta\nabla_x\ell`, θ frozen.

    For the perceptron rule with linear energies the step is :math:`\eta(w_y - w_{\hat y})` in scores,
    and closes the gap between both by :math:`\eta\|w_y - w_{\hat y}\|^2`.

    Parameters
    ----------
    energy : its parameters stay as they are
    x, y : rows; floats for x
    steps, lr : number of steps and η
    rule : a learning rule whose loss is lowered instead of e

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Bowl(Energy):
    ...     def forward(self, x):
    ...         return 0.5 * x.square().sum(1)
    >>> adapt_input(Bowl(x=Real(1)), torch.ones(1, 1), steps=2).x
    tensor([[0.8100]])
    """
    if steps < 0 or not lr > 0:
        raise ValueError(f"need steps >= 0 and lr > 0, got steps={steps}, lr={lr}")
    point, losses = _float(x), []
    for _ in range(steps):
        leaf = point.clone().requires_grad_()
        with torch.enable_grad():
            rows = _rows(energy, leaf, y, rule)
            (g,) = torch.autograd.grad(rows.sum(), leaf)
        losses.append(rows.detach())
        point = point - lr * g
    with torch.no_grad():
        losses.append(_rows(energy, point, y, rule))
    return Adapted(point, torch.stack(losses))
