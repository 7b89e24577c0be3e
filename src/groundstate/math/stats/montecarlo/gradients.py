r"""Gradients of expectations: :math:`\nabla_\theta E_{p_\theta} f`, along paths or by the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState, seeded
from groundstate.errors import Unsupported
from groundstate.math.distributions.parameters import parameters_of, rebuilt


@dataclass(frozen=True)
class GradientEstimate(Displayed):
    """Gradients by the name of the parameter.

    Attributes
    ----------
    mean : estimate of the gradient
    variance : of the gradient from a single draw
    stderr : of the mean
    n : draws
    """

    mean: dict[str, Tensor]
    variance: dict[str, Tensor]
    stderr: dict[str, Tensor]
    n: int


def grad_mc(
    f: Callable[[Tensor], Tensor],
    dist: Distribution,
    method: Literal["pathwise", "score"] = "pathwise",
    *,
    n: int = 10_000,
    random_state: Key | RandomState = 0,
) -> GradientEstimate:
    r"""The gradient of :math:`E f(z)` with respect to the parameters of the distribution of z.

    ``"pathwise"`` writes z as a smooth function of parameters and noise (``rsample``) and derives f:
    :math:`E\,\nabla_\theta f(z(\theta, \varepsilon))`. ``"score"`` needs no derivative of f:
    :math:`E\,f(z)\nabla_\theta\log p_\theta(z)`, at the price of more variance. The score itself has mean zero.

    Parameters
    ----------
    f : maps draws ``(n, ...)`` to values ``(n,)``
    dist : torch distribution
    n : draws

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> z = Normal(torch.tensor(1.5).double(), torch.tensor(1.0).double())
    >>> path, score = (grad_mc(lambda v: v**2, z, m) for m in ("pathwise", "score"))
    >>> bool((path.mean["loc"] - 3.0).abs() < 4 * path.stderr["loc"])
    True
    >>> bool(score.variance["loc"] > path.variance["loc"])
    True
    """
    if n < 2:
        raise ValueError(f"a variance needs at least 2 draws, got n={n}")
    if method not in ("pathwise", "score"):
        raise ValueError(f"method must be 'pathwise' or 'score', got {method!r}")
    if method == "pathwise" and not dist.has_rsample:
        raise Unsupported(
            f"{type(dist).__name__} has no smooth path from noise to draws; use method='score'"
        )
    # every draw has parameters of its own, whose gradients are those of single draws
    own: dict[str, Any] = {}
    for name, value in parameters_of(dist).items():
        fixed = (
            not isinstance(value, Tensor) or not value.is_floating_point() or name == "total_count"
        )
        if fixed:
            own[name] = value
        else:
            own[name] = value.detach().expand(n, *value.shape).clone().requires_grad_()
    leaves = {k: v for k, v in own.items() if isinstance(v, Tensor) and v.requires_grad}
    many = rebuilt(type(dist), own)
    with seeded(Key.of(random_state)):
        z = many.rsample() if method == "pathwise" else many.sample()
    values = f(z)
    if values.shape[:1] != (n,):
        raise ValueError(f"f must give one value per draw, got shape {tuple(values.shape)}")
    total = values.sum()
    if method == "score":
        log_p = many.log_prob(z)
        total = (values.detach().reshape(n, -1).sum(1) * log_p.reshape(n, -1).sum(1)).sum()
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    grads = {
        name: torch.zeros_like(leaf) if g is None else g
        for (name, leaf), g in zip(leaves.items(), found)
    }
    variance = {name: g.var(0) for name, g in grads.items()}
    return GradientEstimate(
        {name: g.mean(0) for name, g in grads.items()}, variance,
        {name: (v / n).sqrt() for name, v in variance.items()}, n,
    )  # fmt: skip
