r"""Losses of a distance as heads, :math:`\ell = \sum_j\rho(y_j - f_j)`: the location is learned, the
shape of the noise is fixed.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.math.losses import ResidualLoss, loss_of
from groundstate.nn.heads.base import Head

LOCATIONS = ("squared_error", "absolute_error", "huber", "quantile")


class LocationHead(Head):
    r"""One output per coordinate, :math:`\ell = \sum_j\rho(y_j - f_j)`.

    =============== ============================================================ =================
    name            ρ(r)                                                         f is the
    =============== ============================================================ =================
    squared_error   ½r²                                                          mean
    absolute_error  abs r                                                        median
    huber           ½r² where abs r ≤ δ, else δ(abs r − ½δ)                      between the two
    quantile        r(q − 1[r < 0])                                              q-quantile
    =============== ============================================================ =================

    :math:`\int e^{-\ell/T}dy` does not depend on f, so lowering the loss is maximum likelihood under
    noise of that shape: normal, Laplace, Huber's, asymmetric Laplace.

    Parameters
    ----------
    name : one of the table
    m : coordinates of y
    delta : δ of "huber"
    q : of "quantile"

    Examples
    --------
    >>> head = LocationHead("quantile", q=0.9)
    >>> head(torch.zeros(2, 1), torch.tensor([[1.0], [-1.0]]))
    tensor([0.9000, 0.1000])
    """

    kind = "real"

    def __init__(
        self, name: str = "squared_error", m: int = 1, delta: float = 1.0, q: float = 0.5
    ) -> None:
        super().__init__()
        if name not in LOCATIONS:
            raise ValueError(f"a location loss is one of {', '.join(LOCATIONS)}, got {name!r}")
        if not delta > 0 or not 0 < q < 1:
            raise ValueError(f"needs delta > 0 and 0 < q < 1, got delta={delta}, q={q}")
        self.name, self.m, self.n_outputs = name, m, m
        self.delta, self.q = float(delta), float(q)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "m": self.m, "delta": self.delta, "q": self.q}

    @property
    def point_loss(self) -> ResidualLoss:
        """ρ, of the one table of losses."""
        options = {"huber": {"delta": self.delta}, "quantile": {"q": self.q}}
        loss = loss_of(self.name, **options.get(self.name, {}))
        assert isinstance(loss, ResidualLoss)
        return loss

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        return self.point_loss.value(raw, y).sum(-1)

    def dist(self, raw: Tensor, T: float = 1.0) -> Distribution:
        """The distribution :math:`e^{-\\ell/T}/Z` of the two shapes that torch has."""
        if self.name == "squared_error":
            distribution: Any = D.Normal(
                raw, torch.full_like(raw, math.sqrt(T)), validate_args=False
            )
        elif self.name == "absolute_error":
            distribution = D.Laplace(raw, torch.full_like(raw, T), validate_args=False)
        else:
            return super().dist(raw)
        return D.Independent(distribution, 1, validate_args=False)

    @property
    def has_distribution(self) -> bool:
        return self.name in ("squared_error", "absolute_error")

    def mean(self, raw: Tensor) -> Tensor:
        return self.raw(raw)

    mode = mean
    predict = mean

    def log_constant(self, T: float = 1.0) -> float:
        r""":math:`\log\int e^{-\ell/T}dy`, which is free of θ."""
        return self.m * self.point_loss.noise(T).log_constant
