r"""The halves of EM for Gaussian components, in coordinates that keep the digits.

In :math:`y = A(x - o)`, whitened by the covariance of all rows, a component is
:math:`\theta_z^\top\varphi(y)` with

.. math:: \theta_z = \bigl(-\tfrac12P_z,\ P_zm_z,\ \log\pi_z + \log|U_z| - \tfrac d2\log2\pi
          - \tfrac12m_z^\top P_zm_z\bigr),\quad P_z = A^{-\top}U_zU_z^\top A^{-1},\ m_z = A(\mu_z - o).

Rounding costs about :math:`\epsilon\max_i\|y_i\|^2\max_z\|P_z\|` of a log density.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from groundstate.compute.device import threads
from groundstate.compute.reduce import current
from groundstate.energy.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn.base import Batch, Problem
from groundstate.learn.em_steps import MStep
from groundstate.learn.kmeans_kernels import moments as kernel_moments
from groundstate.learn.mixture_kernels import DIAGONAL, FULL, LINEAR, em_pass, reach, scatter
from groundstate.learn.tiles import over_slices, tile_rows

DIGITS = 1e-8  # largest error of a log density that the fast path may make
MAX_FEATURES = 2**13  # beyond this a tile of features leaves the cache
KINDS = {"full": FULL, "tied": LINEAR, "diag": DIAGONAL, "spherical": DIAGONAL}
TINY = 10 * torch.finfo(torch.float64).eps
ROWS = 2**14
SMALL = 2**20  # differences below which waiting for threads costs more than it gains


class GaussianM(MStep):
    """E-step and statistics of a pass, then weights, means and covariances."""

    def __init__(self, problem: Problem, latent: str) -> None:
        super().__init__(problem, latent)
        energy = problem.energy
        assert isinstance(energy, GaussianMixtureEnergy)
        self.mixture = energy
        self.kind = KINDS[energy.covariance_type]
        d = energy.mu.shape[1]
        features = d * (d + 1) // 2 if self.kind == FULL else d
        self.able = energy.mu.device.type == "cpu" and features <= MAX_FEATURES
        self.fast = False
        if self.able:
            self._whiten()

    # --- coordinates ---------------------------------------------------------------------

    def _whiten(self) -> None:
        """Mean, covariance and whitening of all rows, and how far the farthest row is."""
        d, reg = self.mixture.mu.shape[1], self.mixture.reg_covar
        total, first = 0.0, np.zeros(d)
        for x, w in self._rows():
            for mass, sums, _ in self._sliced(kernel_moments, x, w, np.zeros(d)):
                total, first = total + mass, first + sums
        pair = current().sum_dict({"w": torch.tensor(total), "x": torch.from_numpy(first)})
        self.origin = pair["x"] / pair["w"]
        at, moments = self.origin.numpy(), np.zeros((d, d))
        for x, w in self._rows():
            moments += sum(self._sliced(scatter, x, w, at))
        self.scatter = current().sum(torch.from_numpy(moments))
        cov = self.scatter / pair["w"]
        if self.kind == DIAGONAL:
            values, vectors = cov.diagonal(), torch.eye(d, dtype=torch.float64)
        else:
            with threads(1):  # small factorisations wait for threads longer than they compute
                values, vectors = torch.linalg.eigh(cov)
        floor = max(reg, 1e-12 * float(values.max()), 1e-300)
        scale = values.clamp_min(floor).sqrt()
        self.turn = (vectors / scale).T.contiguous()
        self.back = vectors * scale  # turn⁻¹
        turn = self.turn.numpy()
        far = [max(self._sliced(reach, x, at, turn)) for x, _ in self._rows()]
        self.radius = float(current().max(torch.tensor(max(far), dtype=torch.float64)))

    def _rows(self) -> Iterator[tuple[Any, Any]]:
        """Rows and weights (of length zero for ones) as arrays, chunk by chunk."""
        for batch, weight in self.problem.chunks(2**20):
            yield _array(batch["x"]), np.empty(0) if weight is None else _array(weight.double())

    @staticmethod
    def _sliced(kernel: Any, x: Any, *arguments: Any) -> Iterator[Any]:
        return over_slices(lambda lo, hi: kernel(x, *arguments, lo, hi), len(x))

    def _theta(self) -> tuple[Tensor, Tensor]:
        """θ ``(k, F)`` in the coordinates of now, and the matrix that leads to them."""
        energy = self.mixture
        k, d = energy.mu.shape
        mu = energy.mu.detach().double() - self.origin
        U = energy.U.detach().double()
        log_det = energy.log_det().detach().double()
        constant = energy.log_weights.detach().double() + log_det - 0.5 * d * math.log(2 * math.pi)
        if self.kind == LINEAR:
            m = mu @ U.triu()
            self.size = torch.linalg.matrix_norm(self.back.T @ U.triu()) ** 2
            linear = torch.cat([m, (constant - 0.5 * m.square().sum(1))[:, None]], 1)
            return linear, U.triu().T.contiguous()
        m = mu @ self.turn.T
        if self.kind == DIAGONAL:
            P = (U.reshape(k, -1) * self.back.diagonal()).square()  # (k, d)
            self.size = P.max()
            quadratic, pull = -0.5 * P, P * m
        else:
            V = self.back.T @ U.triu()
            P = V @ V.mT  # (k, d, d)
            self.size = torch.linalg.matrix_norm(P).max()
            pull = (P @ m[:, :, None]).squeeze(-1)
            i, j = torch.triu_indices(d, d)
            quadratic = torch.where(i == j, -0.5, -1.0) * P[:, i, j]
        constant = constant - 0.5 * (pull * m).sum(1)
        return torch.cat([quadratic, pull, constant[:, None]], 1), self.turn

    # --- E -------------------------------------------------------------------------------

    def begin(self, T: float) -> None:
        super().begin(T)
        self.fast = False
        if self.able and T == 1:
            with threads(1):
                theta, turn = self._theta()
            error = torch.finfo(torch.float64).eps * self.radius * float(self.size)
            self.fast = error <= DIGITS
            self.theta, self.matrix = theta.numpy(), turn.numpy()

    @torch.no_grad()
    def add(self, batch: Batch, weight: Tensor | None) -> None:
        if not self.fast:
            small = self.able and len(batch["x"]) * self.mixture.mu.numel() < SMALL
            with threads(1) if small else nullcontext():
                for at in range(0, len(batch["x"]), ROWS):
                    part = None if weight is None else weight[at : at + ROWS]
                    super().add({"x": batch["x"][at : at + ROWS]}, part)
            return
        x = _array(batch["x"])
        w = np.empty(0) if weight is None else _array(weight.double())
        theta, turn, origin = self.theta, self.matrix, self.origin.numpy()
        tile = tile_rows(theta.size)
        S, J, total = np.zeros(theta.T.shape), 0.0, 0.0
        for sums, value, mass in self._sliced(em_pass, x, w, origin, turn, theta, self.kind, tile):
            S += sums
            J, total = J - value, total + mass
        self._sum("S", torch.from_numpy(S))
        self._sum("J", torch.tensor([J, total], dtype=torch.float64))

    def _sum(self, name: str, value: Tensor) -> None:
        self.sums[name] = self.sums[name] + value if name in self.sums else value

    def collect(self, batch: Batch, weight: Tensor | None) -> Tensor:
        """Statistics about the means of now, which cannot cancel."""
        law, F = self.complete.law(batch, self.T)
        k, d = self.mixture.mu.shape
        assert isinstance(law, Tensor | Categorical)
        r = law.probs if isinstance(law, Categorical) else torch.nn.functional.one_hot(law, k)
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

    @torch.no_grad()
    def finish(self) -> None:
        with threads(1) if self.able else nullcontext():
            n, mean, cov = self._fast_moments() if self.fast else self._moments()
            self.mixture.from_moments(n, mean, cov)

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
        return sums["n"], mean, cov.mean(1) if energy.covariance_type == "spherical" else cov

    def _fast_moments(self) -> tuple[Tensor, Tensor, Tensor]:
        S = self.sums["S"]
        k, d = self.mixture.mu.shape
        n = S[-1] + TINY
        first = S[-1 - d : -1].T / n[:, None]  # (k, d), in the coordinates of y
        if self.kind == LINEAR:
            U = self.mixture.U.detach().double().triu()
            mean = torch.linalg.solve_triangular(U, first, upper=True, left=False)
            cov = (self.scatter - (n[:, None] * mean).T @ mean) / n.sum()
        elif self.kind == DIAGONAL:
            scale = self.back.diagonal()
            mean = first * scale
            cov = (S[:d].T / n[:, None] - first.square()).clamp_min(0) * scale.square()
            cov = cov.mean(1) if self.mixture.covariance_type == "spherical" else cov
        else:
            mean = first @ self.back.T
            i, j = torch.triu_indices(d, d)
            second = first.new_empty(k, d, d)
            second[:, i, j] = second[:, j, i] = S[: len(i)].T
            cov = second / n[:, None, None] - first[:, :, None] * first[:, None]
            cov = self.back @ cov @ self.back.T
            cov = 0.5 * (cov + cov.mT)
        return S[-1], mean + self.origin, cov


def _array(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()


__all__ = ["GaussianM"]
