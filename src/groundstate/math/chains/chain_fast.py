r"""Chain recursions on the CPU: compiled, threads share the rows.

The kernels work with :math:`e^{-u}` and :math:`e^{-w}`, scaled so that each step's largest message
is 1; a step is then a small matrix-vector product instead of :math:`K^2` exponentials. This is
exact as long as nothing underflows. Rows whose energies differ by more than ``RANGE`` within one
position, or whose messages fall below ``TINY``, are handed to :mod:`chain_reference`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from groundstate.math.chains import chain_reference

RANGE = 45.0  # nats; e^-45 and its product with TINY are normal numbers
TINY = 1e-260


def mode(u: Tensor, w: Tensor, steps: Tensor) -> Tensor:
    """Lexicographically lowest minimiser, ``(B, L)`` int64."""
    from groundstate.math.chains import chain_numba as chain_kernels

    y, energy = np.zeros(u.shape[:2], np.int64), np.empty(len(u), u.numpy().dtype)
    work = u.shape[1] * u.shape[2] ** 2
    _share(chain_kernels.viterbi, len(u), work, _np(u), _np(_four(w)), steps.numpy(), y, energy)
    impossible = torch.from_numpy(energy).isposinf()
    if bool(impossible.any()):
        row = int(impossible.nonzero()[0, 0])
        raise ValueError(f"every sequence is forbidden (+inf) in row {row}")
    return torch.from_numpy(y)


def log_partition(u: Tensor, w: Tensor, steps: Tensor) -> Tensor:
    """``log Z``, ``(B,)``, differentiable once."""
    if w.ndim == 4 and not (torch.is_grad_enabled() and (u.requires_grad or w.requires_grad)):
        return chain_reference.log_partition(u, w, steps)  # each w is read once: nothing to gain
    value: Tensor = _LogPartition.apply(u, w, steps)
    return value


def marginals(u: Tensor, w: Tensor, steps: Tensor, pairs: bool) -> tuple[Tensor, Tensor]:
    """Single and, if asked for, pair marginals (else an empty tensor)."""
    u, w = u.detach(), w.detach()
    return _Run(u, w, steps).marginals("all" if pairs else "none")


def statistics(
    u: Tensor, w: Tensor, steps: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, single marginals, and weighted sums of pair marginals, from one set of messages."""
    run = _Run(u.detach(), w.detach(), steps)
    return run.log_z, *run.marginals("sum", weight)


def sample(u: Tensor, w: Tensor, steps: Tensor, noise: Tensor) -> Tensor:
    """Sequences ``(N, B, L)`` at uniform ``noise`` of that shape."""
    from groundstate.math.chains import chain_numba as chain_kernels

    run = _Run(u, w, steps)
    drawn = np.zeros(noise.shape, np.int64)
    arrays = run.eu, run.ew, run.beta, steps.numpy(), _np(noise), drawn
    _share(chain_kernels.draw, len(u), len(noise) * u.shape[1] * u.shape[2], *arrays)
    y = torch.from_numpy(drawn)
    if len(run.wild):
        y[:, run.wild] = chain_reference.sample(*run.rows(), noise[:, run.wild])
    return y


