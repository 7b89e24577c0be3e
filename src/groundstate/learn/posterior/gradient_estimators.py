r"""Gradients of an average, :math:`\nabla_\varphi E_{q_\varphi}[f(z)]`, from draws of z."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.compute.random import split
from groundstate.errors import Unsupported
from groundstate.learn.rules.variational import seeded
from groundstate.math.distributions.operations import draw

Function = Callable[[Tensor], Tensor]
Baseline = Literal["mean", "leave_one_out", "optimal"] | Tensor | float | nn.Module | None


def score_function(
    f: Function,
    q: Distribution,
    n: int = 1,
    baseline: Baseline = None,
    *,
    context: Tensor | None = None,
    penalty: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""A surrogate with value :math:`\tfrac1n\sum f(z_i)` and gradient
    :math:`\tfrac1n\sum (f(z_i) - b)\nabla\log q(z_i)`, unbiased for any q.

    ``.backward()`` on it gives the estimate. Where f depends on other parameters their gradient
    :math:`\tfrac1n\sum\nabla f(z_i)` comes along. With :math:`q = \mathrm{softmax}(-e)`,
    :math:`\nabla\log q(y) = -\nabla e(y) + E_q[\nabla e]`. For a normal distribution the score of the mean is
    :math:`\varepsilon/s`.

    Parameters
    ----------
    f : maps draws ``(n, *batch, *event)`` to values ``(n, *batch)``
    q : a distribution whose parameters require gradients
    n : number of draws
    baseline : what is taken off f, which changes the variance but not the mean as long as it does
        not depend on the draw:
        None, a number or tensor;
        "mean": :math:`E_q[f]`, summed exactly over a finite q, else from n draws of their own;
        "leave_one_out": the mean of the other draws, n ≥ 2;
        "optimal": :math:`b^* = E[f\|s\|^2]/E\|s\|^2` with the score :math:`s = \nabla\log q`, which
        minimises the total variance (the mean only minimises an upper bound of it);
        a network of ``context``, which learns along by squared error and so fits the mean
    context : input of a network baseline, ``(*batch, ...)``
    penalty : strength of a penalty on :math:`\|\nabla\log q(z_i)\|^2`
    generator : source of randomness

    Returns
    -------
    scalar tensor, summed over the batch

    Examples
    --------
    >>> from torch.distributions import Categorical
    >>> logits = torch.tensor([0.5, 0.3, 0.2]).log().requires_grad_()
    >>> reward = torch.tensor([1.0, 2.0, 4.0])
    >>> g = torch.Generator().manual_seed(0)
    >>> J = score_function(lambda z: reward[z], Categorical(logits=logits), 20000, generator=g)
    >>> J.backward()
    >>> bool(torch.allclose(logits.grad, torch.tensor([-0.45, 0.03, 0.42]), atol=0.05))
    True
    """
    if n < 1:
        raise ValueError(f"at least one draw is needed, got n={n}")
    own, other = split(generator, 2)
    z = draw(q, n, own)
    values, log_q = f(z), q.log_prob(z)
    fixed = values.detach()
    b: Tensor | float
    extra = values.new_zeros(())
    if isinstance(baseline, nn.Module):
        predicted = _predict(baseline, context, fixed)
        b = predicted.detach()
        fit = 0.5 * (fixed - predicted).square().mean(0).sum()
        extra = fit - fit.detach()
    else:
        b = _baseline(baseline, f, q, fixed, other)
    surrogate = values + (fixed - b) * (log_q - log_q.detach())
    if penalty:
        squared = scores(q, z, create_graph=True).square().sum(-1).mean() * penalty
        extra = extra + squared - squared.detach()
    return surrogate.mean(0).sum() + extra


