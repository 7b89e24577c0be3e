r"""Gradients by the adjoint equation: nothing of the way forward is remembered.

For :math:`a = \partial L/\partial y` the equations run backwards in time from the last state,

.. math:: \dot y = f, \qquad \dot a = -a^\top\frac{\partial f}{\partial y}, \qquad
    \frac{d}{dt}\frac{\partial L}{\partial\theta} = -a^\top\frac{\partial f}{\partial\theta} .
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.math.ode.fixed import Field, clock

Solve = Callable[[Field, Tensor, Tensor, Callable[[Tensor], Tensor] | None], Tensor]


def parameters_of(f: Any, field: Field, time: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """The tensors with a gradient that f depends on besides its arguments.

    They are a module's parameters, or the leaves of the graph of one evaluation.
    """
    if isinstance(f, nn.Module):
        return tuple(p for p in f.parameters() if p.requires_grad)
    with torch.enable_grad():
        out = field(time, y.detach())
    seen: set[Any] = set()
    leaves: list[Tensor] = []
    todo: list[Any] = [out.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        todo.extend(parent for parent, _ in node.next_functions)
    return tuple(leaves)


def adjoint(
    f: Field, y0: Tensor, t: Tensor, solve: Solve, params: Sequence[Tensor], rows: bool
) -> Tensor:
    """The states ``(m, *y)`` at t, with the gradient of the adjoint equation."""
    out: Tensor = _Adjoint.apply(f, solve, rows, t, y0, *params)
    return out


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, f: Field, solve: Solve, rows: bool, t: Tensor, y0: Tensor, *params: Tensor
    ) -> Tensor:
        with torch.no_grad():
            states = solve(f, y0, t, None)
        ctx.f, ctx.solve, ctx.rows = f, solve, rows
        ctx.save_for_backward(t, states, *params)
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        t, states, *params = ctx.saved_tensors
        shape, n = states.shape[1:], states[0].numel()
        rows = shape[0] if ctx.rows else 1

        def field(time: Tensor, joint: Tensor) -> Tensor:
            with torch.enable_grad():
                y = joint[:n].reshape(shape).detach().requires_grad_()
                a = joint[n : 2 * n].reshape(shape)
                slope = ctx.f(clock(time, y, ctx.rows), y)
                if not slope.requires_grad:
                    return torch.cat([slope.flatten(), joint.new_zeros(len(joint) - n)])
                parts = torch.autograd.grad(
                    slope, (y, *params), -a, allow_unused=True, retain_graph=True
                )
            given = [torch.zeros_like(v) if p is None else p for p, v in zip(parts, (y, *params))]
            return torch.cat([slope.detach().flatten(), *(g.flatten() for g in given)])

        def norm(scaled: Tensor) -> Tensor:  # every row and the parameters must be good enough
            flat = scaled.reshape(-1).abs().square()
            parts = [*flat[: 2 * n].reshape(2 * rows, -1).mean(1)]
            if len(flat) > 2 * n:
                parts.append(flat[2 * n :].mean())
            return torch.stack(parts).max().sqrt()[None]

        a = torch.zeros_like(states[0])
        to_params = states.new_zeros(sum(p.numel() for p in params))
        to_t = torch.zeros_like(t) if ctx.needs_input_grad[3] else None
        with torch.no_grad():
            for i in range(len(t) - 1, 0, -1):
                a = a + grads[0][i]
                if to_t is not None:
                    to_t[i] = (
                        grads[0][i] * ctx.f(clock(t[i], states[i], ctx.rows), states[i])
                    ).sum()
                joint = torch.cat([states[i].flatten(), a.flatten(), to_params])
                back = ctx.solve(field, joint, t[[i, i - 1]], norm)[-1]
                a, to_params = back[n : 2 * n].reshape(shape), back[2 * n :]
            a = a + grads[0][0]
            if to_t is not None:
                to_t[0] = -(
                    (a - grads[0][0]) * ctx.f(clock(t[0], states[0], ctx.rows), states[0])
                ).sum()
        split = to_params.split([p.numel() for p in params]) if params else ()
        shaped = [s.reshape(p.shape) for s, p in zip(split, params)]
        return None, None, None, to_t, a, *shaped
