r"""What makes a module a block: rows in, rows out, differentiable in inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groundstate.errors import GroundstateError, ShapeError
from groundstate.registry import PartRow, Registry

#: The blocks of this room: ``make()`` builds one, ``batch(n, generator)`` its example input ``x``.
blocks = Registry("block", PartRow, "groundstate.nn")


def rows_of(*shape: int) -> Callable[..., Mapping[str, Tensor]]:
    """Example inputs of a block: normal rows of this shape."""

    def batch(n: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return {"x": torch.randn(n, *shape, generator=generator)}

    return batch


class NotDifferentiable(GroundstateError, AssertionError):
    """A block whose gradients are missing or disagree with differences of its values."""


@dataclass(frozen=True)
class BlockReport:
    """Largest relative errors of directional derivatives, in the input and in the parameters."""

    input: float
    parameters: float
    n_parameters: int
    output_shape: tuple[int, ...]


def check_block(
    module: nn.Module,
    x: Tensor,
    *,
    tol: float = 1e-6,
    generator: torch.Generator | None = None,
    loss: Callable[[Tensor], Tensor] | None = None,
) -> BlockReport:
    r"""Compare gradients of a block with central differences, in float64, and check its rows.

    .. math:: \langle\nabla L, d\rangle \approx \frac{L(v + hd) - L(v - hd)}{2h}

    along random directions d of the input and of each parameter, for a random linear loss L of the
    output. The number of rows must be kept: an output that lost or gained rows by broadcasting is
    an error. Blocks without parameters are blocks too. The module is copied and not changed;
    it is checked in evaluation mode.

    Parameters
    ----------
    module : any ``torch.nn.Module``
    x : example input ``(B, ...)``, away from kinks
    tol : allowed relative error
    generator : source of the directions; None is a fixed seed
    loss : of the output, a scalar; None is a random linear one

    Raises
    ------
    ShapeError : rows in and rows out differ
    NotDifferentiable : a gradient is missing or wrong

    Examples
    --------
    >>> check_block(nn.Linear(3, 2), torch.ones(4, 3)).output_shape
    (4, 2)
    """
    generator = generator or torch.Generator(x.device).manual_seed(0)
    name = type(module).__name__
    net = deepcopy(module).double().eval()
    v = x.detach().double().requires_grad_(True)
    out = net(v)
    if not isinstance(out, Tensor) or out.ndim == 0 or len(out) != len(x):
        given = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise ShapeError(
            f"{name} returned {given} for {len(x)} rows; a block keeps the leading batch axis: "
            "reduce over event axes only and check for broadcasting over the batch"
        )
    if len(x) > 1:
        _alone(net, v, out, name)
    c = torch.randn(out.shape, generator=generator, dtype=out.dtype, device=generator.device)
    total = loss or (lambda a: (a * c.to(a)).sum())
    parameters = {n: p for n, p in net.named_parameters() if p.requires_grad}
    if not out.requires_grad:
        raise NotDifferentiable(
            f"the output of {name} is cut off from its input; remove detach(), .data, "
            "torch.no_grad() or integer arithmetic on the way"
        )
    grads = torch.autograd.grad(
        total(out), [v, *parameters.values()], allow_unused=True, retain_graph=False
    )
    worst: dict[str, float] = {}
    for where, tensor, grad in zip(["input", *parameters], [v, *parameters.values()], grads):
        if grad is None:
            raise NotDifferentiable(
                f"{name} has no gradient in {where!r}; remove detach() or torch.no_grad() on the "
                "way, or a parameter that the output does not use"
            )
        worst[where] = _error(lambda: total(net(v)), tensor, grad, generator)
        if not worst[where] <= tol:
            raise NotDifferentiable(
                f"the gradient of {name} in {where!r} is off by {worst[where]:.1e} (relative, "
                f"allowed {tol:.0e}) from central differences"
            )
    return BlockReport(
        worst.pop("input"), max(worst.values(), default=0.0),
        sum(p.numel() for p in parameters.values()), tuple(out.shape),
    )  # fmt: skip


@torch.no_grad()
def _alone(net: nn.Module, x: Tensor, out: Tensor, name: str) -> None:
    """One row alone must give one row."""
    one = net(x[:1])
    if one.shape != (1, *out.shape[1:]):
        raise ShapeError(
            f"{name} returned {tuple(one.shape)} for one row and {tuple(out.shape)} for {len(x)}; "
            "its output must have one entry per row"
        )


@torch.no_grad()
def _error(
    value: Callable[[], Tensor], tensor: Tensor, grad: Tensor, generator: torch.Generator
) -> float:
    d = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=generator.device)
    d = d.to(tensor) / max(1.0, float(d.norm()))
    h = 1e-5
    start = tensor.clone()
    tensor.copy_(start + h * d)
    up = value()
    tensor.copy_(start - h * d)
    down = value()
    tensor.copy_(start)
    numeric = float((up - down) / (2 * h))
    exact = float((grad * d).sum())
    return abs(numeric - exact) / (1 + abs(exact))