class _Run:
    """Messages of all rows; ``wild`` lists the rows that the scaled recursion cannot take."""

    def __init__(self, u: Tensor, w: Tensor, steps: Tensor) -> None:
        from groundstate.math.chains import chain_numba as chain_kernels

        self.u, self.w, self.steps = u, w, steps
        low, eu, tame_u = _boltzmann(u.to(torch.float64), 1)
        four = _four(w)
        floor, ew, tame_w = _boltzmann(four.to(torch.float64) if four.shape[0] == 1 else four, 2)
        self.eu, self.ew = eu.numpy(), ew.numpy()
        tame = tame_u.flatten(1).all(1) & tame_w.flatten(1).all(1)
        low, floor = low.flatten(2)[..., 0], floor.to(torch.float64).flatten(2)[..., 0]
        floor = floor.expand(u.shape[0], max(u.shape[1] - 1, 0))
        offset = low.clone()
        offset[:, 1:] += floor  # energy taken out at each position, (B, L)
        inside = torch.arange(u.shape[1]) < steps[:, None]
        offset = torch.where(inside, offset, 0.0).sum(1)
        self.work = u.shape[1] * u.shape[2] ** 2  # operations per row
        self.beta, log_scale = np.ones(self.eu.shape), np.zeros(len(u))
        arrays = self.eu, self.ew, steps.numpy(), TINY, self.beta, log_scale
        _share(chain_kernels.backward, len(u), self.work, *arrays)
        scale = torch.from_numpy(log_scale)
        self.log_z = (scale - offset).to(u.dtype)
        self.wild = (~tame | scale.isnan()).nonzero()[:, 0]
        if len(self.wild):
            self.log_z[self.wild] = chain_reference.log_partition(*self.rows())

    def rows(self) -> tuple[Tensor, Tensor, Tensor]:
        w = self.w if self.w.ndim == 2 else self.w[self.wild]
        return self.u[self.wild], w, self.steps[self.wild]

    def marginals(self, pairs: str, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Singles, and pairs: "all" ``(B, L-1, K, K)``, "sum" (weighted, ``(K, K)``) or "none"."""
        from groundstate.math.chains import chain_numba as chain_kernels

        code = ("none", "all", "sum").index(pairs)
        if weight is None:
            weight = torch.ones(len(self.u), dtype=self.u.dtype)
        weight_ = weight.to(torch.float64)
        tame = torch.ones(len(self.u), dtype=torch.bool)
        tame[self.wild] = False
        b, n, k = self.eu.shape
        slots = chain_kernels.SLOTS
        mu_ = np.zeros((b, n, k))
        pair_ = np.zeros(((1, 1, 1, 1), (b, n - 1, k, k), (1, slots, k, k))[code])
        known = self.eu, self.ew, self.beta, self.steps.numpy(), tame.numpy(), code
        each = b * self.work // slots
        _share(chain_kernels.forward, slots, each, *known, weight_.numpy(), mu_, pair_)
        mu = torch.from_numpy(mu_).to(self.u.dtype)
        pair = torch.from_numpy(pair_).to(self.u.dtype)
        if pairs == "sum":
            pair = pair.sum((0, 1))
        if len(self.wild):
            mu[self.wild], wild = chain_reference.marginals(*self.rows())
            if pairs == "all":
                pair[self.wild] = wild
            elif pairs == "sum":
                pair = pair + (weight[self.wild, None, None, None] * wild).sum((0, 1))
        return mu, pair


class _LogPartition(torch.autograd.Function):
    """Forward: messages. Backward: ∂ log Z/∂u = −marginals, ∂ log Z/∂w = −pair marginals."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, w: Tensor, steps: Tensor) -> Tensor:
        ctx.run = _Run(u.detach(), w.detach(), steps)
        return ctx.run.log_z.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        run: _Run = ctx.run
        if not ctx.needs_input_grad[1]:
            return -grad[:, None, None] * run.marginals("none")[0], None, None
        if run.w.ndim == 2:  # summed in the kernel: no (B, L-1, K, K) tensor
            mu, total = run.marginals("sum", grad)
            return -grad[:, None, None] * mu, -total, None
        mu, pair = run.marginals("all")
        return -grad[:, None, None] * mu, -grad[:, None, None, None] * pair, None


def _share(kernel: Callable[..., None], count: int, work: int, *arrays: Any) -> None:
    """Run ``kernel(lo, hi, ...)`` over ``0..count``, in as many threads as torch uses."""
    threads = min(torch.get_num_threads(), count)
    if threads < 2 or count * work < 2**18:  # a thread costs more than this
        kernel(0, count, *arrays)
        return
    cuts = [count * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(kernel, lo, hi, *arrays) for lo, hi in pairwise(cuts)]
        for job in jobs:
            job.result()


def _boltzmann(e: Tensor, axes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lowest entry over the last ``axes``, ``exp(low - e)``, which blocks are within ``RANGE``."""
    flat = e.contiguous().flatten(-axes)
    low, high = flat.aminmax(dim=-1, keepdim=True)
    low = torch.where(low.isfinite(), low, 0.0)
    tame = high - low <= RANGE
    if not bool(tame.all()):  # forbidden entries are exact zeros and do no harm
        gap = flat - low
        tame = (~((gap > RANGE) & gap.isfinite())).all(-1, keepdim=True)
    weight = torch.sub(low, flat).exp_().view(e.shape)
    return low, weight, tame


def _four(w: Tensor) -> Tensor:
    return w[None, None] if w.ndim == 2 else w


def _np(a: Tensor) -> Any:
    return a.contiguous().numpy()
