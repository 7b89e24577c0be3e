r"""Factors from rows with missing values: codes from what is observed, then a regression per feature."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.latent.probabilistic_pca import (
    TINY,
    FactorAnalysisEnergy,
    ProbabilisticPCAEnergy,
)
from groundstate.errors import DataError, NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.factors.eigen_factors import Noise, fixed_axes
from groundstate.learn.solvers.latent.factors.gaussian_fit import Factors


class Observed:
    """Rows with NaN as numbers, a mask, and the patterns of the mask.

    Attributes
    ----------
    x : ``(n, d)``, zero where missing
    seen : ``(n, d)``, one where observed
    patterns : ``(P, d)``, the different rows of ``seen``
    which : ``(n,)``, the pattern of each row
    """

    def __init__(self, x: Tensor) -> None:
        mask = ~torch.isnan(x)
        self.x = torch.where(mask, x, 0.0).double()
        self.seen = mask.double()
        self.patterns, self.which = torch.unique(self.seen, dim=0, return_inverse=True)

    def codes(self, now: Factors, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Codes m ``(n, l)``, their covariances for each pattern ``(P, l, l)``, and log densities.

        Per pattern :math:`S = (\sum_{j\in o} w_jw_j^\top/\psi_j + I/\sigma^2)^{-1}` and
        :math:`m = S\sum_{j\in o} w_j(x_j - b_j)/\psi_j`.
        """
        d, l = now.W.shape
        rate = now.W / now.noise.expand(d)[:, None]  # (d, l)
        outer = (rate[:, :, None] * now.W[:, None, :]).reshape(d, l * l)
        eye = torch.eye(l, dtype=rate.dtype, device=rate.device)
        A = (self.patterns @ outer).reshape(-1, l, l) + eye / now.prior
        factor = torch.linalg.cholesky(A)
        S = torch.cholesky_inverse(factor)
        diff = (self.x - b) * self.seen
        load = diff @ rate
        m = torch.einsum("nij,nj->ni", S[self.which], load)
        noise = now.noise.expand(d)
        square = (diff.square() / noise).sum(1) - (m * load).sum(1)
        volume = self.patterns @ (noise.log() + math.log(2 * math.pi))
        volume = volume + 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1) + l * math.log(now.prior)
        return m, S, -0.5 * (square + volume[self.which])


