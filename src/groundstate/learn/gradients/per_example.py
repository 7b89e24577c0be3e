r"""The gradient of every example by itself, and how noisy their mean is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.display import Displayed

Params = Mapping[str, Tensor]
Loss = Callable[[Params, Tensor, Tensor], Tensor]


def per_example_grads(
    loss: Loss, params: Params, X: Tensor, y: Tensor, *, chunk: int = 128
) -> dict[str, Tensor]:
    r"""Gradients :math:`g_i = \nabla_\theta\ell(\theta; x_i, y_i)` of all rows in one vectorised pass.

    Parameters
    ----------
    loss : ``loss(params, x, y)`` of one example: x without its leading axis; returns a scalar
    params : name to tensor
    X, y : rows, leading axis n
    chunk : rows differentiated at once; memory is chunk × parameters

    Returns
    -------
    dict of tensors ``(n, *shape)``; their sum over rows is the gradient of the summed loss

    Examples
    --------
    >>> loss = lambda p, x, y: (x @ p["w"] - y) ** 2
    >>> X, y = torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 1.0])
    >>> per_example_grads(loss, {"w": torch.tensor([1.0])}, X, y)["w"].tolist()
    [[2.0], [4.0]]
    """
    plain = {n: p.detach() for n, p in params.items()}
    grad = torch.func.grad(lambda p, a, b: loss(p, a, b))
    return torch.func.vmap(grad, in_dims=(None, 0, 0), chunk_size=chunk)(plain, X, y)


@dataclass(frozen=True)
class GradientNoise(Displayed):
    r"""How much the gradients of single examples scatter.

    Attributes
    ----------
    mean : :math:`\|\bar g\|^2`, of the mean over the given examples
    variance : :math:`\operatorname{tr}\operatorname{Cov}(g_i)`, with n − 1
    scale : their ratio, the batch size at which noise and signal are equal
    """

    mean: float
    variance: float
    scale: float


def gradient_noise(grads: Mapping[str, Tensor]) -> GradientNoise:
    r"""The gradient noise scale :math:`\operatorname{tr}\operatorname{Cov}(g)/\|\bar g\|^2`.

    Parameters
    ----------
    grads : what ``per_example_grads`` gives, at least two rows

    Examples
    --------
    >>> gradient_noise({"w": torch.tensor([[1.0], [3.0]])})
    GradientNoise: mean 4, variance 2, scale 0.5
    """
    flat = torch.cat([g.reshape(len(g), -1) for g in grads.values()], 1).double()  # (n, p)
    if len(flat) < 2:
        raise ValueError(f"noise needs at least two examples, got {len(flat)}")
    mean = float(flat.mean(0).square().sum())
    variance = float(flat.var(0).sum())
    return GradientNoise(mean, variance, variance / mean if mean > 0 else float("inf"))
