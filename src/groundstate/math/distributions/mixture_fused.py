r"""The loss of a mixture density straight from a network's outputs, with its gradient by hand.

With outputs :math:`(\mu_z, a_z, l_z)`, :math:`\sigma_z = \sigma_{min} + e^{a_z}`,
:math:`\pi = \operatorname{softmax}(l)` and responsibilities r,

.. math::
    \frac{\partial e}{\partial\mu_z} = r_z\frac{\mu_z - y}{\sigma_z^2}, \quad
    \frac{\partial e}{\partial a_z} = r_z\Bigl(d - \frac{\|y - \mu_z\|^2}{\sigma_z^2}\Bigr)
    \frac{\sigma_z - \sigma_{min}}{\sigma_z}, \quad
    \frac{\partial e}{\partial l_z} = \pi_z - r_z .

Without a graph of small operations a step of training is shorter: on the CPU loss and gradient are one
compiled pass over the rows, elsewhere a few tensor operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from groundstate.compute.foreign.torch import functorch_active
from groundstate.math.distributions.gaussian_mixtures import mixture_nll


def head_parameters(
    out: Tensor, sizes: Sequence[int], k: int, min_scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """log π, μ, σ from outputs ``(..., sum(sizes))`` in the order means, scales, logits.

    No logits stand for equal weights.
    """
    mean, raw, logits = out.split(list(sizes), -1)
    lead = out.shape[:-1]
    log_weights = (
        torch.log_softmax(logits, -1) if sizes[2] else out.new_full((*lead, k), -math.log(k))
    )
    return log_weights, mean.reshape(*lead, k, -1), raw.reshape(*lead, k, -1).exp() + min_scale


def head_nll(
    out: Tensor, y: Tensor, sizes: Sequence[int], k: int, min_scale: float, *, compiled: bool = True
) -> Tensor:
    r""":math:`-\log p(y)` of outputs ``(B, sum(sizes))`` and outcomes ``(B, d)``, ``(B,)``.

    ``compiled=False`` keeps to tensor operations on the CPU too.

    Examples
    --------
    >>> out = torch.tensor([[-1.0, 1.0, math.log(0.5), 0.0, 0.0, 0.0]]).double()
    >>> round(head_nll(out, torch.tensor([[0.3]]).double(), (2, 2, 2), 2, 0.0).item(), 6)
    1.773665
    """
    graph = torch.is_grad_enabled() and out.requires_grad
    if graph and out.ndim == 2 and not functorch_active():
        able = compiled and out.device.type == "cpu" and out.dtype in (torch.float32, torch.float64)
        function = _RowsNLL if able else _HeadNLL
        loss: Tensor = function.apply(out, y.to(out.dtype), tuple(sizes), k, min_scale)
        return loss
    return mixture_nll(*head_parameters(out, sizes, k, min_scale), y)


class _HeadNLL(Function):
    @staticmethod
    def forward(
        ctx: Any, out: Tensor, y: Tensor, sizes: tuple[int, ...], k: int, min_scale: float
    ) -> Tensor:
        rows, d = y.shape
        mean, raw, logits = out.split(sizes, 1)
        scale = raw.view(rows, k, -1).exp()
        sigma = scale + min_scale
        u = (y.unsqueeze(1) - mean.view(rows, k, d)) / sigma  # (B, K, d)
        square = u.square()
        if sigma.shape[2] == 1:
            if d > 1:
                square = square.sum(2, keepdim=True)
            joint = torch.add(sigma.log()[:, :, 0], square[:, :, 0], alpha=0.5 / d).mul_(-d)
        else:
            joint = torch.add(sigma.log(), square, alpha=0.5).sum(2).neg_()
        if sizes[2]:
            pi = torch.log_softmax(logits, 1)
            joint += pi
            ctx.pi = pi
        log_p = torch.logsumexp(joint, 1, keepdim=True)
        ctx.save_for_backward(out, y)
        ctx.kept = scale, sigma, u, square, joint, log_p
        ctx.shape = sizes, k, min_scale
        constant = 0.5 * d * math.log(2 * math.pi) + (0.0 if sizes[2] else math.log(k))
        return constant - log_p.squeeze(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        out, y = ctx.saved_tensors
        sizes, _, _ = ctx.shape
        if torch.is_grad_enabled():
            return _again(ctx, out, y, g)
        scale, sigma, u, square, joint, log_p = ctx.kept
        g = g.unsqueeze(1)
        r = (joint - log_p).exp_()
        gr = (r * g).unsqueeze(2)  # (B, K, 1)
        pull = (gr * u).div_(sigma)
        free = u.shape[2] if sigma.shape[2] == 1 else 1
        width = (free - square).mul_(scale).div_(sigma).mul_(gr)
        parts = [pull.flatten(1).neg(), width.flatten(1)]
        if sizes[2]:
            parts.append(ctx.pi.exp().sub_(r).mul_(g))
        gy = pull.sum(1) if ctx.needs_input_grad[1] else None
        return torch.cat(parts, 1), gy, None, None, None


class _RowsNLL(Function):
    @staticmethod
    def forward(
        ctx: Any, out: Tensor, y: Tensor, sizes: tuple[int, ...], k: int, min_scale: float
    ) -> Tensor:
        from groundstate.math.distributions.mixture_numba import head_rows

        grad, gy, nll = torch.empty_like(out), torch.empty_like(y), out.new_empty(len(out))
        o, t, e, g, h = (v.detach().numpy() for v in (out, y, nll, grad, gy))
        head_rows(o, t, k, sizes[1] // k, sizes[2] > 0, min_scale, e, g, h)
        ctx.save_for_backward(out, y)
        ctx.kept, ctx.shape = (grad, gy), (sizes, k, min_scale)
        return nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            out, y = ctx.saved_tensors
            return _again(ctx, out, y, grads[0])
        g = grads[0].unsqueeze(1)
        grad, gy = ctx.kept
        return grad * g, gy * g if ctx.needs_input_grad[1] else None, None, None, None


def _again(ctx: Any, out: Tensor, y: Tensor, g: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients that can be differentiated again, by the plain formula."""
    sizes, k, min_scale = ctx.shape
    e = mixture_nll(*head_parameters(out, sizes, k, min_scale), y)
    wanted = [v for v in (out, y) if v.requires_grad]
    found = iter(torch.autograd.grad(e, wanted, g, create_graph=True))
    pair = [next(found) if v.requires_grad else None for v in (out, y)]
    return pair[0], pair[1], None, None, None
