r"""Optimisers by name: torch's own, with torch's parameters, and their steps without bookkeeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import (
    foreach_add_,
    foreach_sub_,
    fused_adam_,
    fused_adamw_,
    fused_sgd_,
)
from groundstate.compute.population.named import OPTIMIZERS as TABLE
from groundstate.errors import Unsupported

Optimizer = Callable[..., torch.optim.Optimizer]  # (parameters, lr) -> optimiser


def adam(parameters: Sequence[Any], lr: float = 1e-3, **settings: Any) -> torch.optim.Optimizer:
    r"""Adam, :math:`\theta \leftarrow \theta - \eta\,\hat m/(\sqrt{\hat v} + \epsilon)`, fused.

    ``settings`` are those of ``torch.optim.Adam``; ``weight_decay`` is L2 inside the gradient.

    Examples
    --------
    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = adam([theta], lr=0.1)
    >>> theta.grad = theta.detach().clone()
    >>> optimizer.step()
    >>> round(theta.item(), 6)
    0.9
    """
    return TABLE["adam"].one(parameters, lr, **settings)


def adamw(parameters: Sequence[Any], lr: float = 1e-3, **settings: Any) -> torch.optim.Optimizer:
    r"""Adam with decoupled decay, :math:`\theta \leftarrow (1 - \eta\lambda)\theta - \dots`."""
    return TABLE["adamw"].one(parameters, lr, **settings)


def sgd(parameters: Sequence[Any], lr: float = 1e-3, **settings: Any) -> torch.optim.Optimizer:
    r"""Plain stochastic gradient descent, :math:`\theta \leftarrow \theta - \eta g`."""
    return TABLE["sgd"].one(parameters, lr, **settings)


def momentum(parameters: Sequence[Any], lr: float = 1e-3, **settings: Any) -> torch.optim.Optimizer:
    r"""The heavy ball, :math:`v \leftarrow \mu v + g,\ \theta \leftarrow \theta - \eta v`.

    The form with :math:`(1-\beta)g` is this one at the rate :math:`\eta(1-\beta)`.
    """
    return TABLE["momentum"].one(parameters, lr, **settings)


def nesterov(parameters: Sequence[Any], lr: float = 1e-3, **settings: Any) -> torch.optim.Optimizer:
    r"""Nesterov's momentum, seen at the look-ahead point :math:`\theta - \mu\eta v`."""
    return TABLE["nesterov"].one(parameters, lr, **settings)


def rmsprop(parameters: Sequence[Any], lr: float = 1e-2, **settings: Any) -> torch.optim.Optimizer:
    r"""RMSprop, :math:`\theta \leftarrow \theta - \eta g/(\sqrt{E[g^2]} + \epsilon)`."""
    return TABLE["rmsprop"].one(parameters, lr, **settings)


def adagrad(parameters: Sequence[Any], lr: float = 1e-2, **settings: Any) -> torch.optim.Optimizer:
    r"""Adagrad, :math:`\theta \leftarrow \theta - \eta g/(\sqrt{\sum g^2} + \epsilon)`."""
    return TABLE["adagrad"].one(parameters, lr, **settings)


def adadelta(parameters: Sequence[Any], lr: float = 1.0, **settings: Any) -> torch.optim.Optimizer:
    r"""Adadelta, whose steps have the unit of θ: :math:`\sqrt{E[\Delta^2]}/\sqrt{E[g^2]}\,g`."""
    return TABLE["adadelta"].one(parameters, lr, **settings)


OPTIMIZERS: dict[str, Optimizer] = {
    f.__name__: f for f in (adam, adamw, sgd, momentum, nesterov, rmsprop, adagrad, adadelta)
}
# a penalty of L2 inside the gradient is what these call weight_decay; AdamW means another thing
COUPLED = frozenset(f for name, f in OPTIMIZERS.items() if TABLE[name].coupled)


