r"""The optimisers as the notes write them, one scalar at a time: what the fast ones are held to."""

from __future__ import annotations

import math
from collections.abc import Callable

from groundstate.errors import Unsupported

NAMES = ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adadelta", "adam", "adamw")


def descend(
    name: str,
    gradient: Callable[[float], float],
    theta: float,
    steps: int,
    lr: float,
    *,
    mu: float = 0.9,
    rho: float = 0.9,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    decay: float = 0.0,
    eps_inside: bool = False,
) -> list[float]:
    r"""θ after each of some steps, :math:`\theta \leftarrow \theta - \eta\,\mathrm{opt}(g)`.

    Parameters
    ----------
    name : one of ``NAMES``
    gradient : g as a function of θ
    theta, steps, lr : start, number of steps and η
    mu, rho, betas, eps, decay : of the optimisers that have them
    eps_inside : divide by :math:`\sqrt{v + \epsilon}`, the notes' form, instead of torch's
        :math:`\sqrt v + \epsilon`

    Examples
    --------
    >>> [round(t, 4) for t in descend("momentum", lambda t: t, 1.0, 3, 0.1)]
    [0.9, 0.72, 0.486]
    """
    if name not in NAMES:
        raise Unsupported(f"optimiser {name!r} is not known; use one of {', '.join(NAMES)}")

    def root(v: float) -> float:
        return math.sqrt(v + eps) if eps_inside else math.sqrt(v) + eps

    v = m = moved = 0.0
    seen = []
    for t in range(1, steps + 1):
        g = gradient(theta)
        if name in ("sgd", "momentum", "nesterov"):
            v = (0.0 if name == "sgd" else mu) * v + g
            theta -= lr * (g + mu * v if name == "nesterov" else v)
        elif name == "adagrad":
            v += g * g
            theta -= lr * g / root(v)
        elif name == "rmsprop":
            v = rho * v + (1 - rho) * g * g
            theta -= lr * g / root(v)
        elif name == "adadelta":
            v = rho * v + (1 - rho) * g * g
            step = math.sqrt(moved + eps) / math.sqrt(v + eps) * g
            moved = rho * moved + (1 - rho) * step * step
            theta -= lr * step
        else:
            if name == "adamw":
                theta -= lr * decay * theta
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            theta -= lr * (m / (1 - betas[0] ** t)) / root(v / (1 - betas[1] ** t))
        seen.append(theta)
    return seen


__all__ = ["NAMES", "descend"]
