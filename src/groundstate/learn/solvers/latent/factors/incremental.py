r"""Principal axes batch by batch in the memory of a few axes: a merged sketch, and Oja's rule."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.learn.solvers.latent.factors.spectrum import upright

State = dict[str, Any]


def sketch_step(state: State | None, x: Tensor, k: int) -> State:
    r"""Decompose :math:`[\operatorname{diag}(s)V^\top;\ X - \bar x_b;\ \text{shift of the mean}]`, keep k axes.

    The scatter of all rows is that of the old axes, of the batch about its mean, and of the two means.
    What the axes left out is lost: the result depends on the batches.
    """
    rows = x.double()
    m = len(rows)
    mean_b = rows.mean(0)
    diff = rows - mean_b
    square_b = diff.square().sum(0)
    if state is None:
        stack, n, mean, square = diff, 0, mean_b, square_b
        total = m
    else:
        n, mean = state["rows"], state["mean"]
        total = n + m
        shift = math.sqrt(n * m / total) * (mean - mean_b)
        square = state["square"] + square_b + shift.square()
        stack = torch.cat([state["s"][:, None] * state["V"], diff, shift[None]])
        mean = mean + (m / total) * (mean_b - mean)
    _, s, Vt = torch.linalg.svd(stack, full_matrices=False)
    kept = min(k, len(s))
    return {
        "rows": total, "mean": mean, "square": square, "s": s[:kept], "V": upright(Vt[:kept].T).T,
        "left": float(s[kept:].square().sum()), "all": len(s),
    }  # fmt: skip


def oja_step(state: State | None, x: Tensor, k: int, start: Tensor, rate: float = 1.0) -> State:
    r"""A stochastic gradient step, :math:`V \leftarrow \operatorname{qr}(V + \eta_t\,CV)`, C of the batch.

    :math:`\eta_t = c/t` in units of the variance along the first axis; the mean is a running one, and
    variances along the axes are running means too.
    """
    rows = x.double()
    m = len(rows)
    if state is None:
        mean = rows.mean(0)
        state = {
            "rows": 0, "mean": mean, "square": torch.zeros_like(mean), "steps": 0,
            "V": torch.linalg.qr(start.double()).Q.T, "variance": torch.zeros(k).to(mean),
        }  # fmt: skip
    n, before = state["rows"], state["mean"]
    total, steps = n + m, state["steps"] + 1
    batch = rows.mean(0)
    mean = before + (m / total) * (batch - before)
    diff = rows - mean
    V = state["V"]
    image = diff.T @ (diff @ V.T) / m  # (d, k)
    scale = float((V.T * image).sum(0).max().clamp_min(torch.finfo(torch.float64).tiny))
    V = torch.linalg.qr(V.T + (rate * 4 / (steps + 3)) * image / scale).Q.T
    share = max(m / total, 2 / (steps + 1))  # early axes were wrong: forget their variances
    variance = state["variance"] + share * ((diff @ V.T).square().mean(0) - state["variance"])
    square = state["square"] + (rows - batch).square().sum(0)
    square = square + (n * m / total) * (batch - before).square()
    return {
        "rows": total, "mean": mean, "square": square, "steps": steps, "V": V, "variance": variance,
    }  # fmt: skip
