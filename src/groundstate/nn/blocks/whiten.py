r"""Fitted input layers: centre, standardise, whiten.

With a squared loss :math:`\frac1{2N}\sum(w^\top x_i + b - y_i)^2` the Hessian in (w, b) is

.. math:: \begin{pmatrix} X^\top X/N & \bar x\\ \bar x^\top & 1\end{pmatrix} .

Centring removes :math:`\bar x`, standardising makes the diagonal 1, whitening makes it I: condition
number 1, and gradient descent with step 1 arrives in one step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.errors import DataError, ShapeError
from groundstate.math.linalg.whitening import METHODS, whitening
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(make=lambda: Center(3), batch=rows_of(3), formula=r"x-\bar x")
class Center(nn.Module):
    r""":math:`x - \bar x`, with the mean of the rows given to ``fit``.

    Parameters
    ----------
    features : D

    Attributes
    ----------
    mean : buffer ``(D,)``

    Examples
    --------
    >>> layer = Center(1).fit(torch.tensor([[1.0], [3.0]]))
    >>> layer(torch.tensor([[5.0]]))
    tensor([[3.]])
    """

    mean: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("mean", torch.zeros(features))

    def config(self) -> dict[str, Any]:
        return {"features": self.features}

    @torch.no_grad()
    def fit(self, x: Tensor, sample_weight: Tensor | None = None) -> Center:
        """Learn from rows ``(N, D)``, of all processes where there are several; a weight of 2 is the
        row twice."""
        mean, _ = self._moments(x, sample_weight)
        self.mean.copy_(mean)
        return self

    def _moments(self, x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean ``(D,)`` and covariance with 1/N ``(D, D)`` in float64."""
        self._check(x)
        rows = x.double()
        share = rows.new_ones(len(rows)) if weight is None else weight.to(rows)
        reduce = current()
        total = reduce.sum(share.sum())
        if share.shape != (len(rows),) or bool((share < 0).any()) or not float(total) > 0:
            raise DataError(
                f"sample_weight needs {len(rows)} numbers >= 0 with a positive sum, "
                f"got {tuple(share.shape)}"
            )
        share = share / total
        mean = reduce.sum(share @ rows)
        rows = (rows - mean) * share.sqrt()[:, None]
        return mean, reduce.sum(rows.T @ rows)

    def _check(self, x: Tensor) -> None:
        if x.shape[-1:] != (self.features,):
            raise ShapeError(
                f"{type(self).__name__} has {self.features} features, got {tuple(x.shape)}"
            )

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return x - self.mean

    def inverse(self, x: Tensor) -> Tensor:
        """Back to the original coordinates."""
        return x + self.mean


@blocks.register(make=lambda: Standardize(3), batch=rows_of(3), formula=r"(x-\bar x)/s")
class Standardize(Center):
    r""":math:`(x_d - \bar x_d)/s_d` with :math:`s_d^2 = \frac1N\sum(x_{id}-\bar x_d)^2`.

    A constant column keeps its scale.

    Attributes
    ----------
    mean, scale : buffers ``(D,)``

    Examples
    --------
    >>> layer = Standardize(1).fit(torch.tensor([[1.0], [3.0], [5.0]]))
    >>> layer(torch.tensor([[5.0]]))
    tensor([[1.2247]])
    """

    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.register_buffer("scale", torch.ones(features))

    @torch.no_grad()
    def fit(self, x: Tensor, sample_weight: Tensor | None = None) -> Standardize:
        mean, cov = self._moments(x, sample_weight)
        variance = cov.diagonal()
        n = float(current().sum(torch.tensor(float(len(x)), device=x.device)))
        eps = n * torch.finfo(torch.float64).eps
        flat = variance <= eps * variance + (eps * mean).square()  # rounding of the mean alone
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(flat, 1.0, variance.sqrt()))
        return self

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / self.scale

    def inverse(self, x: Tensor) -> Tensor:
        return super().inverse(x * self.scale)


class Rescale(Standardize):
    r""":math:`\bar y + s\,f`: outputs of unit size as values with the mean and the scale of the rows
    given to ``fit``, a constant column keeping the scale 1.

    Examples
    --------
    >>> layer = Rescale(1).fit(torch.tensor([[1.0], [3.0]]))
    >>> layer(torch.tensor([[0.0], [1.0]]))
    tensor([[2.],
            [3.]])
    """

    def forward(self, f: Tensor) -> Tensor:
        return self.inverse(f)


@blocks.register(make=lambda: Whiten(3), batch=rows_of(3), formula=r"C^{-1/2}(x-\bar x)")
class Whiten(Center):
    r""":math:`W(x - \bar x)` with :math:`W C W^\top = I`, C the covariance with 1/N.

    ======== ===================================================================
    zca      :math:`W = C^{-1/2}`: the whitening nearest to the input
    pca      :math:`W = \Lambda^{-1/2}U^\top` for :math:`C = U\Lambda U^\top`,
             largest variance first
    cholesky :math:`W = L^{-1}` for :math:`C = LL^\top`: lower triangular
    ======== ===================================================================

    Parameters
    ----------
    features : D
    method : see above
    eps : ridge, C + eps·I is whitened

    Attributes
    ----------
    mean : buffer ``(D,)``
    matrix, unmatrix : buffers ``(D, D)``, W and its inverse

    Examples
    --------
    >>> x = torch.tensor([[0.0, 0.0], [2.0, 2.0], [0.0, 1.0], [2.0, 5.0]])
    >>> z = Whiten(2).fit(x)(x)
    >>> bool(torch.allclose(z.T @ z / 4, torch.eye(2), atol=1e-6))
    True
    """

    matrix: Tensor
    unmatrix: Tensor

    def __init__(self, features: int, method: str = "zca", eps: float = 0.0) -> None:
        super().__init__(features)
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
        self.method, self.eps = method, float(eps)
        self.register_buffer("matrix", torch.eye(features))
        self.register_buffer("unmatrix", torch.eye(features))

    def config(self) -> dict[str, Any]:
        return {"features": self.features, "method": self.method, "eps": self.eps}

    @torch.no_grad()
    def fit(self, x: Tensor, sample_weight: Tensor | None = None) -> Whiten:
        self._check(x)
        found = whitening(x.double(), self.method, self.eps, sample_weight)
        self.mean.copy_(found.mean)
        self.matrix.copy_(found.matrix)
        self.unmatrix.copy_(found.inverse)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) @ self.matrix.T

    def inverse(self, x: Tensor) -> Tensor:
        return super().inverse(x @ self.unmatrix.T)
