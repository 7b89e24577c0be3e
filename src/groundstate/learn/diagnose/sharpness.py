r"""The largest curvature of a loss, which bounds the rate of gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.base import Rule


def sharpness(
    energy: nn.Module,
    data: Mapping[str, Tensor] | Tensor,
    rule: Rule | Callable[[Tensor], Tensor],
    *,
    iterations: int = 30,
    tol: float = 1e-3,
    generator: torch.Generator | None = None,
) -> float:
    r"""L, the largest curvature :math:`\max_v |v^\top H v|` of the mean loss, by power iteration.

    Gradient descent with a constant rate is stable below :math:`2/L`. Each iteration is one
    product with the Hessian, about two gradients.

    Parameters
    ----------
    energy, data, rule : as in ``diagnose``
    iterations, tol : at most so many products, until the estimate changes by less
    generator : source of the start; a fixed seed by default

    Examples
    --------
    The curvature of ½·mean (10 w)² is 100:

    >>> net = nn.Linear(1, 1, bias=False)
    >>> round(sharpness(net, torch.full((4, 1), 10.0), lambda out: 0.5 * out.square()), 3)
    100.0
    """
    theta = [p for p in energy.parameters() if p.requires_grad]
    if isinstance(energy, Energy):
        if not isinstance(rule, Rule) or isinstance(data, Tensor):
            raise Unsupported("the sharpness of an energy needs its rule and data by name")
        noise = torch.Generator(device=energy.placement()[0]).manual_seed(0)
        loss = rule.mean(energy, data, generator=noise)[0]
    else:
        x = data if isinstance(data, Tensor) else data["x"]
        loss = rule(energy(x)).mean()
    slopes = torch.autograd.grad(
        loss, theta, create_graph=True, allow_unused=True, materialize_grads=True
    )
    flat = torch.cat([g.reshape(-1) for g in slopes])
    if not flat.requires_grad:
        return 0.0
    if generator is None:
        generator = torch.Generator(device=flat.device).manual_seed(0)
    v = torch.randn(flat.shape, generator=generator, device=flat.device, dtype=flat.dtype)
    v /= v.norm()
    value = 0.0
    for _ in range(iterations):
        products = torch.autograd.grad(
            flat, theta, v, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        Hv = torch.cat([h.reshape(-1) for h in products])
        before, value = value, float(Hv.norm())
        if value == 0 or abs(value - before) <= tol * value:
            break
        v = Hv / value
    return value
