r"""The one table of losses of a score: linear models, GLMs, boosting, additive energies, networks.

============================  ================================================  =====================
name                          :math:`\ell(\eta, y)`                             best constant
============================  ================================================  =====================
squared_error                 ½(y − η)²                                         mean
absolute_error                ∣y − η∣                                           median
quantile (q)                  (y − η)(q − 1[y < η])                             q-quantile
huber (delta)                 ½r² up to δ, then δ(∣r∣ − δ/2)                    between the two
epsilon_insensitive           max(0, ∣r∣ − ε)                                   middle of the tube
squared_epsilon_insensitive   max(0, ∣r∣ − ε)²
poisson, gamma, tweedie       half the deviance from :math:`e^\eta`             log of the mean
log_loss                      log(1 + e^η) − yη, y of 0 or 1                    log odds
exponential                   e^{−sη}, s = 2y − 1                               half the log odds
hinge, perceptron             max(0, m − sη), m = 1 and 0                       the majority's sign
squared_hinge                 max(0, 1 − sη)²                                   2p − 1
modified_huber                max(0, 1 − sη)², linear below −1                  2p − 1
cross_entropy                 log Σ e^{η_k} − η_y                               log shares
============================  ================================================  =====================
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any

from groundstate.errors import Unsupported
from groundstate.math.losses.base import PointLoss, weighted_quantile
from groundstate.math.losses.classes import (
    CrossEntropy,
    ExponentialLoss,
    Hinge,
    LogLoss,
    ModifiedHuber,
    SquaredHinge,
)
from groundstate.math.losses.deviance import Deviance, gamma, poisson, tweedie
from groundstate.math.losses.values import (
    AbsoluteError,
    EpsilonInsensitive,
    Huber,
    Quantile,
    ResidualLoss,
    SquaredEpsilonInsensitive,
    SquaredError,
)

TABLE: dict[str, Callable[..., PointLoss]] = {
    **{
        cls.name: cls
        for cls in (
            SquaredError, AbsoluteError, Quantile, Huber, EpsilonInsensitive,
            SquaredEpsilonInsensitive, LogLoss, ExponentialLoss, Hinge, SquaredHinge, ModifiedHuber,
            CrossEntropy,
        )
    },
    "perceptron": partial(Hinge, 0.0),
    "poisson": poisson,
    "gamma": gamma,
    "tweedie": tweedie,
}  # fmt: skip


def loss_of(loss: str | PointLoss, **options: Any) -> PointLoss:
    """A loss by name, or the loss itself.

    Examples
    --------
    >>> loss_of("huber", delta=2.0)
    Huber(delta=2.0)
    """
    if isinstance(loss, PointLoss):
        return loss
    if loss not in TABLE:
        near = get_close_matches(str(loss), TABLE, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(TABLE)}."
        raise Unsupported(f"there is no loss named {loss!r}; {hint}")
    return TABLE[loss](**options)


__all__ = [
    "TABLE",
    "AbsoluteError",
    "CrossEntropy",
    "Deviance",
    "EpsilonInsensitive",
    "ExponentialLoss",
    "Hinge",
    "Huber",
    "LogLoss",
    "ModifiedHuber",
    "PointLoss",
    "Quantile",
    "ResidualLoss",
    "SquaredEpsilonInsensitive",
    "SquaredError",
    "SquaredHinge",
    "loss_of",
    "weighted_quantile",
]
