r"""Every update rule in a few lines of NumPy: to read, and as the oracle of the fast ones.

A rule is a function ``rule(theta, g, state, lr, ...)`` that returns the new parameters and keeps what
it remembers in ``state``, under the names that ``torch.optim`` uses. ``run`` repeats it. Options give
variants that textbooks write: ε inside the root, no bias correction, no root, momentum as a moving
average, Nesterov's gradient at the point ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]
State = dict[str, Any]
Rule = Callable[..., F64]


def gd(theta: F64, g: F64, state: State, lr: float = 0.1) -> F64:
    r""":math:`\theta \leftarrow \theta - \alpha g`."""
    return theta - lr * g


def momentum(
    theta: F64, g: F64, state: State, lr: float = 0.1, mu: float = 0.9, ema: bool = False,
    nesterov: bool = False,
) -> F64:  # fmt: skip
    r""":math:`v \leftarrow \mu v + g,\ \theta \leftarrow \theta - \alpha v`.

    ``ema`` weights the gradient with :math:`1 - \mu`; ``nesterov`` steps along :math:`g + \mu v`.
    """
    v = mu * state.get("momentum_buffer", np.zeros_like(theta)) + (1 - mu if ema else 1.0) * g
    state["momentum_buffer"] = v
    return theta - lr * (g + mu * v if nesterov else v)


def look_ahead(
    theta: F64, grad: Callable[[F64], F64], state: State, lr: float = 0.1, mu: float = 0.9
) -> F64:
    r"""Nesterov: the gradient at :math:`\theta - \alpha\mu v`, then :math:`v \leftarrow \mu v + g`,
    :math:`\theta \leftarrow \theta - \alpha v`; takes the function, not the gradient.
    """
    v = state.get("momentum_buffer", np.zeros_like(theta))
    state["momentum_buffer"] = v = mu * v + grad(theta - lr * mu * v)
    return theta - lr * v


def adagrad(
    theta: F64, g: F64, state: State, lr: float = 0.1, eps: float = 1e-10, inside: bool = False,
    root: bool = True,
) -> F64:  # fmt: skip
    r""":math:`s \leftarrow s + g^2,\ \theta \leftarrow \theta - \alpha g/(\sqrt s + \varepsilon)`.

    ``inside`` is :math:`\sqrt{s + \varepsilon}`; without ``root`` it divides by :math:`s + \varepsilon`.
    """
    s = state["sum"] = state.get("sum", 0.0) + g**2
    return theta - lr * g / scale(s, eps, inside, root)


def rmsprop(
    theta: F64, g: F64, state: State, lr: float = 0.1, alpha: float = 0.99, eps: float = 1e-8,
    inside: bool = False,
) -> F64:  # fmt: skip
    r""":math:`s \leftarrow \gamma s + (1-\gamma)g^2`,
    :math:`\theta \leftarrow \theta - \alpha g/(\sqrt s + \varepsilon)`.
    """
    s = state["square_avg"] = alpha * state.get("square_avg", 0.0) + (1 - alpha) * g**2
    return theta - lr * g / scale(s, eps, inside)


def adadelta(
    theta: F64, g: F64, state: State, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6
) -> F64:
    r"""RMSprop with the rate replaced by the size of past steps, :math:`\sqrt{u + \varepsilon}`."""
    s = state["square_avg"] = rho * state.get("square_avg", 0.0) + (1 - rho) * g**2
    u = state.get("acc_delta", np.zeros_like(theta))
    step = g * np.sqrt(u + eps) / np.sqrt(s + eps)
    state["acc_delta"] = rho * u + (1 - rho) * step**2
    return theta - lr * step


def adam(
    theta: F64, g: F64, state: State, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8, correct: bool = True, inside: bool = False, weight_decay: float = 0.0,
    decoupled: bool = False, amsgrad: bool = False,
) -> F64:  # fmt: skip
    r""":math:`m \leftarrow \beta_1m + (1-\beta_1)g,\ s \leftarrow \beta_2s + (1-\beta_2)g^2,\
    \theta \leftarrow \theta - \alpha\hat m/(\sqrt{\hat s} + \varepsilon)`, hats divided by
    :math:`1 - \beta^t`.

    ``decoupled`` weight decay is AdamW; else it is added to g. ``amsgrad`` keeps the largest s.
    """
    b1, b2 = betas
    t = state["step"] = state.get("step", 0) + 1
    theta, g = (
        (theta * (1 - lr * weight_decay), g) if decoupled else (theta, g + weight_decay * theta)
    )
    m = state["exp_avg"] = b1 * state.get("exp_avg", 0.0) + (1 - b1) * g
    s = state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", 0.0) + (1 - b2) * g**2
    if amsgrad:
        s = state["max_exp_avg_sq"] = np.maximum(state.get("max_exp_avg_sq", 0.0), s)
    c1, c2 = (1 - b1**t, 1 - b2**t) if correct else (1.0, 1.0)
    return theta - lr * (m / c1) / scale(s / c2, eps, inside)


def adamw(theta: F64, g: F64, state: State, lr: float = 1e-3, **options: Any) -> F64:
    """Adam with decoupled weight decay, 0.01 unless given."""
    return adam(theta, g, state, lr, **{"weight_decay": 0.01, "decoupled": True, **options})


def scale(s: F64, eps: float, inside: bool = False, root: bool = True) -> F64:
    r""":math:`\sqrt s + \varepsilon`, or the textbooks' :math:`\sqrt{s + \varepsilon}` or
    :math:`s + \varepsilon`.
    """
    if not root:
        return s + eps
    return np.sqrt(s + eps) if inside else np.sqrt(s) + eps


RULES: dict[str, Rule] = {
    "gd": gd, "momentum": momentum, "look_ahead": look_ahead, "adagrad": adagrad,
    "rmsprop": rmsprop, "adadelta": adadelta, "adam": adam, "adamw": adamw,
}  # fmt: skip


def run(
    rule: str | Rule, grad: Callable[[F64], F64], theta0: ArrayLike, steps: int, **options: Any
) -> F64:
    """The path of a rule from a start, ``(steps + 1, *shape)``.

    Parameters
    ----------
    rule : a name of ``RULES``, or a function like them
    grad : gradient of the loss
    theta0 : start
    steps : number of updates
    options : of the rule

    Examples
    --------
    >>> run("momentum", lambda x: x, 1.0, 3, lr=0.1).round(6).tolist()
    [1.0, 0.9, 0.72, 0.486]
    """
    if isinstance(rule, str) and rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    step = RULES[rule] if isinstance(rule, str) else rule
    theta, state = np.asarray(theta0, dtype=np.float64), State()
    path = [theta]
    for _ in range(steps):
        theta = step(theta, grad if step is look_ahead else grad(theta), state, **options)
        path.append(theta)
    return np.stack(path)


__all__ = ["RULES", "run", *sorted(RULES)]
