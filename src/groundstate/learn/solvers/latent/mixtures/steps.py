r"""The halves of EM for Gaussian components, in coordinates that keep the digits.

In :math:`y = A(x - o)`, whitened by the covariance of all rows, a component is
:math:`\theta_z^\top\varphi(y)` with

.. math:: \theta_z = \bigl(-\tfrac12P_z,\ P_zm_z,\ \log\pi_z + \log|U_z| - \tfrac d2\log2\pi
          - \tfrac12m_z^\top P_zm_z\bigr),\quad P_z = A^{-\top}U_zU_z^\top A^{-1},\ m_z = A(\mu_z - o).

Rounding costs about :math:`\epsilon\max_i\|y_i\|^2\|P_z\|` of a log density. Components for which that
is too much are measured from the differences :math:`x - \mu_z` themselves.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Categorical

from groundstate.compute.device import threads
from groundstate.compute.reduce import current
from groundstate.compute.tiles import one_blas_thread, over_slices, tile_rows
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn.base import Batch, Problem
from groundstate.learn.solvers.em.steps import MStep, completion_of
from groundstate.learn.solvers.latent.mixtures import host, pass_torch
from groundstate.learn.solvers.latent.mixtures.batched import add_together
from groundstate.learn.solvers.latent.mixtures.collapse import EPS, NONE, resummed, too_narrow
from groundstate.learn.solvers.latent.mixtures.host import (
    array,
    moments,
    pairs_of,
    reach,
    scatter,
    upper,
    wide,
)
from groundstate.learn.solvers.latent.mixtures.pass_numba import (
    DIAGONAL,
    FULL,
    LINEAR,
    em_pass,
)

F64 = NDArray[np.float64]
MAX_FEATURES = 2**13  # beyond this a tile of features leaves the cache
KINDS = {
    "full": FULL,
    "tied": LINEAR,
    "diag": DIAGONAL,
    "spherical": DIAGONAL,
    "identity": DIAGONAL,
}
TINY = 10 * EPS
ROWS = 2**14  # completed at once where differences are taken; more on a device
FEW = 2**17  # numbers of the features and shares of a table whose passes NumPy does
SMALL = 2**20  # differences below which waiting for threads costs more than it gains


class GaussianM(MStep):
    """E-step and statistics of a pass, then weights, means and covariances."""

    total: float
    origin: F64
    scatter: F64
    _found: Any = None  # narrow components of the θ that the last M-step set

    def __init__(self, problem: Problem, latent: str, whiten: bool = True) -> None:
        super().__init__(problem, latent)
        energy = problem.energy
        assert isinstance(energy, GaussianMixtureEnergy)
        self.mixture = energy
        self.kind = KINDS[energy.covariance_type]
        d = energy.mu.shape[1]
        sides = 1 if self.kind == DIAGONAL else d
        self._nobody = NONE, np.empty((0, d)), np.empty((0, sides, d)), np.empty(0)
        features = d * (d + 1) // 2 if self.kind == FULL else d
        self.on_host = energy.mu.device.type == "cpu"
        small = features <= MAX_FEATURES and energy.mu.device.type != "mps"  # has no float64
        self.able = whiten and small
        self.fast = False
        self._kept: dict[str, tuple[F64, F64]] = {}
        if self.able:
            if self.kind == FULL:  # φ holds the entries of a symmetric matrix once
                self.pairs, self.mirror, self.halves = pairs_of(d)
            self._whiten()

    def twin(self, problem: Problem) -> Self:
        """The same rows and coordinates for another mixture."""
        other = copy.copy(self)
        assert isinstance(problem.energy, GaussianMixtureEnergy)
        other.problem, other.mixture = problem, problem.energy
        other.complete = completion_of(problem, self.latent)
        return other

    # --- coordinates ---------------------------------------------------------------------

    def moments_of_all(self) -> tuple[float, F64, F64]:
        """Weight, mean ``(d,)`` and scatter ``(d, d)`` of all rows of all shards."""
        if hasattr(self, "total"):
            return self.total, self.origin, self.scatter
        d = self.mixture.mu.shape[1]
        total, first = 0.0, np.zeros(d)
        for x, w in self._rows():
            for mass, sums, *_ in self._sliced(moments, x, w, np.zeros(d)):
                total, first = total + mass, first + sums
        if current().world > 1:
            pair = current().sum_dict({"w": torch.tensor(total), "x": torch.from_numpy(first)})
            total, first = float(pair["w"]), pair["x"].numpy()
        at, square = first / total, np.zeros((d, d))
        for x, w in self._rows():
            square += sum(self._sliced(scatter, x, w, at))
        if current().world > 1:
            square = current().sum(torch.from_numpy(square)).numpy()
        self.total, self.origin, self.scatter = total, at, square
        return total, at, square

    def _whiten(self) -> None:
        """Mean, covariance and whitening of all rows, and how far the farthest row is."""
        d, reg = self.mixture.mu.shape[1], self.mixture.reg_covar
        total, at, square = self.moments_of_all()
        cov = square / total
        if self.kind == DIAGONAL:
            values, vectors = np.diagonal(cov), np.eye(d)
        else:
            with (
                one_blas_thread()
            ):  # small factorisations wait for threads longer than they compute
                values, vectors = np.linalg.eigh(cov)
        floor = max(reg, 1e-12 * float(values.max()), 1e-300)
        scale = np.sqrt(np.maximum(values, floor))
        self.turn = np.ascontiguousarray((vectors / scale).T)
        self.back = vectors * scale  # turn⁻¹
        far = max(max(self._sliced(reach, x, at, self.turn)) for x, _ in self._rows())
        if current().world > 1:
            far = float(current().max(torch.tensor(far, dtype=torch.float64)))
        self.radius = far

    def _rows(self) -> Iterator[tuple[Any, Any]]:
        """Rows and weights as the kernels take them, chunk by chunk."""
        for batch, weight in self.problem.chunks(2**20):
            yield self._taken(batch, weight)

    def _taken(self, batch: Batch, weight: Tensor | None) -> tuple[Any, Any]:
        """Arrays on the host, where weights of length zero stand for ones; tensors elsewhere."""
        if not self.on_host:
            return batch["x"].detach(), weight
        return array(batch["x"]), np.empty(0) if weight is None else array(weight.double())

    def _sliced(self, kernel: Any, x: Any, *arguments: Any) -> Iterator[Any]:
        """What a kernel sums over slices of the rows, or on a device over all of them."""
        if not self.on_host:
            return iter([getattr(pass_torch, kernel.__name__)(x, *arguments)])
        more: tuple[int, ...] = ()
        if kernel is em_pass:
            w, _, _, theta, _, *rest = arguments
            if len(x) * sum(theta.shape) <= FEW:
                with one_blas_thread():
                    return iter([host.em_pass(*self._features(x), w, theta, *rest)])
            more = (tile_rows(theta.size),)
        return over_slices(lambda lo, hi: kernel(x, *arguments, *more, lo, hi), len(x))

    def _features(self, x: Any) -> tuple[F64, F64]:
        """Rows and features of a small table, kept where every pass sees the same rows."""
        if (found := self._kept.get("rows")) is None:
            d = x.shape[1]
            size = {FULL: d * (d + 3) // 2, DIAGONAL: 2 * d, LINEAR: d}[self.kind] + 1
            found = host.features(x, self.origin, self.turn, self.kind, size)
            if self.problem.is_resident and len(x) == self.problem.rows:
                self._kept["rows"] = found
        return found

    def _theta(self) -> F64:
        r"""θ ``(k, F)``, without :math:`-\tfrac12\|U^\top(x-o)\|^2` where all components share U."""
        energy = self.mixture
        k, d = energy.mu.shape
        mu, U, logits = (wide(v) for v in (energy.mu, energy.U, energy.logits))
        mu = mu - self.origin
        if self.kind == DIAGONAL:
            U = U.reshape(k, -1)
            log_det = np.log(np.abs(U)).sum(1) * (d // U.shape[1])
        else:
            U = U * upper(d)
            log_det = np.log(np.abs(U.reshape(-1, d * d)[:, :: d + 1])).sum(-1)
        logits = logits - logits.max()
        constant = logits - np.log(np.exp(logits).sum()) + log_det - 0.5 * d * math.log(2 * math.pi)
        self.constant = constant
        if self.kind == LINEAR:
            V = self.back.T @ U
            white = mu @ U
            linear = white @ V.T
            return np.concatenate(
                [linear, (constant - 0.5 * np.square(white).sum(1))[:, None]], axis=1
            )
        m = mu @ self.turn.T
        if self.kind == DIAGONAL:
            P = np.square(U * np.diagonal(self.back))  # (k, d)
            quadratic, pull = -0.5 * P, P * m
        else:
            V = self.back.T @ U
            P = V @ V.transpose(0, 2, 1)  # (k, d, d)
            pull = (P @ m[:, :, None])[:, :, 0]
            quadratic = self.halves * P.reshape(k, -1)[:, self.pairs]
        constant = constant - 0.5 * (pull * m).sum(1)
        return np.concatenate([quadratic, pull, constant[:, None]], 1)

    # --- E -------------------------------------------------------------------------------

    def begin(self, T: float) -> None:
        super().begin(T)
        self.fast = self.able and T == 1
        if self.fast:
            with one_blas_thread():
                self.theta = self._theta()
            self.narrow = self._narrow_now()

    def _narrow_now(self) -> Any:
        """Components that are narrow at the θ of now, which the M-step may have found already."""
        found, self._found = self._found, None
        return too_narrow(self) if found is None else found

    def _narrow_parts(self) -> tuple[Any, F64, F64, F64]:
        """Which components are narrow, and their means ``(s, d)``, U ``(s, d or 1, d)``, constants."""
        if not self.narrow.size:
            return self._nobody
        k, d = self.mixture.mu.shape
        mu, U = wide(self.mixture.mu), wide(self.mixture.U)
        if self.kind == DIAGONAL:
            U = np.broadcast_to(np.abs(U).reshape(k, 1, -1), (k, 1, d))
        else:
            U = np.broadcast_to(np.triu(U), (k, d, d))
        at = self.narrow
        return at, mu[at], np.ascontiguousarray(U[at]), self.constant[at]

    def add(self, batch: Batch, weight: Tensor | None) -> None:
        if self.fast:
            add_together([self], batch, weight)
            return
        small = self.on_host and len(batch["x"]) * self.mixture.mu.numel() < SMALL
        rows = ROWS if self.on_host else 64 * ROWS
        with threads(1) if small else nullcontext():
            for at in range(0, len(batch["x"]), rows):
                part = None if weight is None else weight[at : at + rows]
                super().add({"x": batch["x"][at : at + rows]}, part)

    def close(self) -> float:
        self.sums = current().sum_dict(self.sums)
        pair = self.sums.pop("J")
        if self.fast and self.kind == LINEAR and not len(self.narrow):
            U = np.triu(wide(self.mixture.U))  # what θ leaves out: ½ Σ w ‖Uᵀ(x − o)‖²
            pair[0] += 0.5 * float(np.sum((self.scatter @ U) * U))
        return self._mean(pair)

    def _sum(self, name: str, value: Tensor) -> None:
        self.sums[name] = self.sums[name] + value if name in self.sums else value

    def collect(self, batch: Batch, weight: Tensor | None) -> Tensor:
        """Statistics about the means of now, which cannot cancel."""
        distribution, F = self.complete.distribution(batch, self.T)
        k, d = self.mixture.mu.shape
        assert isinstance(distribution, Tensor | Categorical)
        r = (
            distribution.probs
            if isinstance(distribution, Categorical)
            else torch.nn.functional.one_hot(distribution, k)
        )
        r = r.double() if weight is None else r.double() * weight.double()[:, None]
        x, mu = batch["x"].double(), self.mixture.mu.detach().double()
        self._sum("n", r.sum(0))
        kind = self.mixture.covariance_type
        first, second = x.new_zeros(k, d), []
        for z in range(k):
            diff = x - mu[z]
            scaled = diff * r[:, z : z + 1]
            first[z] = scaled.sum(0)
            second.append(scaled.T @ diff if kind in ("full", "tied") else (scaled * diff).sum(0))
        self._sum("x", first)
        self._sum("xx", torch.stack(second).sum(0) if kind == "tied" else torch.stack(second))
        return F

    # --- M -------------------------------------------------------------------------------

    def finish(self) -> None:
        with threads(1) if self.on_host else nullcontext():
            n, mean, cov = self._fast_moments() if self.fast else self._moments()
            if float(n.min()) < TINY:
                n, mean, cov = self._reseeded(n.clone(), mean.clone(), cov.clone())
            energy = self.mixture
            theta = (energy.logits, energy.mu, energy.U) if self.fast else ()
            before = [v.detach().clone() for v in theta]
            energy.from_moments(n, mean, cov)
            if not self.fast:
                return
            self._found = too_narrow(self)
            if len(self._found) and len(lost := np.setdiff1d(self._found, self.narrow)):
                self._found = None
                for v, old in zip(theta, before, strict=True):
                    v.data.copy_(old)
                energy.from_moments(*resummed(self, lost, n, mean, cov))

    @torch.no_grad()
    def _reseeded(self, n: Tensor, mean: Tensor, cov: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Components without rows begin again at the rows of lowest density."""
        reduce, dead = current(), (n < TINY).nonzero().flatten()
        lowest, rows = [], []
        for batch, weight in self.problem.chunks(ROWS):
            x = batch["x"]
            density = torch.logsumexp(-self.mixture.observed_energies(x), 1).double()
            if weight is not None:
                density = torch.where(weight > 0, density, torch.inf)
            value, at = density.topk(min(len(dead), len(x)), largest=False)
            lowest.append(value)
            rows.append(torch.nan_to_num(x[at].double()))
        values, found = reduce.gather(torch.cat(lowest)), reduce.gather(torch.cat(rows))
        order = torch.sort(values, stable=True).indices[: len(dead)].to(n.device)
        for z, row in zip(dead.tolist(), found.to(n.device)[order], strict=False):
            live = n >= TINY
            n[z], mean[z] = n[live].mean() / 10, row
            if cov.ndim == self.mixture.U.ndim and self.mixture.covariance_type != "tied":
                cov[z] = cov[live].mean(0)
        self.mixture.reseeded += len(dead)
        return n, mean, cov

    @torch.no_grad()
    def _moments(self) -> tuple[Tensor, Tensor, Tensor]:
        sums, energy = self.sums, self.mixture
        n = sums["n"] + TINY
        step = sums["x"] / n[:, None]
        mean = energy.mu.detach().double() + step
        if energy.covariance_type == "full":
            cov = sums["xx"] / n[:, None, None] - step[:, :, None] * step[:, None]
        elif energy.covariance_type == "tied":
            cov = (sums["xx"] - (n[:, None] * step).T @ step) / n.sum()
        else:
            cov = (sums["xx"] / n[:, None] - step.square()).clamp_min(0)
        return sums["n"], mean, cov.mean(1) if energy.U.ndim == 1 else cov

    def _fast_moments(self) -> tuple[Tensor, Tensor, Tensor]:
        S = self.sums["S"].numpy()
        k, d = self.mixture.mu.shape
        n = S[-1] + TINY
        first = S[-1 - d : -1].T / n[:, None]  # (k, d), in the coordinates of y
        if self.kind == LINEAR and len(self.narrow):
            mean, second, step = self._narrow_moments(n)
            cov = (second.sum(0) - (n[:, None] * step).T @ step) / n.sum()
            mean = mean - self.origin
        elif self.kind == LINEAR:
            mean = first @ self.back.T
            cov = (self.scatter - (n[:, None] * mean).T @ mean) / n.sum()
        elif self.kind == DIAGONAL:
            scale = np.diagonal(self.back)
            mean = first * scale
            cov = np.maximum(S[:d].T / n[:, None] - np.square(first), 0) * np.square(scale)
            cov = cov.mean(1) if self.mixture.U.ndim == 1 else cov
        else:
            mean = first @ self.back.T
            second = np.empty((k, d * d))
            second[:, self.pairs] = second[:, self.mirror] = S[: len(self.pairs)].T / n[:, None]
            cov = second.reshape(k, d, d) - first[:, :, None] * first[:, None]
            cov = self.back @ cov @ self.back.T  # whose lower triangle counts
        mean = mean + self.origin
        if len(self.narrow) and self.kind != LINEAR:
            at = self.narrow
            mean[at], second, step = self._narrow_moments(n[at])
            scaled = second / n[at, None, None]
            if self.kind == FULL:
                cov[at] = scaled - step[:, :, None] * step[:, None]
            else:
                variance = np.maximum(scaled[:, 0] - np.square(step), 0)
                cov[at] = variance.mean(1) if cov.ndim == 1 else variance
        count, centre, spread = map(torch.from_numpy, (S[-1], mean, cov))
        return count, centre, spread

    def _narrow_moments(self, n: F64) -> tuple[F64, F64, F64]:
        """Means, sums of products about the means of before, and how far the means moved."""
        step = self.sums["x"].numpy() / n[:, None]
        return wide(self.mixture.mu)[self.narrow] + step, self.sums["xx"].numpy(), step
