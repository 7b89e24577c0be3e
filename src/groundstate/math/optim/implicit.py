r"""What gradient descent with finite steps really follows: the flow of a modified loss.

.. math::
    L_{GD} = L + \tfrac\alpha4\|\nabla L\|^2, \qquad
    L_{SGD} = L_{GD} + \tfrac{\alpha}{4B}\sum_b\|\nabla L_b - \nabla L\|^2 .
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from groundstate.math.optim.objective import Function, Objective

Loss = Callable[[Tensor], Tensor]


def modified_loss(
    loss: Loss | None,
    lr: float,
    kind: Literal["gd", "sgd"] = "gd",
    batches: Sequence[Loss] = (),
) -> Loss:
    r"""The loss whose gradient flow passes close to the steps of descent on L.

    After one step of length α the flow of L is off by :math:`O(\alpha^2)`, that of the modified loss
    by :math:`O(\alpha^3)`. Large gradients cost, and for "sgd" so do batches that disagree.

    Parameters
    ----------
    loss : L, a function of a tensor; None is the mean of ``batches``
    lr : α
    kind : "gd", or "sgd" with one pass over ``batches`` (on average over their orders)
    batches : losses :math:`L_b`, each a mean over its own rows, of equal size

    Returns
    -------
    function of a tensor, differentiable

    Examples
    --------
    >>> L = modified_loss(lambda x: 0.5 * x**2, lr=0.1)
    >>> round(float(L(torch.tensor(1.0))), 6)  # ½ + .1/4
    0.525
    """
    if kind not in ("gd", "sgd"):
        raise ValueError(f"kind must be 'gd' or 'sgd', got {kind!r}")
    if kind == "sgd" and not batches:
        raise ValueError("kind='sgd' needs batches, the losses of the mini-batches")
    if loss is None and not batches:
        raise ValueError("pass the loss, or the losses of batches")

    def whole(x: Tensor) -> Tensor:
        if loss is not None:
            return loss(x)
        return torch.stack([b(x) for b in batches]).mean()

    def modified(x: Tensor) -> Tensor:
        leaf = x if x.requires_grad else x.detach().requires_grad_()
        with torch.enable_grad():
            value = whole(leaf)
            g = _slope(value, leaf)
            result = value + 0.25 * lr * g.square().sum()
            if kind == "sgd":
                apart = [(_slope(b(leaf), leaf) - g).square().sum() for b in batches]
                result = result + 0.25 * lr * torch.stack(apart).mean()
        return result if x.requires_grad else result.detach()

    return modified


def _slope(value: Tensor, leaf: Tensor) -> Tensor:
    (g,) = torch.autograd.grad(value, leaf, create_graph=True)
    return g


def flow(loss: Function, theta0: Any, t: float | Sequence[float], *, rtol: float = 1e-10) -> Any:
    r"""Follow :math:`\dot\theta = -\nabla L(\theta)` from :math:`\theta_0` for the time t.

    A step of gradient descent with rate α is the time α.

    Parameters
    ----------
    loss : L, written in torch
    theta0 : start; the answer is of its kind (NumPy, torch, number)
    t : time, or times ``(T,)``
    rtol : relative error of the solver

    Returns
    -------
    θ(t), in the shape of the start; ``(T, *shape)`` for several times

    Examples
    --------
    >>> round(flow(lambda x: 0.5 * x**2, 1.0, 0.1), 6)
    0.904837
    """
    objective = Objective(loss, theta0)
    start = objective.start.double()
    times = np.atleast_1d(np.asarray(t, dtype=float))
    if not (times >= 0).all() or not (np.diff(times) >= 0).all():
        raise ValueError(f"times must be at least 0 and ascending, got {t}")
    if times[-1] == 0:
        path = start.cpu().numpy()[None].repeat(len(times), 0)
    else:

        def slope(_: float, theta: Any) -> Any:
            return (
                -objective.gradient(torch.as_tensor(theta).to(objective.start))
                .double()
                .cpu()
                .numpy()
            )

        found = solve_ivp(
            slope, (0.0, times[-1]), start.cpu().numpy(), t_eval=times, rtol=rtol, atol=rtol * 1e-3,
            method="DOP853",
        )  # fmt: skip
        if not found.success:
            raise ValueError(f"the flow could not be followed to t={times[-1]:g}: {found.message}")
        path = found.y.T
    points = torch.as_tensor(path).to(objective.start)
    return objective.space.give(points[0] if np.ndim(t) == 0 else points)
