r"""Axes of largest variance in the space of a kernel."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.rows.distinct import merged
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.latent.kernel_codes import KernelCodeEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.spectrum import upright
from groundstate.math.kernels import Geometry, Precomputed
from groundstate.math.linalg.lanczos import lanczos
from groundstate.math.linalg.range_finder import randomized_svd
from groundstate.registry import solvers


@solvers.register(
    formula=r"HKH = V\Lambda V^\top,\quad A = V\Lambda^{-1/2}",
    make=lambda energy: KernelAxes(1),
)
@solver_for(KernelCodeEnergy, Naive)
@dataclass(frozen=True)
class KernelAxes:
    r"""Eigenvectors of the centred kernel matrix; coordinates of the rows are :math:`\sqrt{\lambda_k}v_k`.

    Parameters
    ----------
    n_components : axes; None: all of positive variance
    eigen_solver : "auto", "dense", "arpack" (Lanczos) or "randomized"
    tol : of "arpack"
    iterated_power : steps of "randomized"; "auto" is 7 for few axes, else 4
    remove_zero_eig : whether axes without variance are left out
    n_landmarks : rows that stand for all (Nyström); None: all rows
    """

    n_components: int | None = None
    eigen_solver: str = "auto"
    tol: float = 0.0
    iterated_power: int | str = "auto"
    remove_zero_eig: bool = False
    n_landmarks: int | None = None

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, KernelCodeEnergy) or not isinstance(problem.rule, Naive):
            return "it is for the distance to a plane of a kernel, KernelCodeEnergy with Naive"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return None if problem.penalty is None else "it has no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, KernelCodeEnergy)
        x, w = problem.resident["x"], problem.sample_weight
        history = History(converged=True, solver="KernelAxes", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            if isinstance(energy.kernel, Precomputed):  # its columns are rows, and stay as they are
                share = torch.ones(len(x)).to(x) if w is None else w
            else:
                rows, share = merged({"x": x}, w)
                x = rows["x"]
            values = self._found(energy, x, share.double(), problem)
            history.extra["eigenvalues"] = values.tolist()
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(math.nan)
        return history

    def _found(self, energy: KernelCodeEnergy, x: Tensor, w: Tensor, problem: Problem) -> Tensor:
        if self.n_landmarks is not None and self.n_landmarks < len(x):
            return self._by_landmarks(energy, x, w, problem)
        kernel = energy.kernel
        given = isinstance(kernel, Precomputed)
        centers = torch.arange(len(x)).to(x)[:, None] if given else x
        K = kernel.of(Geometry(x, centers)).double()
        p = w / w.sum()
        mean = K @ p  # (n,)
        square = float(p @ mean)
        root = w.sqrt()
        K.sub_(mean[:, None]).sub_(mean[None]).add_(square)
        if bool((w != 1).any()):
            K.mul_(root[:, None]).mul_(root[None])
        values, u = self._largest(K, problem)
        # by the coordinates of rows, which repetition leaves
        u = u * _signs(u / root.clamp_min(1e-300)[:, None])
        good = values > 0
        A = u * root[:, None] * torch.where(good, values.clamp_min(1e-300).rsqrt(), 0.0)
        # codes sum to nothing over the rows, so centring a new row is one constant
        A = A - p[:, None] * A.sum(0) if bool((~good).any()) else A
        energy.set(centers, A, mean @ A, p, square)
        return values

    def _largest(self, K: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
        n = len(K)
        k = n if self.n_components is None else min(self.n_components, n)
        solver = self.eigen_solver
        if solver == "auto":
            solver = "arpack" if n > 200 and k < n // 10 else "dense"
        generator = problem.key.fold("axes").torch(torch.device("cpu"))
        if solver == "arpack" and k < n:
            start = torch.randn(n, generator=generator, dtype=torch.float64).to(K)
            values, u, _ = lanczos(lambda v: K @ v, start, k, tol=self.tol)
        elif solver == "randomized" and k < n:
            power = self.iterated_power
            steps = (7 if k < 0.1 * n else 4) if isinstance(power, str) else power
            left, values, right = randomized_svd(K, k, power=steps, generator=generator)
            values = values * (left * right.T).sum(0).sign()  # of a symmetric matrix
            order = values.argsort(descending=True)
            values, u = values[order], left[:, order]
        else:
            values, u = torch.linalg.eigh(K)
            values, u = values[-k:].flip(0), u[:, -k:].flip(1)
        noise = 1e-12 * float(values[:1].abs().sum())
        values = torch.where(values > noise, values, 0.0)
        if self.remove_zero_eig or self.n_components is None:
            u, values = u[:, values > 0], values[values > 0]
        return values, u

    def _by_landmarks(
        self, energy: KernelCodeEnergy, x: Tensor, w: Tensor, problem: Problem
    ) -> Tensor:
        r"""Principal axes of :math:`K_{xm}K_{mm}^{-1/2}`, features that agree with the kernel at m rows."""
        m = self.n_landmarks
        assert m is not None
        line = WeightLine.of(x, weights=w)
        chosen = line.draw(problem.key.fold("landmarks"), m, distinct=True)
        L = x[torch.as_tensor(chosen, device=x.device)]
        kernel = energy.kernel
        s, U = torch.linalg.eigh(kernel.of(Geometry(L, L)).double())
        good = s > 1e-12 * s[-1]
        half = U[:, good] * s[good].rsqrt()  # (m, r)
        p = w / w.sum()
        features = kernel.of(Geometry(x, L)).double() @ half
        mean = p @ features
        diff = (features - mean) * w.sqrt()[:, None]
        k = features.shape[1] if self.n_components is None else self.n_components
        values, V = torch.linalg.eigh(diff.T @ diff)
        values, V = values.flip(0)[:k].clamp_min(0), upright(V.flip(1)[:, :k])
        A = half @ V
        q = half @ mean
        energy.set(L, A, mean @ V, q, float(mean.square().sum()))
        return values


def _signs(columns: Tensor) -> Tensor:
    """Signs that make the entry of largest modulus of each column positive, ``(k,)``."""
    peak = columns.gather(0, columns.abs().argmax(0, keepdim=True))[0]
    return torch.where(peak < 0, -1.0, 1.0).to(columns)
