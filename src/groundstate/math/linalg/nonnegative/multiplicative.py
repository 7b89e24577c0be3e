r"""Beta divergences of rows and products of factors, and the steps that lower them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.math.linalg.range_finder import CentredRows

EPS = float(np.finfo(np.float32).eps)  # products are at least this before they divide
CELLS = 2**17  # numbers of a tile of rows, products and quotients of which stay in the cache
LARGE = 2**26  # the same on a device
NOTHING = 2.3e-16  # entries below are zero


def beta_divergence(x: Tensor, y: Tensor, beta: float) -> Tensor:
    r""":math:`\sum_j d_\beta(x_j \mid y_j)` of each row, ``(..., d)`` to ``(...)``.

    .. math::
        d_\beta(x \mid y) = \frac{x^\beta - \beta xy^{\beta-1} + (\beta-1)y^\beta}{\beta(\beta-1)},
        \quad d_2 = \tfrac12(x-y)^2, \quad d_1 = x\log\tfrac xy - x + y, \quad
        d_0 = \tfrac xy - \log\tfrac xy - 1 .

    Examples
    --------
    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 1.0]])
    >>> [round(beta_divergence(x, y, b).item(), 4) for b in (2, 1)]
    [1.0, 1.3069]
    """
    if beta == 2:
        return 0.5 * (x - y).square().sum(-1)
    safe = y.clamp_min(EPS)
    if beta == 1:
        return (torch.special.xlogy(x, x) - torch.special.xlogy(x, safe) - x + y).sum(-1)
    if beta == 0:
        ratio = x / safe
        return (ratio - ratio.clamp_min(EPS).log() - 1).sum(-1)
    zero = x <= EPS  # where a negative power of zero would be infinite
    own = torch.where(zero, torch.zeros_like(x), x.clamp_min(EPS) ** beta)
    both = torch.where(zero, torch.zeros_like(x), x * safe ** (beta - 1))
    whole = (y if beta > 0 else safe) ** beta
    return ((own - beta * both + (beta - 1) * whole) / (beta * (beta - 1))).sum(-1)


def product(A: Tensor, B: Tensor) -> Tensor:
    """AB; of narrow factors NumPy's is the faster one on the CPU."""
    if A.device.type != "cpu" or A.layout != torch.strided:
        return A @ B
    return torch.from_numpy(A.numpy() @ B.numpy())


def exponent(beta: float) -> float:
    """The power of a multiplicative step with which no step raises the divergence."""
    return 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0


