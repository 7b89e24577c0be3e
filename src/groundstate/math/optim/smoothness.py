r"""How long a gradient step may be: Lipschitz constants and the descent lemma.

If :math:`\|\nabla f(a) - \nabla f(b)\| \le L\|a - b\|`, a step of length α along −∇f ends at most at
:math:`f - (\alpha - \tfrac12L\alpha^2)\|\nabla f\|^2`: it descends for :math:`\alpha < 2/L`, and the
bound is best at :math:`1/L`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.math.linalg.power import largest_eigenvalue
from groundstate.math.optim.flat import Flat, Loss, Params
from groundstate.math.optim.objective import Objective


def lipschitz(
    loss: Loss, params: Params, *data: Any, n_iter: int = 200, tol: float = 1e-10, seed: int = 0
) -> float:
    r"""The largest :math:`|\lambda|` of the Hessian at a point, by power iteration on products with it.

    On a quadratic it is the Lipschitz constant L of the gradient; elsewhere its value nearby. No
    Hessian is formed.

    Parameters
    ----------
    loss : ``loss(params, *data)``, a scalar written in torch
    params : a tensor, or name to tensor
    data : handed to the loss
    n_iter, tol : products at most, and relative change at which to stop
    seed : of the first vector

    Examples
    --------
    >>> round(lipschitz(lambda x: 0.5 * (x**2 * torch.tensor([1.0, 10.0])).sum(), torch.zeros(2)), 6)
    10.0
    """
    flat = Flat(params)
    times = Objective(flat.loss(loss, data), flat.start).product(flat.start)
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(flat.start.numel(), generator=generator).to(flat.start)
    return largest_eigenvalue(times, start, n_iter=n_iter, tol=tol)


def softmax_lipschitz(X: Tensor) -> float:
    r"""An upper bound of L for the mean cross-entropy of softmax regression,
    :math:`\lambda_{max}(X^\top X)/(2N)`.

    Examples
    --------
    >>> softmax_lipschitz(torch.eye(2))
    0.25
    """
    return float(torch.linalg.matrix_norm(X, ord=2).square()) / (2 * len(X))


def descent_bound(
    f: float, grad2: float, L: float, step: float, second_moment: float | None = None
) -> float:
    r"""What f is at most after a step α along the gradient,
    :math:`f - (\alpha - \tfrac12L\alpha^2)\|\nabla f\|^2`.

    With noisy gradients g of mean ∇f it bounds the expectation,
    :math:`f - \alpha\|\nabla f\|^2 + \tfrac12L\alpha^2\,E\|g\|^2`.

    Parameters
    ----------
    f, grad2 : value and :math:`\|\nabla f\|^2`
    L : Lipschitz constant of the gradient
    step : α
    second_moment : :math:`E\|g\|^2`; None means an exact gradient

    Examples
    --------
    >>> round(descent_bound(5.5, 101.0, 10.0, 0.1), 6)
    0.45
    """
    moment = grad2 if second_moment is None else second_moment
    if grad2 < 0 or L < 0 or step < 0 or moment < grad2 * (1 - 1e-12):
        raise ValueError(
            "need grad2, L and step at least 0 and a second moment of at least grad2, got "
            f"{grad2=}, {L=}, {step=}, {second_moment=}"
        )
    return f - step * grad2 + 0.5 * L * step**2 * moment


def largest_step(grad2: float, L: float, second_moment: float | None = None) -> float:
    r"""The step below which progress is certain, :math:`2\|\nabla f\|^2/(L\,E\|g\|^2)`; 2/L without
    noise.

    Examples
    --------
    >>> largest_step(4.0, 10.0), largest_step(4.0, 10.0, second_moment=8.0)
    (0.2, 0.1)
    """
    moment = grad2 if second_moment is None else second_moment
    if not (L > 0 and moment > 0 and 0 <= grad2 <= moment * (1 + 1e-12)):
        raise ValueError(
            f"need L > 0 and second_moment >= grad2 > 0, got {grad2=}, {L=}, {moment=}"
        )
    return 2 * grad2 / (L * moment)


def is_descent(trace: Sequence[float], tol: float = 0.0) -> bool:
    """Whether no value lies above the one before it, up to ``tol``.

    Converging is something else: a path may end at a minimum and rise on the way.

    Examples
    --------
    >>> is_descent([3.0, 2.0, 2.0]), is_descent([3.0, 2.0, 2.5, 1.0])
    (True, False)
    """
    values = torch.as_tensor(trace, dtype=torch.float64).reshape(-1)
    return bool(torch.isfinite(values).all()) and bool((values.diff() <= tol).all())
