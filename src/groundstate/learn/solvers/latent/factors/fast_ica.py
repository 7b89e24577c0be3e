r"""Independent components: rotations of white rows that make single coordinates least Gaussian."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.tiles import over_slices
from groundstate.energy.latent.independent_codes import IndependentCodeEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.factors.spectrum import moments

F64 = NDArray[np.float64]
TILE = 2**15  # numbers of white rows whose contrast is taken at once
SMALL = 64  # rows of a matrix that NumPy decomposes sooner than torch
# g of sources (l, n), and the sum of g′ over the rows, each as often as its weight, (l,): tensors, and
# where the contrast has a name also arrays, whose functions are the faster ones on a host
Contrast = Callable[[Any, Any], tuple[Any, Any]]


def _signs(rows: F64) -> F64:
    """±1 that make the entry of largest modulus of each row positive, ``(l, 1)``."""
    peak = rows[range(len(rows)), np.abs(rows).argmax(1)]
    return np.where(peak < 0, -1.0, 1.0)[:, None]


def summed(values: Any, weight: Any) -> Any:
    """Sums over rows of values ``(l, n)``, each as often as its weight, ``(l,)``."""
    return values.sum(1) if weight is None else values @ weight


def _squares(values: Any, weight: Any) -> Any:
    """`summed` of squares."""
    if weight is not None:
        return (values * values) @ weight
    if isinstance(values, Tensor):
        return torch.linalg.vecdot(values, values)
    return np.einsum("ij,ij->i", values, values)


def contrast(name: str, alpha: float = 1.0) -> Contrast:
    """Derivatives g and g′ of the contrast G, by name: "logcosh", "exp" or "cube"."""
    if name == "logcosh":

        def derivatives(u: Any, weight: Any) -> tuple[Any, Any]:
            tanh: Any = torch.tanh if isinstance(u, Tensor) else np.tanh
            t = tanh(u if alpha == 1 else alpha * u)
            count = u.shape[1] if weight is None else weight.sum()
            slope = count - _squares(t, weight)
            return t, slope if alpha == 1 else alpha * slope

    elif name == "exp":

        def derivatives(u: Any, weight: Any) -> tuple[Any, Any]:
            exp: Any = torch.exp if isinstance(u, Tensor) else np.exp
            square = u * u
            e = exp(-0.5 * square)
            return u * e, summed((1 - square) * e, weight)

    else:

        def derivatives(u: Any, weight: Any) -> tuple[Any, Any]:
            square = u * u
            return u * square, 3 * summed(square, weight)

    return derivatives


def decorrelated(W: Tensor) -> Tensor:
    r""":math:`(WW^\top)^{-1/2}W`, the nearest orthogonal matrix."""
    if W.device.type == "cpu" and len(W) <= SMALL:
        w = W.numpy()
        small, axes = np.linalg.eigh(w @ w.T)
        turned = (axes.T @ w) / np.sqrt(np.maximum(small, np.finfo(w.dtype).tiny))[:, None]
        return torch.from_numpy(axes @ turned)
    s, u = torch.linalg.eigh(W @ W.T)
    return u @ (s.clamp_min(torch.finfo(W.dtype).tiny).rsqrt()[:, None] * (u.T @ W))


def _turned(W: Tensor, new: Tensor) -> float:
    """The most that a row has turned, one less the cosine of its angle."""
    cosines: list[float] = torch.linalg.vecdot(new, W).tolist()
    return max(abs(abs(c) - 1) for c in cosines)


def _whitening(covariance: Tensor, length: int | None) -> tuple[F64, F64]:
    """What rows about their mean are multiplied with to be white, ``(l, d)``, and its inverse."""
    if covariance.device.type == "cpu":
        values, u = np.linalg.eigh(covariance.numpy())
    else:
        values, u = (part.cpu().numpy() for part in torch.linalg.eigh(covariance))
    values, u = values[::-1], u[:, ::-1]
    least = np.finfo(np.float64).eps * 10 * len(values) * max(values[0], 1e-300)
    l = max(1, int((values > least).sum())) if length is None else length
    scale = np.sqrt(np.maximum(values, least)) * np.where(u[0] < 0, -1.0, 1.0)
    return np.ascontiguousarray((u / scale).T[:l]), (u * scale)[:, :l]


@dataclass(frozen=True)
class FastICA:
    r"""Fixed-point steps :math:`w \leftarrow E[x\,g(w^\top x)] - E[g'(w^\top x)]\,w` on white rows.

    Parameters
    ----------
    n_components : sources; None: as many as directions with variance
    algorithm : "parallel" (all at once, :math:`(WW^\top)^{-1/2}W` after each step) or "deflation"
    whiten : whether rows are whitened first
    unit_variance : whether sources are scaled to unit variance, or stay of the scale of white rows
    fun : "logcosh", "exp", "cube", or a `Contrast`
    alpha : of "logcosh"
    max_iter : steps at most
    tol : stop when no direction turns by more
    start : initial W ``(l, l)``; None: random
    """

    n_components: int | None = None
    algorithm: str = "parallel"
    whiten: bool = True
    unit_variance: bool = True
    fun: Any = "logcosh"
    alpha: float = 1.0
    max_iter: int = 200
    tol: float = 1e-4
    start: Any = field(default=None, compare=False)

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, IndependentCodeEnergy):
            return "it is for independent codes"
        return None if problem.is_resident else "it needs resident x"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        began = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, IndependentCodeEnergy)
        x, weight = problem.resident["x"].double(), problem.sample_weight
        n, d = x.shape
        history = History(solver="FastICA", stop="max_iter")
        share = None if weight is None else weight.double() / weight.double().sum()
        if self.whiten:
            sums = moments(problem)
            K, back = _whitening(sums.covariance(), self.n_components)
            l = len(K)
            white = torch.from_numpy(K).to(x) @ (x - sums.mean).T
        else:
            l, K, back, white = d, np.eye(d), np.eye(d), x.T.contiguous()
        W = self._start(l, problem).to(white)
        g = self.fun if callable(self.fun) else contrast(self.fun, self.alpha)
        find = self._parallel if self.algorithm == "parallel" else self._deflation
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:
            W = find(W, white, share, g, history, monitor)
        size: Any = 1.0  # of the sources, one for each or one for all
        if self.whiten and self.unit_variance:
            square = summed((W @ white).square(), share) / (n if share is None else 1.0)
            size = np.sqrt(np.maximum(square.cpu().numpy(), 1e-300))[:, None]
        elif self.whiten:
            size = math.sqrt(n)  # that of scikit-learn's arbitrary-variance
        w = W.cpu().numpy()
        size = size * _signs(w @ K)
        mixing = back @ (w * size).T  # the inverse of a rotation is its transpose
        w = w / size
        U, M = torch.from_numpy(w @ K), torch.from_numpy(mixing)
        energy.set(U, M, sums.mean if self.whiten else None)
        history.about["whitening"], history.about["rotation"] = K, w
        history.seconds.append(time.perf_counter() - began)
        if not history.converged and history.stop == "max_iter":
            warnings.warn(
                f"FastICA did not converge in max_iter={self.max_iter} steps; raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _start(self, l: int, problem: Problem) -> Tensor:
        if self.start is not None:
            given = torch.as_tensor(self.start, dtype=torch.float64)
            if given.shape != (l, l):
                raise ValueError(f"w_init has invalid shape -- should be {(l, l)}")
            return given
        generator = problem.key.fold("ica").torch(torch.device("cpu"))
        return torch.randn(l, l, generator=generator, dtype=torch.float64)

    def _step(self, W: Tensor, white: Tensor, share: Tensor | None, g: Contrast) -> Tensor:
        """:math:`E[g(Wx)x^\\top] - \\operatorname{diag}(E[g'(Wx)])W` times a number, tile by tile."""
        n, on_host = white.shape[1], white.device.type == "cpu"
        w: Any = W
        x: Any = white
        lengths: Any = share
        if on_host and not callable(self.fun):
            w, x = W.numpy(), white.numpy()
            lengths = None if share is None else share.numpy()

        def part(lo: int, hi: int) -> Any:
            some = x[:, lo:hi]
            weight = None if lengths is None else lengths[lo:hi]
            value, slope = g(w @ some, weight)
            return (value if weight is None else value * weight) @ some.T - slope[:, None] * w

        rows = max(64, TILE // len(white)) if on_host else n
        if x is white:
            return sum((part(at, min(n, at + rows)) for at in range(rows, n, rows)), part(0, rows))
        return torch.from_numpy(sum(over_slices(part, n, rows)))

    def _parallel(
        self, W: Tensor, white: Tensor, share: Any, g: Any, history: Any, monitor: Any
    ) -> Tensor:
        W = decorrelated(W)
        for history.n_iter in range(1, self.max_iter + 1):
            new = decorrelated(self._step(W, white, share, g))
            turned = _turned(W, new)
            W = new
            if monitor.epoch(turned) or turned < self.tol:
                history.converged, history.stop = True, "tol"
                break
        return W

    def _deflation(
        self, W: Tensor, white: Tensor, share: Any, g: Any, history: Any, monitor: Any
    ) -> Tensor:
        found: list[Tensor] = []
        history.converged, history.stop = True, "tol"
        for start in W:
            w = start / start.norm()
            for step in range(1, self.max_iter + 1):
                new = self._step(w[None], white, share, g)[0]
                for earlier in found:
                    new = new - (earlier @ new) * earlier
                new = new / new.norm()
                turned = abs(abs(float(new @ w)) - 1)
                w = new
                history.n_iter = max(history.n_iter, step)
                if turned < self.tol:
                    break
            else:
                history.converged, history.stop = False, "max_iter"
            found.append(w)
        monitor.epoch(math.nan)
        return torch.stack(found)