@dataclass
class Steps:
    r"""Products of rows X with factors W and H, for sparse rows from their entries alone.

    Parameters
    ----------
    x : ``(n, d)``, dense or CSR
    beta : of the divergence
    weight : ``(n,)``, of the rows

    Examples
    --------
    >>> x = torch.tensor([[2.0, 4.0]])
    >>> steps = Steps(x, 1.0)
    >>> W, Ht = torch.ones(1, 1), torch.tensor([[1.0], [2.0]])
    >>> steps.codes(W, Ht, 0.0, 0.0)  # W becomes W X/(WH) Hᵀ / Σ H
    >>> W.tolist(), steps.loss(W, Ht)
    ([[2.0]], 0.0)
    """

    x: Tensor
    beta: float
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        self.sparse = self.x.layout != torch.strided
        if self.sparse and self.beta <= 0:
            self.x, self.sparse = self.x.to_dense(), False
        self.rows = CentredRows(self.x)

    # --- rows in pieces --------------------------------------------------------------------

    def _weighted(self, W: Tensor, at: slice | None = None) -> Tensor:
        part = W if at is None else W[at]
        if self.weight is None:
            return part
        return part * (self.weight if at is None else self.weight[at])[:, None]

    def _entries(self, W: Tensor, Ht: Tensor, whose: int, out: Tensor) -> float:
        """See `descent_numba.entries`."""
        x = self.rows.x
        at, columns, values = x.crow_indices(), x.col_indices(), x.values()
        if x.device.type == "cpu":
            from groundstate.math.linalg.nonnegative.descent_numba import entries

            w = np.zeros(0) if self.weight is None else self.weight.double().numpy()
            arrays = (t.numpy() for t in (at, columns, values, W, Ht))
            return float(entries(*arrays, float(self.beta), w, whose, out.numpy(), 0, len(x)))
        i = torch.arange(len(W), device=x.device).repeat_interleave(at.diff().long())
        j = columns.long()
        y = (W[i] * Ht[j]).sum(1)
        if whose == 2:
            safe, x_ = y.clamp_min(EPS).double(), values.double()
            own = torch.special.xlogy(x_, x_ / safe) - x_
            if self.beta != 1:
                own = x_**self.beta - self.beta * x_ * safe ** (self.beta - 1)
                own = own / (self.beta * (self.beta - 1))
            own = torch.where(x_ > EPS, own, 0.0)
            return float(own.sum() if self.weight is None else own @ self.weight.double()[i])
        q = values * (y.clamp_min(EPS) if self.beta < 2 else y) ** (self.beta - 2)
        if whose == 0:
            out.index_add_(0, i, q[:, None] * Ht[j])
        else:
            q = q if self.weight is None else q * self.weight.to(q)[i]
            out.index_add_(0, j, q[:, None] * W[i])
        return 0.0

    def dot(self, Ht: Tensor) -> Tensor:
        """:math:`XH^\\top`, ``(n, k)``."""
        return self.rows.dot(Ht) if self.sparse else product(self.x, Ht)

    def tdot(self, W: Tensor) -> Tensor:
        """:math:`X^\\top W`, ``(d, k)``."""
        return self.rows.tdot(W) if self.sparse else product(self.x.T, W)

    # --- what steps are made of --------------------------------------------------------------

    def loss(self, W: Tensor, Ht: Tensor) -> float:
        r""":math:`\sum_i w_i d_\beta(x_i \mid w_i^\top H)`."""
        total = 0.0
        if self.sparse and self.beta == 2:
            squares = self.x.values().double().square()
            if self.weight is not None:
                counts = self.x.crow_indices().diff().long()
                squares = squares * self.weight.double().repeat_interleave(counts)
            own = self._weighted(W).double()
            cross = (self.dot(Ht).double() * own).sum()
            inner = (own.T @ W.double()) * (Ht.double().T @ Ht.double())
            return max(0.0, float(0.5 * (squares.sum() + inner.sum()) - cross))
        if self.sparse:
            part = self._entries(W, Ht, 2, Ht)
            for at in _tiles(self.x):
                if self.beta == 1:
                    zeros = W[at].double() @ Ht.double().sum(0)
                else:
                    zeros = product(W[at], Ht.T).double().pow(self.beta).sum(1) / self.beta
                total += float(zeros.sum() if self.weight is None else
                               zeros @ self.weight[at].double())  # fmt: skip
            return max(0.0, part + total)
        for at in _tiles(self.x):
            each = beta_divergence(self.x[at], product(W[at], Ht.T), self.beta).double()
            total += float(each.sum() if self.weight is None else each @ self.weight[at].double())
        return max(0.0, total)

    def _quotients(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        r""":math:`xy^{\beta-2}` and :math:`y^{\beta-1}`; the latter is not needed where it is one."""
        y = y.clamp_min_(EPS) if self.beta < 2 else y
        if self.beta == 1:
            return torch.div(x, y, out=y), None
        power = y ** (self.beta - 1)
        if self.beta < 2:
            return torch.div(power, y, out=y).mul_(x), power
        return y.pow_(self.beta - 2).mul_(x), power

    def _power(self, y: Tensor) -> Tensor:
        return (y.clamp_min_(EPS) if self.beta < 1 else y).pow_(self.beta - 1)

    def codes(self, W: Tensor, Ht: Tensor, l1: float, l2: float) -> None:
        """One multiplicative step of W, in place."""
        if self.beta == 2:
            self._times(W, self.dot(Ht), product(W, Ht.T @ Ht), l1, l2)
            return
        if self.sparse:
            up = torch.zeros_like(W)
            self._entries(W, Ht, 0, up)
        for at in _tiles(self.x):
            if self.sparse and self.beta == 1:
                down: Any = Ht.sum(0)[None]
            else:
                y = product(W[at], Ht.T)
                if self.sparse:
                    down = product(self._power(y), Ht)
                else:
                    q, power = self._quotients(self.x[at], y)
                    down = Ht.sum(0)[None] if power is None else product(power, Ht)
            self._times(W[at], up[at] if self.sparse else product(q, Ht), down, l1, l2)

    def axes(self, W: Tensor, Ht: Tensor) -> tuple[Tensor, Tensor]:
        """What the multiplicative step of H divides, ``(d, k)`` and ``(d, k)`` or ``(1, k)``."""
        own = self._weighted(W)
        if self.beta == 2:
            return self.tdot(own), product(Ht, product(own.T, W))
        up, down = torch.zeros_like(Ht), torch.zeros_like(Ht)
        if self.sparse:
            self._entries(W, Ht, 1, up)
        if self.beta == 1:
            down = own.sum(0)[None]
        if self.sparse and self.beta == 1:
            return up, down
        for at in _tiles(self.x):
            y = product(W[at], Ht.T)
            if self.sparse:
                power = self._power(y)
            else:
                q, power_ = self._quotients(self.x[at], y)
                up += product(own[at].T, q).T
                if power_ is None:
                    continue
                power = power_
            down += product(own[at].T, power).T
        return up, down

    def _times(self, A: Tensor, up: Tensor, down: Tensor, l1: float, l2: float) -> None:
        """Multiply a factor by the quotient of the two parts of its gradient, in place."""
        if l1 or l2:
            down = down + l1 + l2 * A
        step = up.div_(down.masked_fill_(down == 0, EPS))
        gamma = exponent(self.beta)
        A.mul_(step if gamma == 1 else step.pow_(gamma))
        if self.beta < 1:
            A.masked_fill_(A < NOTHING, 0.0)

    def turn(self, Ht: Tensor, W: Tensor, l1: float, l2: float) -> None:
        """One multiplicative step of H, in place."""
        up, down = self.axes(W, Ht)
        self._times(Ht, up, down, l1, l2)
        if self.beta <= 1:
            Ht.masked_fill_(Ht < NOTHING, 0.0)


def divergence_codes(
    x: Tensor, Ht: Tensor, beta: float, l1: float, l2: float, tol: float, max_iter: int
) -> Tensor:
    r"""Codes :math:`\arg\min_{z\ge0}\,d_\beta(x \mid zH)` plus penalties by multiplicative steps, ``(n, k)``.

    A row stops by itself when ten steps lower its divergence by less than ``tol`` of that at the start.
    """
    W = torch.empty(len(x), Ht.shape[1], dtype=x.dtype, device=x.device)
    for at in _tiles(x):
        W[at] = _codes(_dense(x, at), Ht, beta, l1, l2, tol, max_iter)
    return W


def _codes(
    x: Tensor, Ht: Tensor, beta: float, l1: float, l2: float, tol: float, max_iter: int
) -> Tensor:
    k = Ht.shape[1]
    W = (x.mean(1, keepdim=True) / k).sqrt().expand(-1, k).clone()
    out = W.clone()
    live = torch.arange(len(x), device=x.device)
    first = before = _distance(x, W, Ht, beta)
    for step in range(1, max_iter + 1):
        Steps(x, beta).codes(W, Ht, l1, l2)
        if tol == 0 or step % 10:
            continue
        now = _distance(x, W, Ht, beta)
        going = before - now >= tol * first
        if not bool(going.all()):
            out[live] = W
            live, x, W = live[going], x[going], W[going]
            now, first = now[going], first[going]
            if not len(live):
                return out
        before = now
    out[live] = W
    return out


def _distance(x: Tensor, W: Tensor, Ht: Tensor, beta: float) -> Tensor:
    return (2 * beta_divergence(x, product(W, Ht.T), beta).clamp_min(0)).sqrt()


def _tiles(x: Tensor) -> Iterator[slice]:
    """Slices of rows, products of which with factors stay in the cache."""
    n, d = x.shape
    size = max(64, (CELLS if x.device.type == "cpu" else LARGE) // d)
    return (slice(at, min(at + size, n)) for at in range(0, n, size))


def _dense(x: Tensor, at: slice) -> Tensor:
    """Some rows, as an array."""
    if x.layout == torch.strided:
        return x[at]
    first = x.crow_indices()[at.start : at.stop + 1].long()
    own = slice(int(first[0]), int(first[-1]))
    i = torch.arange(at.stop - at.start, device=x.device).repeat_interleave(first.diff())
    out = torch.zeros(at.stop - at.start, x.shape[1], dtype=x.dtype, device=x.device)
    return out.index_put_((i, x.col_indices()[own].long()), x.values()[own], accumulate=True)


def penalty(A: Tensor, l1: float, l2: float, weight: Tensor | None = None) -> float:
    r""":math:`\lambda_1\sum|a| + \tfrac{\lambda_2}2\sum a^2`, with weights of the rows."""
    if not l1 and not l2:
        return 0.0
    each = l1 * A.double().abs().sum(1) + 0.5 * l2 * A.double().square().sum(1)
    return float(each.sum() if weight is None else each @ weight.double())
