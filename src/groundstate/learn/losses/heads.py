r"""Losses that are no likelihood, as the end of a network: raw outputs to a value per row and a
prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional

from groundstate.errors import Unsupported
from groundstate.learn.losses.contract import summed
from groundstate.learn.losses.margin import multiclass_margin_rows
from groundstate.learn.losses.overlap import dice_rows, focal_rows
from groundstate.learn.losses.regression import squared_rows
from groundstate.learn.losses.simplex import brier_rows, squared_onehot_rows
from groundstate.math.losses import loss_of
from groundstate.nn.heads.base import Head, Kind


@dataclass(frozen=True)
class Rows:
    """A loss of raw outputs ``(B, m)``, with the names and defaults of its settings."""

    kind: Kind
    loss: Callable[..., Tensor]
    options: dict[str, float]
    is_probabilistic: bool = False  # softmax of the scores estimates probabilities


def _dice(s: Tensor, y: Tensor) -> Tensor:
    hot = functional.one_hot(y, s.shape[1]).to(s.dtype)
    return dice_rows(torch.softmax(s, 1)[:, None], hot[:, None])


def _smooth(s: Tensor, y: Tensor, label_smoothing: float) -> Tensor:
    return functional.cross_entropy(s, y, label_smoothing=label_smoothing, reduction="none")


ROWS: dict[str, Rows] = {
    "squared": Rows("real", squared_rows, {}),
    "absolute": Rows("real", partial(summed, "absolute_error"), {}),
    "huber": Rows("real", partial(summed, "huber"), {"delta": 1.0}),
    "quantile": Rows("real", partial(summed, "quantile"), {"q": 0.5}),
    "smoothed_cross_entropy": Rows("labels", _smooth, {"label_smoothing": 0.1}, True),
    "hinge": Rows("labels", multiclass_margin_rows, {"m": 1.0}),
    "brier": Rows("labels", brier_rows, {}, True),
    "squared_onehot": Rows("labels", squared_onehot_rows, {}),
    "focal": Rows("labels", focal_rows, {"gamma": 2.0}, True),
    "dice": Rows("labels", _dice, {}, True),
}


class LossHead(Head):
    r"""A loss of raw outputs, :math:`e(x, y) = \ell(f_\theta(x), y)`; what it predicts is its argmin
    in y.

    Parameters
    ----------
    name : squared, absolute, huber (delta), quantile (q) for m real outputs; hinge (m, the margin),
        brier, squared_onehot, focal (gamma), dice, smoothed_cross_entropy (label_smoothing) for m
        labels
    m : coordinates of y, or labels
    options : settings of the loss, in parentheses above

    Examples
    --------
    >>> head = LossHead("huber", options={"delta": 2.0})
    >>> head(torch.tensor([[1.0], [4.0]]), torch.zeros(2, 1))
    tensor([0.5000, 6.0000])
    >>> LossHead("hinge", 3).predict(torch.tensor([[0.0, 2.0, 1.0]]))
    tensor([1])
    """

    is_likelihood = False

    def __init__(self, name: str, m: int = 1, options: dict[str, float] | None = None) -> None:
        super().__init__()
        if name not in ROWS:
            raise Unsupported(f"there is no loss {name!r}; use one of {', '.join(ROWS)}")
        given, row = dict(options or {}), ROWS[name]
        unknown = set(given) - set(row.options)
        if unknown:
            known = ", ".join(row.options) or "none"
            raise ValueError(f"{name!r} has no setting {sorted(unknown)[0]!r}; it has {known}")
        if name in ("huber", "quantile"):
            loss_of(name, **given)  # which checks its settings
        if not given.get("m", 1.0) > 0:
            raise ValueError(f"m must be positive, got {given['m']}")
        self.name, self.m, self.options = name, m, row.options | given
        self.kind, self.n_outputs = row.kind, m

    @property
    def row(self) -> Rows:
        return ROWS[self.name]

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "m": self.m, "options": dict(self.options)}

    def extra_repr(self) -> str:
        return ", ".join(
            [repr(self.name), f"m={self.m}", *(f"{k}={v}" for k, v in self.options.items())]
        )

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        return self.row.loss(self.raw(raw), self.target(y, raw), **self.options)

    def dist(self, raw: Tensor) -> Distribution:
        if self.row.is_probabilistic:
            return D.Categorical(logits=self.raw(raw), validate_args=False)
        return super().dist(raw)

    def predict(self, raw: Tensor) -> Tensor:
        return self.raw(raw).argmax(1) if self.kind == "labels" else self.raw(raw)

    def mean(self, raw: Tensor) -> Tensor:
        if self.kind == "labels":
            return self.dist(raw).probs  # type: ignore[attr-defined]
        return self.predict(raw)

    def mode(self, raw: Tensor) -> Tensor:
        return self.predict(raw)
