"""Chain recursions in plain torch: the readable reference, differentiable to any order.

Arguments everywhere: ``u`` ``(B, L, K)`` and ``w`` ``(K, K)`` or ``(B, L-1, K, K)`` are energies
already divided by the temperature, ``steps`` ``(B,)`` the lengths.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def messages(u: Tensor, w: Tensor, steps: Tensor) -> list[Tensor]:
    """Log sums over what follows each state, ``L`` tensors ``(B, K)``."""
    n = u.shape[1]
    beta = [torch.zeros_like(u[:, 0])]
    for t in range(n - 2, -1, -1):
        onward = beta[-1] - u[:, t + 1]  # (B, K)
        new = torch.logsumexp(onward[:, None, :] - _pair(w, t), -1)
        beta.append(torch.where((t < steps - 1)[:, None], new, 0.0))
    return beta[::-1]


def log_partition(u: Tensor, w: Tensor, steps: Tensor) -> Tensor:
    """``log Z``, ``(B,)``."""
    return torch.logsumexp(messages(u, w, steps)[0] - u[:, 0], -1)


def marginals(u: Tensor, w: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Single ``(B, L, K)`` and pair ``(B, L-1, K, K)`` marginals."""
    b, n, k = u.shape
    beta = messages(u, w, steps)
    mu = [torch.softmax(beta[0] - u[:, 0], -1)]
    pairs = []
    for t in range(n - 1):
        logits = (beta[t + 1] - u[:, t + 1])[:, None, :] - _pair(w, t)  # (B, K, K)
        dead = torch.isneginf(logits).all(
            -1, keepdim=True
        )  # nothing may follow: no distribution, mu = 0
        pair = mu[-1][:, :, None] * torch.softmax(torch.where(dead, 0.0, logits), -1)
        pairs.append(torch.where((t < steps - 1)[:, None, None], pair, 0.0))
        mu.append(pairs[-1].sum(1))
    if not pairs:
        return mu[0][:, None], u.new_zeros(b, 0, k, k)
    return torch.stack(mu, 1), torch.stack(pairs, 1)


def sample(u: Tensor, w: Tensor, steps: Tensor, noise: Tensor) -> Tensor:
    """Sequences ``(N, B, L)``: the transition distributions inverted at uniform ``noise`` of that shape."""
    b, n, _ = u.shape
    beta = messages(u, w, steps)
    y = torch.zeros(noise.shape, dtype=torch.int64, device=u.device)
    rows = torch.arange(b, device=u.device)
    logits = (beta[0] - u[:, 0]).expand(noise.shape[0], -1, -1)  # (N, B, K)
    for t in range(n):
        if t:
            pair = w[y[..., t - 1]] if w.ndim == 2 else w[rows, t - 1, y[..., t - 1]]
            logits = beta[t] - u[:, t] - pair
        y[..., t] = torch.where(t < steps, _invert(logits, noise[..., t]), 0)
    return y


def _invert(logits: Tensor, noise: Tensor) -> Tensor:
    cumulative = torch.softmax(logits, -1).cumsum(-1)
    target = noise * cumulative[..., -1]  # the last entry may miss 1 by a rounding error
    return (cumulative <= target[..., None]).sum(-1).clamp(max=logits.shape[-1] - 1)


def topk(u: Tensor, w: Tensor, steps: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` lowest-energy sequences ``(k, B, L)``, energies ``(k, B)``; ties lexicographic.

    Min-sum from the right keeps the ``k`` best continuations of every state. A stable sort over
    (next state, rank) keeps them in lexicographic order among equals.
    """
    b, n, s = u.shape
    best = torch.full((b, s, k), math.inf, dtype=u.dtype, device=u.device)
    best[..., 0] = 0.0
    end = best
    onward = []  # per t: flat index into (next state, rank), (B, K, k)
    for t in range(n - 2, -1, -1):
        tail = best + u[:, t + 1, :, None]  # (B, K, k)
        all_pairs = (_pair(w, t)[..., None] + tail[:, None]).flatten(2)  # (B, K, K*k)
        value, index = _lowest(all_pairs, k)
        best = torch.where((t < steps - 1)[:, None, None], value, end)
        onward.append(index)
    energies, index = _lowest((best + u[:, 0, :, None]).flatten(1), k)  # (B, k)
    y = torch.zeros(k, b, n, dtype=torch.int64, device=u.device)
    rows = torch.arange(b, device=u.device)[:, None]
    state, rank = index // k, index % k  # (B, k)
    y[..., 0] = state.T
    for t, step in enumerate(reversed(onward)):
        index = step[rows, state, rank]
        inside = (t + 1 < steps)[:, None]
        state, rank = torch.where(inside, index // k, 0), torch.where(inside, index % k, 0)
        y[..., t + 1] = state.T
    return y, energies.T.contiguous()


def _lowest(e: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` lowest entries of the last axis in order, equals by index."""
    if k == 1:
        low = e.min(-1, keepdim=True)  # the first of several minima
        return low.values, low.indices
    value, index = e.sort(dim=-1, stable=True)
    return value[..., :k], index[..., :k]


def _pair(w: Tensor, t: int) -> Tensor:
    return w if w.ndim == 2 else w[:, t]