@dataclass(frozen=True)
class MissingFactors:
    r"""EM over codes and missing values (missing at random).

    E: codes and their covariances from the observed features of a row. M: each feature is regressed on
    :math:`(m, 1)` over the rows that have it, with the covariance of the codes added; the noise is the
    mean expected squared error of the observed entries. Sums over rows are all that shards add.

    Parameters
    ----------
    noise : ν, or "ml"; of one noise variance for all features
    tol : stop when an iteration gains less than this, in nats per row
    max_iter : iterations at most
    """

    noise: Noise = "ml"
    tol: float = 1e-6
    max_iter: int = 1000

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, ProbabilisticPCAEnergy):
            return "it is for linear Gaussian factors"
        return None if problem.is_resident else "rows with missing values must be in memory"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, ProbabilisticPCAEnergy)
        rows = Observed(problem.resident["x"])
        given = problem.sample_weight
        w = torch.ones(len(rows.x)).to(rows.x) if given is None else given.double()
        history = History(solver="MissingFactors", stop="max_iter")
        now, b = self._start(energy, rows, w)
        values: list[float] = []
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:
            for history.n_iter in range(1, self.max_iter + 1):
                start = time.perf_counter()
                value, now, b = self._step(now, b, rows, w)
                values.append(value)
                history.objective.append(-value)
                history.seconds.append(time.perf_counter() - start)
                if problem.callbacks:
                    _write(energy, now, b)
                if monitor.epoch(-value):
                    break
                if len(values) > 1 and value - values[-2] < self.tol:
                    history.converged, history.stop = True, "tol"
                    break
        history.extra["log_likelihood"] = values
        _write(energy, now, b)
        if not isinstance(energy, FactorAnalysisEnergy):
            fixed_axes(energy)
        if not history.converged and history.stop == "max_iter":
            warnings.warn(
                f"EM with missing values stopped after max_iter={self.max_iter} iterations, before "
                f"an iteration gained less than tol={self.tol:g}; raise max_iter",
                NotConverged,
                stacklevel=2,
            )
        return history

    def _start(
        self, energy: ProbabilisticPCAEnergy, rows: Observed, w: Tensor
    ) -> tuple[Factors, Tensor]:
        """Principal axes of the covariances of pairs that are both observed."""
        v = w[:, None] * rows.seen
        sums = current().sum_dict(
            {"n": v.sum(0), "x": (v * rows.x).sum(0), "w": w.sum(), "nn": v.T @ rows.seen}
        )
        if bool((sums["n"] <= 0).any()):
            j = int((sums["n"] <= 0).nonzero()[0, 0])
            raise DataError(f"feature {j} has no observed value; drop it")
        b = sums["x"] / sums["n"]
        diff = (rows.x - b) * rows.seen
        cov = current().sum((diff * w[:, None]).T @ diff) / sums["nn"].clamp_min(1e-300)
        values, vectors = torch.linalg.eigh(cov)
        l, d = energy.W.shape[1], len(b)
        mean = cov.diagonal().mean()
        rest = values[: d - l].clamp_min(0).mean() if d > l else 0.01 * mean
        floor = 1e-3 * mean + torch.finfo(torch.float64).tiny
        nu = torch.maximum(rest, floor) if self.noise == "ml" else mean.new_tensor(self.noise)
        top = (values[-l:].flip(0) - nu).clamp_min(0.1 * floor)
        W = vectors[:, -l:].flip(1) * (top / energy.prior_variance).sqrt()
        noise = nu.expand(d).clone() if energy.log_noise.ndim else nu
        return Factors(W, noise, energy.prior_variance), b

    def _step(
        self, now: Factors, b: Tensor, rows: Observed, w: Tensor
    ) -> tuple[float, Factors, Tensor]:
        """The likelihood here, and the factors of the next step."""
        d, l = now.W.shape
        m, S, density = rows.codes(now, b)
        one = torch.cat([m, torch.ones_like(m[:, :1])], 1)  # (n, l + 1)
        second = (one[:, :, None] * one[:, None, :]).reshape(len(one), -1)
        v = w[:, None] * rows.seen  # (n, d)
        # the covariance of the codes is the same for all rows of a pattern
        weight = torch.zeros(len(rows.patterns), dtype=w.dtype, device=w.device)
        weight.index_add_(0, rows.which, w)
        spread = (rows.patterns * weight[:, None]).T @ S.reshape(len(S), -1)  # (d, l·l)
        sums = current().sum_dict({
            "density": w @ density, "w": w.sum(), "n": v.sum(0),
            "gram": v.T @ second, "spread": spread, "across": (v * rows.x).T @ one,
            "square": (v * rows.x.square()).sum(0),
        })  # fmt: skip
        gram = sums["gram"].reshape(d, l + 1, l + 1).clone()
        gram[:, :l, :l] += sums["spread"].reshape(d, l, l)
        coefficients = torch.linalg.solve(gram, sums["across"][:, :, None])[:, :, 0]
        W, b = coefficients[:, :l], coefficients[:, l]
        left = sums["square"] - (coefficients * sums["across"]).sum(1)
        floor = TINY * (sums["square"] / sums["n"]).mean() + torch.finfo(torch.float64).tiny
        noise = now.noise
        if noise.ndim:
            noise = torch.maximum(left / sums["n"], floor)
        elif self.noise == "ml":
            noise = torch.maximum(left.sum() / sums["n"].sum(), floor)
        value = float(sums["density"] / sums["w"])
        return value, Factors(W, noise, now.prior), b


def _write(energy: ProbabilisticPCAEnergy, now: Factors, b: Tensor) -> None:
    energy.W.copy_(now.W)
    energy.b.copy_(b)
    energy.log_noise.copy_(now.noise.log())


def observed_answers(energy: ProbabilisticPCAEnergy, x: Tensor) -> tuple[Tensor, Tensor]:
    """Codes ``(n, l)`` and log densities ``(n,)`` of rows with NaN, from what is observed."""
    now = Factors(energy.W.double(), energy.noise.double(), energy.prior_variance)
    m, _, density = Observed(x).codes(now, energy.b.double())
    return m.to(energy.W.dtype), density.to(energy.W.dtype)