def optimizer_of(wish: str | Optimizer) -> Optimizer:
    """The optimiser of that name; a callable ``(parameters, lr)`` is its own.

    Examples
    --------
    >>> optimizer_of("adam") is adam
    True
    """
    if callable(wish):
        return wish
    try:
        return OPTIMIZERS[wish]
    except (KeyError, TypeError):
        raise Unsupported(
            f"optimizer {wish!r} is not known; use one of {', '.join(OPTIMIZERS)}, a torch.optim "
            "class, or a function (parameters, lr) -> torch.optim.Optimizer"
        ) from None


def of_population(wish: Optimizer) -> tuple[str, dict[str, Any]]:
    """Name and settings of an optimiser for a population: ours, with ``partial``, or torch's class.

    Examples
    --------
    >>> of_population(partial(adam, betas=(0.8, 0.99)))
    ('adam', {'beta1': 0.8, 'beta2': 0.99})
    """
    given: dict[str, Any] = {}
    while isinstance(wish, partial):
        given, wish = {**wish.keywords, **given}, wish.func
    for name, own in TABLE.items():
        if wish is OPTIMIZERS[name] or wish is own.alone:
            return name, own.for_population(name, given)
    raise Unsupported(
        f"optimizer {getattr(wish, '__name__', wish)!r} is not there for populations; use "
        f"{', '.join(TABLE)}, or fit the members one after the other"
    )


def couples_decay(wish: Optimizer) -> bool:
    """Whether ``weight_decay`` in a parameter group of this optimiser is L2 in the gradient."""
    while isinstance(wish, partial):
        if "weight_decay" in wish.keywords:
            return False
        wish = wish.func
    return wish in COUPLED or bool(getattr(wish, "couples_decay", False))


class Update:
    """``optimizer.step()``, without its bookkeeping where the optimiser is torch's fused Adam or SGD.

    torch walks all groups and states in Python at every step; here the lists are made once, and the
    same fused kernel is called, so the result is the same to the last bit.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.plain = _is_plain(optimizer)
        self.groups: list[tuple[dict[str, Any], list[Any], list[list[Tensor]]]] | None = None

    def forget(self) -> None:
        """The optimiser's state was replaced: look it up again."""
        self.groups = None

    @torch.no_grad()
    def __call__(self) -> None:
        if self.gradients() is None:
            self.optimizer.step()
            self.remember()
        else:
            self.apply()

    def remember(self) -> None:
        """After a step of the optimiser's own, which makes its state and checks everything."""
        if self.plain and self.groups is None:
            self.groups = self._lists()

    def gradients(self) -> list[Tensor] | None:
        """The gradients of all parameters, None where the optimiser itself must step."""
        if self.groups is None:
            return None
        grads = [p.grad for _, parameters, _ in self.groups for p in parameters]
        if any(g is None for g in grads):  # a part of θ that this batch does not touch
            self.groups = None
            return None
        return grads

    def apply(self, scale: Tensor | None = None, overflow: Tensor | None = None) -> None:
        """The fused kernels; gradients are divided by ``scale``, none counts where ``overflow`` is 1."""
        step = _adam_step if isinstance(self.optimizer, torch.optim.Adam) else _sgd_step
        assert self.groups is not None
        for group, parameters, states in self.groups:
            step(group, parameters, [p.grad for p in parameters], states, scale, overflow)

    def _lists(self) -> list[tuple[dict[str, Any], list[Any], list[list[Tensor]]]] | None:
        names = ("exp_avg", "exp_avg_sq", "step", "max_exp_avg_sq")
        if isinstance(self.optimizer, torch.optim.SGD):
            names = ("momentum_buffer",)  # type: ignore[assignment]
        lists = []
        for group in self.optimizer.param_groups:
            states = [self.optimizer.state.get(p, {}) for p in group["params"]]
            missing = isinstance(self.optimizer, torch.optim.Adam) and not all(states)
            if missing or (group.get("momentum") and not all(states)):
                return None  # some parameter has had no gradient yet
            columns = [[s[n] for s in states if s.get(n) is not None] for n in names]
            if group["params"]:
                lists.append((group, list(group["params"]), columns))
        return lists


