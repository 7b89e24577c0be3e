r"""Gradients through learning: how the validation risk changes with a continuous setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.func import grad, vjp

from groundstate.errors import DataError
from groundstate.learn.gradients import jvp
from groundstate.math.linalg.conjugate_gradients import truncated

Risk = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Problem:
    r"""What is learned and what judges it.

    Attributes
    ----------
    train : training risk :math:`R(\theta, \lambda)`, a number
    validation : validation risk :math:`R_{\mathrm{val}}(\theta, \lambda)`, a number
    theta : (p,) parameters: the minimiser for ``"implicit"``, the start for the other methods
    step : one step of learning, :math:`\theta \leftarrow g(\theta, \lambda)`; gradient descent with
        ``rate`` unless given
    steps, rate : how long and how far the unrolled methods go
    """

    train: Risk
    validation: Risk
    theta: Tensor
    step: Callable[[Tensor, Tensor], Tensor] | None = None
    steps: int = 100
    rate: float = 0.1


def hypergradient(
    learn: Problem,
    params: Tensor,
    method: Literal["implicit", "forward", "reverse"] = "implicit",
    *,
    damping: float = 0.0,
    tol: float = 1e-10,
    max_iter: int = 50,
    segment: int = 10,
) -> Tensor:
    r"""Gradient of the validation risk in the settings λ, through what is learned with them:

    .. math::
        \frac{dR_{\mathrm{val}}}{d\lambda} = \partial_\lambda R_{\mathrm{val}} -
        \partial_\theta R_{\mathrm{val}}\, H^{-1}\, \partial^2_{\theta\lambda} R, \qquad
        H = \partial^2_\theta R .

    Parameters
    ----------
    learn : the learning problem
    params : (l,) settings
    method : ``"implicit"`` solves with the Hessian at the minimiser by conjugate gradients, each
        step one Hessian-vector product; ``"forward"`` pushes one tangent for each setting through
        the steps; ``"reverse"`` goes back through the unrolled steps, which are recomputed in
        segments
    damping : added to the diagonal of the Hessian
    tol, max_iter : of conjugate gradients
    segment : steps between two kept states of ``"reverse"``

    Returns
    -------
    (l,) tensor

    Examples
    --------
    >>> X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    >>> y = torch.tensor([1.0, 2.0, 2.0], dtype=torch.float64)
    >>> def train(theta, l):
    ...     return 0.5 * (X @ theta - y).square().sum() + 0.5 * l[0] * theta.square().sum()
    >>> def validation(theta, l):
    ...     return (theta @ torch.tensor([2.0, 1.0], dtype=torch.float64) - 3.0).square()
    >>> theta = torch.tensor([12 / 17, 15 / 17], dtype=torch.float64)  # the minimiser at l = 1
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> round(float(hypergradient(Problem(train, validation, theta), one)), 6)
    0.718095
    """
    params = params.detach()
    if params.ndim != 1 or not params.is_floating_point():
        raise DataError(
            f"params is a vector of real settings, got shape {tuple(params.shape)} of {params.dtype}"
        )
    if method == "implicit":
        return _implicit(learn, params, damping, tol, max_iter)
    if method == "forward":
        return _forward(learn, params)
    if method == "reverse":
        return _reverse(learn, params, segment)
    raise DataError(f"method is 'implicit', 'forward' or 'reverse', got {method!r}")


def response(learn: Problem, params: Tensor, *, damping: float = 0.0) -> Tensor:
    r"""How the minimiser moves, :math:`d\theta/d\lambda = -H^{-1}\partial^2_{\theta\lambda}R`.

    Returns
    -------
    (p, l) tensor
    """
    theta = learn.theta.detach()
    slope = grad(learn.train, argnums=0)
    columns = []
    for e in torch.eye(len(params), dtype=params.dtype, device=params.device):
        mixed = jvp(lambda lam: slope(theta, lam), params, e)[1]
        columns.append(-_solve(learn, theta, params, mixed, damping, 1e-12, 10 * len(theta)))
    return torch.stack(columns, -1)


def _implicit(learn: Problem, params: Tensor, damping: float, tol: float, max_iter: int) -> Tensor:
    theta = learn.theta.detach()
    direct, pull = grad(learn.validation, argnums=(1, 0))(theta, params)
    v = _solve(learn, theta, params, pull, damping, tol, max_iter)
    slope = grad(learn.train, argnums=0)
    # v' d2R/dtheta dl is the gradient in l of <dR/dtheta, v>
    mixed = grad(lambda lam: slope(theta, lam) @ v)(params)
    return direct - mixed


def _solve(
    learn: Problem,
    theta: Tensor,
    params: Tensor,
    b: Tensor,
    damping: float,
    tol: float,
    max_iter: int,
) -> Tensor:
    """Conjugate gradients on (H + damping) v = b."""
    slope = grad(learn.train, argnums=0)

    def product(v: Tensor) -> Tensor:
        return jvp(lambda t: slope(t, params), theta, v)[1] + damping * v

    found: Tensor = truncated(product, b, tol * float(b.norm()), min(max_iter, 10 * len(b)))
    return found


def _step(learn: Problem) -> Callable[[Tensor, Tensor], Tensor]:
    if learn.step is not None:
        return learn.step
    slope = grad(learn.train, argnums=0)
    return lambda theta, lam: theta - learn.rate * slope(theta, lam)


def _forward(learn: Problem, params: Tensor) -> Tensor:
    step = _step(learn)

    def risk(lam: Tensor) -> Tensor:
        theta = learn.theta.detach()
        for _ in range(learn.steps):
            theta = step(theta, lam)
        return learn.validation(theta, lam)

    directions = torch.eye(len(params), dtype=params.dtype, device=params.device)
    return torch.stack([jvp(risk, params, e)[1] for e in directions])


def _reverse(learn: Problem, params: Tensor, segment: int) -> Tensor:
    """Keep the state every few steps, then go back, recomputing one segment at a time."""
    step = _step(learn)

    def several(theta: Tensor, lam: Tensor, count: int) -> Tensor:
        for _ in range(count):
            theta = step(theta, lam)
        return theta

    theta = learn.theta.detach()
    kept: list[tuple[Tensor, int]] = []
    done = 0
    while done < learn.steps:
        count = min(segment, learn.steps - done)
        kept.append((theta, count))
        theta = several(theta, params, count).detach()
        done += count
    pull, slope = grad(learn.validation, argnums=(0, 1))(theta, params)
    for start, count in reversed(kept):
        back = vjp(partial(several, count=count), start, params)[1]
        pull, more = back(pull)
        slope = slope + more
    return slope
