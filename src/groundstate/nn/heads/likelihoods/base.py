r"""What every likelihood of a reconstruction offers; the squared error and bits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional

from groundstate.errors import DataError, ShapeError
from groundstate.math.distributions.operations import draw


class Likelihood(nn.Module, ABC):
    r"""The contract: ``n_outputs`` numbers of a decoder become a distribution of rows ``(B, d)``.

    Attributes
    ----------
    name : of the table above
    d : columns of x
    n_outputs : numbers a decoder gives per row
    n_inputs : numbers an encoder gets per row, the width of ``inputs(x)``
    is_normalised : whether :math:`e^{-\text{loss}}` integrates to one over x
    """

    name: ClassVar[str]
    is_normalised: ClassVar[bool] = True
    d: int
    n_outputs: int

    def __init__(self, d: int) -> None:
        super().__init__()
        if d < 1:
            raise ValueError(f"a row has at least one column, got d={d}")
        self.d = self.n_outputs = d

    @property
    def n_inputs(self) -> int:
        return self.d

    def config(self) -> dict[str, Any]:
        return {"d": self.d}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.config().items())

    def inputs(self, x: Tensor) -> Tensor:
        """x as an encoder gets it, ``(B, n_inputs)``: levels one-hot, all else as it is."""
        return x

    @abstractmethod
    def distribution(self, out: Tensor) -> Distribution:
        """Of rows given the outputs; batch ``(B,)``, event ``(d,)``."""

    def log_prob(self, out: Tensor, x: Tensor) -> Tensor:
        """Of every row, ``(B,)``."""
        return self.distribution(self._checked(out)).log_prob(x)

    def forward(self, out: Tensor, x: Tensor) -> Tensor:
        """The loss of every row, :math:`-\\log p`, ``(B,)``."""
        return -self.log_prob(out, x)

    def mean(self, out: Tensor) -> Tensor:
        """The reconstruction, ``(B, d)``: the mean of numbers, the most probable level of categories."""
        return self.distribution(self._checked(out)).mean

    def sample(self, out: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One draw of every row, ``(B, d)``."""
        return draw(self.distribution(self._checked(out)), 1, generator)[0]

    def cell_variance(self) -> float | None:
        """Mean squared scale of the columns; None where there is no scale apart from the outputs."""
        return None

    def check(self, x: Tensor) -> None:
        """Raise ``DataError`` where x has values that this likelihood has no mass on."""

    def _checked(self, out: Tensor) -> Tensor:
        if out.ndim != 2 or out.shape[1] != self.n_outputs:
            raise ShapeError(
                f"the likelihood {self.name!r} of {self.d} columns needs outputs "
                f"(B, {self.n_outputs}), got {tuple(out.shape)}; let the decoder end in "
                f"{self.n_outputs} numbers"
            )
        return out

    def _refuse(self, x: Tensor, bad: Tensor, says: str) -> None:
        if bool(bad.any()):
            i, j = bad.nonzero()[0].tolist()
            raise DataError(f"x[{i}, {j}] is {x[i, j].item():g}, but {says}")


class SquaredError(Likelihood):
    r"""The squared error :math:`\|x - \hat x\|^2` as it is: a normal likelihood of variance ½ without
    its constant :math:`\tfrac d2\log\pi`.

    >>> SquaredError(2)(torch.zeros(1, 2), torch.tensor([[1.0, 2.0]]))
    tensor([5.])
    """

    name = "squared"
    is_normalised = False

    def distribution(self, out: Tensor) -> Distribution:
        normal = D.Normal(out, torch.full_like(out, math.sqrt(0.5)), validate_args=False)
        return D.Independent(normal, 1, validate_args=False)

    def log_prob(self, out: Tensor, x: Tensor) -> Tensor:
        return -(x - self._checked(out)).square().sum(-1)

    def mean(self, out: Tensor) -> Tensor:
        return self._checked(out)


class BernoulliLikelihood(Likelihood):
    r"""Pixels in [0, 1] by logits, :math:`-\sum_j x_j\log\hat x_j + (1-x_j)\log(1-\hat x_j)`.

    For x between 0 and 1 the least value is the entropy of x, not 0.

    >>> BernoulliLikelihood(2)(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor([1.3863])
    """

    name = "bernoulli"

    def distribution(self, out: Tensor) -> Distribution:
        return D.Independent(D.Bernoulli(logits=out, validate_args=False), 1, validate_args=False)

    def log_prob(self, out: Tensor, x: Tensor) -> Tensor:
        out = self._checked(out)
        loss = functional.binary_cross_entropy_with_logits
        return -loss(out, x.to(out.dtype), reduction="none").sum(-1)

    def mean(self, out: Tensor) -> Tensor:
        return self._checked(out).sigmoid()

    def check(self, x: Tensor) -> None:
        self._refuse(
            x,
            ~((x >= 0) & (x <= 1)),
            "likelihood='bernoulli' needs numbers from 0 to 1; divide by the largest value or use "
            "likelihood='gaussian'",
        )