def _is_plain(optimizer: torch.optim.Optimizer) -> bool:
    if type(optimizer) not in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD):
        return False
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return False
    if not (hasattr(torch, "_fused_adam_") and hasattr(torch, "_fused_sgd_")):
        return False
    return all(
        bool(g.get("fused"))
        and not isinstance(g["lr"], Tensor)
        and not g.get("differentiable")
        and not g.get("capturable")
        and len({(p.device, p.dtype) for p in g["params"]}) <= 1
        and all(type(p) in (torch.nn.Parameter, Tensor) for p in g["params"])
        for g in optimizer.param_groups
    )


def _adam_step(
    group: dict[str, Any],
    parameters: list[Any],
    grads: list[Any],
    states: list[list[Tensor]],
    scale: Tensor | None,
    overflow: Tensor | None,
) -> None:
    means, squares, steps, largest = states
    foreach_add_(steps, 1)
    kernel: Any = fused_adamw_ if group.get("decoupled_weight_decay") else fused_adam_
    beta1, beta2 = group["betas"]
    kernel(
        parameters, grads, means, squares, largest, steps,
        amsgrad=group["amsgrad"], lr=group["lr"], beta1=beta1, beta2=beta2,
        weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"],
        grad_scale=scale, found_inf=overflow,
    )  # fmt: skip
    if overflow is not None:  # a skipped step is not counted
        foreach_sub_(steps, [overflow] * len(steps))


def _sgd_step(
    group: dict[str, Any],
    parameters: list[Any],
    grads: list[Any],
    states: list[list[Tensor]],
    scale: Tensor | None,
    overflow: Tensor | None,
) -> None:
    bare = not (group["momentum"] or group["weight_decay"] or group["maximize"])
    if bare and scale is None:
        foreach_add_(parameters, grads, alpha=-group["lr"])
        return
    fused_sgd_(
        parameters, grads, states[0],
        weight_decay=group["weight_decay"], momentum=group["momentum"], lr=group["lr"],
        dampening=group["dampening"], nesterov=group["nesterov"], maximize=group["maximize"],
        is_first_step=False, grad_scale=scale, found_inf=overflow,
    )  # fmt: skip


def metric(optimizer: torch.optim.Optimizer, parameter: Tensor) -> float | Tensor:
    r"""The step :math:`s_j` in front of a settled gradient, :math:`\theta_j \leftarrow \theta_j -
    s_j g_j`: the scale in which a proximal map has the same fixed points as the objective.

    A number for gradient descent; a tensor like the parameter where rates differ by entry.
    """
    group = next(g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
    lr, state = group["lr"], optimizer.state.get(parameter, {})
    if isinstance(optimizer, torch.optim.SGD):
        mu = group["momentum"]
        return float(lr * (1 - group["dampening"]) / (1 - mu)) if mu else float(lr)
    eps = group.get("eps", 0.0)
    if isinstance(optimizer, torch.optim.Adam) and "exp_avg_sq" in state:
        beta2 = group["betas"][1]
        v = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
        t = state["step"].to(v.device, torch.float64)  # 1 - β₂ᵗ needs more digits than θ
        root = v.sqrt().div_((1 - beta2**t).sqrt()).add_(eps)
        return lr / root
    if isinstance(optimizer, torch.optim.RMSprop) and "square_avg" in state:
        v = state["square_avg"]
        if group["centered"]:
            v = v - state["grad_avg"].square()
        mu = group["momentum"]
        return (lr / (1 - mu)) / (v.sqrt() + eps)
    if isinstance(optimizer, torch.optim.Adagrad):
        t = state["step"].to(parameter.device)
        return (lr / (1 + (t - 1) * group["lr_decay"])) / (state["sum"].sqrt() + eps)
    if isinstance(optimizer, torch.optim.Adadelta) and "square_avg" in state:
        return lr * (state["acc_delta"] + eps).sqrt() / (state["square_avg"] + eps).sqrt()
    return float(lr)