def pathwise(
    f: Function, q: Distribution, n: int = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    r"""A surrogate with value :math:`\tfrac1n\sum f(z_i)` whose gradient passes through the draws
    :math:`z_i = g(\varepsilon_i;\varphi)`:
    :math:`\tfrac1n\sum \nabla_z f(z_i)\,\partial z_i/\partial\varphi`.

    For a location-scale distribution :math:`z = \mu + s\varepsilon`. A distribution that cannot be
    reparameterised falls back to ``score_function`` with a leave-one-out baseline, and says so.

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> mu, s = torch.tensor(0.7, requires_grad=True), torch.tensor(0.5, requires_grad=True)
    >>> g = torch.Generator().manual_seed(0)
    >>> pathwise(lambda z: z**2, Normal(mu, s), 100_000, generator=g).backward()
    >>> round(float(mu.grad), 1), round(float(s.grad), 1)  # 2μ, 2s
    (1.4, 1.0)
    """
    if not q.has_rsample:
        warnings.warn(
            f"{type(q).__name__} cannot be reparameterised, so pathwise uses the score function "
            "with a leave-one-out baseline",
            UserWarning,
            stacklevel=2,
        )
        return score_function(f, q, max(n, 2), "leave_one_out", generator=generator)
    return f(place(q, n, generator)).mean(0).sum()


def place(q: Distribution, n: int, generator: torch.Generator | None) -> Tensor:
    """``n`` draws ``(n, *batch, *event)`` that carry gradients, from an explicit generator."""
    with seeded(generator):
        return q.rsample(torch.Size([n]))


def _predict(net: nn.Module, context: Tensor | None, like: Tensor) -> Tensor:
    if context is None:
        raise ValueError("a network baseline needs context=, the values it predicts from")
    predicted: Tensor = net(context)
    if predicted.shape[: like.ndim - 1] != like.shape[1:]:
        raise ValueError(
            f"the network baseline must return {tuple(like.shape[1:])} or one more axis of size 1, "
            f"got {tuple(predicted.shape)}"
        )
    return predicted.reshape(like.shape[1:])


def _baseline(
    baseline: Baseline,
    f: Function,
    q: Distribution,
    values: Tensor,
    generator: torch.Generator,
) -> Tensor | float:
    if baseline is None:
        return 0.0
    if isinstance(baseline, Tensor | int | float):
        return baseline
    n = values.shape[0]
    if baseline == "leave_one_out":
        if n < 2:
            raise ValueError("leave_one_out compares a draw with the others and needs n >= 2")
        return (values.sum(0) - values) / (n - 1)
    if baseline not in ("mean", "optimal"):
        raise ValueError(
            f"baseline must be None, a number, a network, 'mean', 'leave_one_out' or 'optimal', "
            f"got {baseline!r}"
        )
    z, weights = support(q, n, generator)
    with torch.no_grad():
        each = f(z)
    if baseline == "optimal":
        weights = weights * scores(q, z).square().sum(-1)
        total = weights.sum(0)
        return torch.where(total > 0, (weights * each).sum(0) / total.clamp_min(1e-30), 0.0)
    return (weights * each).sum(0)


def support(q: Distribution, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Values with weights that average over q: all of them for a finite distribution, else ``n`` draws."""
    if q.has_enumerate_support:
        z = q.enumerate_support(expand=True)
        return z, q.log_prob(z).exp().detach()
    z = draw(q, max(n, 2), generator)
    return z, torch.full_like(q.log_prob(z).detach(), 1 / len(z))


def scores(q: Distribution, z: Tensor, create_graph: bool = False) -> Tensor:
    r"""The score :math:`\nabla_\varphi\log q(z)` of every draw, ``(n, *batch, P)``.

    φ are the leaf tensors that ``q.log_prob`` depends on.
    """
    log_q = q.log_prob(z)
    return per_value(log_q, leaves(log_q), create_graph)


def per_value(values: Tensor, phi: Sequence[Tensor], create_graph: bool = False) -> Tensor:
    """The gradient of every entry of ``values`` with respect to all of φ, ``(*shape, P)``."""
    flat = values.reshape(-1)
    width = sum(p.numel() for p in phi)
    settings = {"retain_graph": True, "materialize_grads": True}
    if width >= len(flat):  # few values of many parameters: one pass back from each value
        eye = torch.eye(len(flat), dtype=flat.dtype, device=flat.device)
        grads = torch.autograd.grad(
            flat, phi, eye, is_grads_batched=True, create_graph=create_graph, **settings
        )
        stacked = torch.cat([g.reshape(len(flat), -1) for g in grads], 1)
        return stacked.reshape(*values.shape, -1)
    # Many values of few parameters: Jᵀv is linear in v, so its derivative in v holds the columns
    # of J, one pass for each parameter.
    v = torch.ones_like(flat, requires_grad=True)
    pulled = torch.autograd.grad(flat, phi, v, create_graph=True, **settings)
    total = torch.cat([g.reshape(-1) for g in pulled])  # Jᵀv, (P,)
    if not total.requires_grad:
        return torch.zeros(*values.shape, width, dtype=flat.dtype, device=flat.device)
    eye = torch.eye(width, dtype=flat.dtype, device=flat.device)
    (columns,) = torch.autograd.grad(
        total, v, eye, is_grads_batched=True, create_graph=create_graph, **settings
    )
    return columns.T.reshape(*values.shape, -1)


def leaves(value: Tensor) -> list[Tensor]:
    """The leaf tensors a value depends on, in the order in which its graph meets them."""
    found: list[Tensor] = []
    seen: set[object] = set()
    stack = [value.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, Tensor):
            found.append(leaf)
        stack.extend(child for child, _ in reversed(node.next_functions))
    if not found:
        raise Unsupported("no parameter of q requires a gradient; call requires_grad_() on it")
    return found
