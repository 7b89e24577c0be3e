r"""Axes of largest variance in the space of a kernel."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor

from groundstate.compute.rows import hash_together
from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.latent.kernel_codes import KernelCodeEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.spectrum import upright
from groundstate.math.kernels import Geometry, Precomputed
from groundstate.math.linalg.lanczos import lanczos
from groundstate.math.linalg.range_finder import randomized_svd
from groundstate.math.linalg.spectrum import eigenpairs
from groundstate.registry import solvers

FEW = 150  # rows up to which all eigenvalues are found sooner than a few
SMALL = 500  # rows up to which the steps of Lanczos' method cost more than their products


@solvers.register(
    formula=r"HKH = V\Lambda V^\top,\quad A = V\Lambda^{-1/2}",
    make=lambda energy: KernelAxes(1),
)
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
    max_iter : of "arpack"
    """

    n_components: int | None = None
    eigen_solver: str = "auto"
    tol: float = 0.0
    iterated_power: int | str = "auto"
    remove_zero_eig: bool = False
    n_landmarks: int | None = None
    max_iter: int | None = None

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
                place = None
            else:
                x, share, place = _distinct(x, w)
            values, codes = self._found(energy, x, share.double(), problem)
            if w is None or bool((w > 0).all()):
                history.about["codes"] = codes if place is None else codes[place]
            history.extra["eigenvalues"] = values.tolist()
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(math.nan)
        return history

    def _found(
        self, energy: KernelCodeEnergy, x: Tensor, w: Tensor, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        """Eigenvalues, and the codes of the rows."""
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
        values, u = self._largest(K, problem, x.dtype == torch.float32)
        # by the coordinates of rows, which repetition leaves
        u = u * _signs(u / root.clamp_min(1e-300)[:, None])
        good = values > 0
        A = u * root[:, None] * torch.where(good, values.clamp_min(1e-300).rsqrt(), 0.0)
        # codes sum to nothing over the rows, so centring a new row is one constant
        A = A - p[:, None] * A.sum(0) if bool((~good).any()) else A
        energy.set(centers, A, mean @ A, p, square)
        return values, u * values.sqrt() / root.clamp_min(1e-300)[:, None]

    def _largest(self, K: Tensor, problem: Problem, single: bool) -> tuple[Tensor, Tensor]:
        n, w = len(K), problem.sample_weight
        most = problem.rows if w is None else int(w.sum())
        k = n if self.n_components is None else min(self.n_components, n)
        solver = self.eigen_solver
        if solver == "auto":
            solver = "arpack" if n > FEW and k < n // 10 else "dense"
        key = problem.key.fold("axes")
        if solver == "arpack" and k < n <= SMALL and K.device.type == "cpu":
            v0 = key.numpy().standard_normal(n)
            found = eigsh(K.numpy(), k, which="LA", v0=v0, tol=self.tol, maxiter=self.max_iter)
            values, u = (torch.from_numpy(v[..., ::-1].copy()) for v in found)
        elif solver == "arpack" and k < n:
            start = torch.from_numpy(key.numpy().standard_normal(n)).to(K)
            values, u, _ = lanczos(_product(K), start, k, tol=self.tol, max_iter=self.max_iter)
        elif solver == "randomized" and k < n:
            power = self.iterated_power
            steps = (7 if k < 0.1 * n else 4) if isinstance(power, str) else power
            generator = key.torch(torch.device("cpu"))
            left, values, right = randomized_svd(K, k, power=steps, generator=generator)
            values = values * (left * right.T).sum(0).sign()  # of a symmetric matrix
            order = values.argsort(descending=True)
            values, u = values[order], left[:, order]
        elif K.device.type == "cpu" and k < n // 2:
            found = eigenpairs(K.numpy(), n - k, n - 1)
            values, u = (torch.from_numpy(v).flip(-1) for v in found)
        else:
            values, u = torch.linalg.eigh(K)
            values, u = values[-k:].flip(0), u[:, -k:].flip(1)
        return self._positive(values, u, single, most)

    def _positive(
        self, values: Tensor, u: Tensor, single: bool, most: int
    ) -> tuple[Tensor, Tensor]:
        """Eigenvalues without what rounding left of zeros; one below zero is no variance."""
        high, low = max(0.0, float(values.max())), float(values.min())
        if low < -(5e-3 if single else 1e-5) * high - 1e-10:
            raise ValueError(
                f"There are significant negative eigenvalues ({low:.3g}, the largest is {high:.3g}): "
                "the kernel is not positive semi-definite, or wrong for these rows; ask for fewer "
                "n_components, whose eigenvalues are positive, or take another kernel"
            )
        values = torch.where(values > (2e-7 if single else 1e-12) * high, values, 0.0)
        if self.remove_zero_eig or self.n_components is None:
            return values[values > 0], u[:, values > 0]
        extra = min(self.n_components, most) - len(values)  # rows that are equal have one axis
        if extra > 0:
            values, u = (torch.nn.functional.pad(v, (0, extra)) for v in (values, u))
        return values, u

    def _by_landmarks(
        self, energy: KernelCodeEnergy, x: Tensor, w: Tensor, problem: Problem
    ) -> tuple[Tensor, Tensor]:
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
        return values, (features - mean) @ V


def _distinct(x: Tensor, w: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of different content, their weights, and where among them each row of some weight is."""
    hashes = hash_together({"x": x})
    index, total = distinct_rows(hashes, w)
    place = np.searchsorted(hashes[index], hashes)
    at, place_ = (torch.from_numpy(v).to(x.device) for v in (index, place))
    return x[at], torch.from_numpy(total).to(x), place_


def _product(K: Tensor) -> Callable[[Tensor], Tensor]:
    """Kv; of a matrix with one vector NumPy's is the faster one on the CPU."""
    if K.device.type != "cpu":
        return lambda v: K @ v
    host = K.numpy()
    return lambda v: torch.from_numpy(host @ v.numpy())


def _signs(columns: Tensor) -> Tensor:
    """Signs that make the entry of largest modulus of each column positive, ``(k,)``."""
    peak = columns.gather(0, columns.abs().argmax(0, keepdim=True))[0]
    return torch.where(peak < 0, -1.0, 1.0).to(columns)
