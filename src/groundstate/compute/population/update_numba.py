r"""One optimiser step of every member in one pass over its parameters, compiled.

A member's scalars come as a row of `COLUMNS`. Gradients lie block by block, one block per tensor:
row p of block b begins at ``blocks[b, 0] + p * blocks[b, 2]`` of ``grad`` and belongs to
``theta[p, blocks[b, 1]:]``; ``blocks[b, 3]`` says whether penalties apply.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from groundstate.compute.population.dense_numba import passes

COLUMNS = (
    "metric", "beta1", "beta2", "eps", "shrink", "decay", "ridge", "lasso", "clip", "rate", "gain1",
    "gain2",
)  # fmt: skip
ADAM, SGD, RMSPROP, ADAGRAD = range(4)


def _update(
    rule: Any, theta: Any, grad: Any, blocks: Any, m: Any, v: Any, cols: Any, active: Any,
    nesterov: Any, pulls: Any,
) -> None:  # fmt: skip
    """θ, m and v change in place; `pulls` gets each member's penalty before the step.

    Columns: ``shrink`` multiplies θ before the step (decoupled decay), ``decay`` and ``ridge`` pull
    θ in all and in the penalised blocks, ``clip`` is the largest norm (negative: none), ``rate`` the
    step size with bias corrections, and ``lasso`` times the optimiser's metric, the factor before a
    settled gradient, the soft threshold after the step.
    """
    for p in prange(theta.shape[0]):
        if not active[p]:
            continue
        one = theta.dtype.type(1)
        zero = theta.dtype.type(0)
        beta1, beta2, eps = cols[p, 1], cols[p, 2], cols[p, 3]
        shrink, decay, ridge = cols[p, 4], cols[p, 5], cols[p, 6]
        lasso, clip, rate = cols[p, 7], cols[p, 8], cols[p, 9]
        gain1, gain2 = cols[p, 10], cols[p, 11]  # 1 - β, which float32 cannot find from β
        cut = cols[p, 0] * lasso
        adaptive = rule != 1
        scale, pull = one, 0.0
        if clip >= zero:
            norm = 0.0
            for b in range(len(blocks)):
                at, to, n = blocks[b, 0] + p * blocks[b, 2], blocks[b, 1], blocks[b, 2]
                own = decay + (ridge if blocks[b, 3] else zero)
                g_, t_ = grad[at : at + n], theta[p, to : to + n]
                total = zero
                for i in range(n):
                    g = g_[i] + own * t_[i]
                    total += g * g
                norm += total
            norm = np.sqrt(norm)
            if norm > clip:
                scale = theta.dtype.type(clip / (norm + 1e-6))
        for b in range(len(blocks)):
            at, to, n = blocks[b, 0] + p * blocks[b, 2], blocks[b, 1], blocks[b, 2]
            g_, t_ = grad[at : at + n], theta[p, to : to + n]
            m_, v_ = m[p % len(m), to : to + n], v[p % len(v), to : to + n]
            pen = ridge if blocks[b, 3] else zero  # an integer factor would make all this float64
            own = decay + pen
            if pen != zero:
                total = zero
                for i in range(n):
                    total += t_[i] * t_[i]
                pull += 0.5 * pen * total
            if cut > zero and blocks[b, 3]:
                total = zero
                for i in range(n):
                    total += abs(t_[i])
                pull += lasso * total
            if rule == 0:
                for i in range(n):
                    t = t_[i]
                    g = (g_[i] + own * t) * scale
                    mean = m_[i] + (g - m_[i]) * gain1
                    square = beta2 * v_[i] + gain2 * (g * g)
                    m_[i] = mean
                    v_[i] = square
                    t_[i] = shrink * t - rate * mean / (np.sqrt(square) + eps)
            elif rule == 1:
                if len(m_) == 0:
                    for i in range(n):
                        t_[i] -= rate * ((g_[i] + own * t_[i]) * scale)
                else:
                    for i in range(n):
                        g = (g_[i] + own * t_[i]) * scale
                        speed = beta1 * m_[i] + g
                        m_[i] = speed
                        t_[i] -= rate * (g + beta1 * speed if nesterov else speed)
            elif rule == 2:
                for i in range(n):
                    g = (g_[i] + own * t_[i]) * scale
                    square = beta2 * v_[i] + gain2 * (g * g)
                    v_[i] = square
                    t_[i] -= rate * g / (np.sqrt(square) + eps)
            else:
                for i in range(n):
                    g = (g_[i] + own * t_[i]) * scale
                    square = v_[i] + g * g
                    v_[i] = square
                    t_[i] -= rate * g / (np.sqrt(square) + eps)
            if cut > zero and blocks[b, 3]:
                for i in range(n):
                    t = t_[i]
                    size = abs(t) - (cut / (np.sqrt(v_[i]) + eps) if adaptive else cut)
                    t_[i] = (
                        (size if t > zero else -size) if size > zero else (t if t != t else zero)
                    )
        pulls[p] = pull


UPDATE = passes(_update)
