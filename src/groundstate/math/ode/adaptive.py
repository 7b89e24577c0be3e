r"""Dormand and Prince with a step size, an error and a clock of its own for every row of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from groundstate.math.ode.fixed import Field
from groundstate.math.ode.tables import DOPRI5, DOPRI5_DENSE, DOPRI5_ERROR

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
Norm = Callable[[Tensor], Tensor]


def row_norm(scaled: Tensor) -> Tensor:
    """Root of the mean square of every row, ``(R,)``."""
    return scaled.flatten(1).abs().square().mean(1).sqrt() if scaled.ndim > 1 else scaled.abs()


@dataclass(frozen=True)
class Control:
    """What decides on steps: tolerances, the norm of the error, and the most steps of a row."""

    rtol: float
    atol: float
    max_steps: int
    norm: Norm = row_norm

    def ratio(self, error: Tensor, before: Tensor, after: Tensor) -> Tensor:
        """The error in units of what is allowed, ``(R,)``."""
        allowed = self.atol + self.rtol * torch.maximum(before.abs(), after.abs())
        return self.norm(error / allowed)


class Stages:
    """The slopes of a step; one block of memory where no gradient is needed."""

    def __init__(self, first: Tensor, keep_graph: bool) -> None:
        n = len(DOPRI5.a)
        self.block = None if keep_graph else first.new_empty((n, *first.shape))
        self.list: list[Tensor] = []
        self.put(first)

    def put(self, k: Tensor) -> None:
        if self.block is not None:
            self.block[len(self.list)] = k
            k = self.block[len(self.list)]
        self.list.append(k)

    def combine(self, weights: tuple[float, ...] | Tensor) -> Tensor:
        """The weighted sum of the slopes so far."""
        if self.block is not None:
            n = len(weights)
            w = torch.as_tensor(weights, dtype=self.block.dtype, device=self.block.device)
            return (w @ self.block[:n].reshape(n, -1)).reshape(self.block.shape[1:])
        out = torch.zeros_like(self.list[0])
        for w, k in zip(weights, self.list):
            if w:
                out = torch.add(out, k, alpha=float(w))
        return out


def _wide(x: Tensor, like: Tensor) -> Tensor:
    """Numbers of rows ``(R,)`` in the precision and with the axes of states ``(R, ...)``."""
    kind = like.real.dtype if like.is_complex() else like.dtype
    return x.to(kind).reshape(-1, *[1] * (like.ndim - 1))


def _attempt(
    f: Field, t: Tensor, y: Tensor, k: Tensor, h: Tensor, graph: bool
) -> tuple[Tensor, Stages]:
    """One step of every row from t, ``(R,)``, with its own h."""
    stages, wide = Stages(k, graph), _wide(h, y)
    new = y
    for row, c in zip(DOPRI5.a[1:], DOPRI5.c[1:]):
        new = torch.addcmul(y, wide.expand_as(y).to(y.dtype), stages.combine(row))
        stages.put(f(_wide(t + c * h, y), new))
    return new, stages


def _between(y: Tensor, h: Tensor, stages: Stages, rows: Tensor, part: Tensor) -> Tensor:
    """States at the parts θ of the steps of the given rows, by the quartic of the method."""
    powers = torch.stack([part, part**2, part**3, part**4], -1)  # (pairs, 4)
    weights = powers @ torch.tensor(DOPRI5_DENSE, dtype=part.dtype, device=part.device).T
    total = y[rows]
    for i, k in enumerate(stages.list):
        if i != 1:  # the second stage has no weight
            total = total + _wide(weights[:, i] * h[rows], y) * k[rows]
    return total


def _first_step(f: Field, t: Tensor, y: Tensor, k: Tensor, way: float, control: Control) -> Tensor:
    """A first step size of every row (Hairer, Nørsett and Wanner, II.4)."""
    scale = control.atol + control.rtol * y.abs()
    d0, d1 = control.norm(y / scale), control.norm(k / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = torch.where(small, 1e-6, 0.01 * d0 / torch.where(d1 > 0, d1, 1.0)).to(torch.float64)
    probe = f(_wide(t + way * h0, y), y + _wide(way * h0, y) * k)
    d2 = control.norm((probe - k) / scale) / h0
    most = torch.maximum(d1, d2)
    h1 = torch.where(
        most <= 1e-15, (1e-3 * h0).clamp(min=1e-6), (0.01 / most.clamp(min=1e-300)) ** (1 / 5)
    )
    return way * torch.minimum(100 * h0, torch.where(h1.isfinite(), h1, h0))


def adaptive(f: Field, y: Tensor, t: Tensor, control: Control, spare: bool) -> Tensor:
    """The states ``(m, R, ...)`` of rows y ``(R, ...)`` at the times t ``(m,)``.

    Step sizes are constants for the gradient. ``spare`` remembers the states between steps alone and
    computes the slopes again for the gradient.
    """
    R, m = len(y), len(t)
    times = t.detach().to(torch.float64)
    way = 1.0 if float(times[-1]) >= float(times[0]) else -1.0
    end, order = times[-1], way * times
    now = times[0].expand(R).clone()
    rows = torch.arange(R, device=y.device)
    k = f(_wide(now, y), y)
    graph = torch.is_grad_enabled() and (k.requires_grad or y.requires_grad)
    with torch.no_grad():
        h = _first_step(f, now, y.detach(), k.detach(), way, control)
    seen = torch.ones(R, dtype=torch.int64, device=y.device)  # outputs that a row has passed
    before = torch.ones(R, dtype=torch.float64, device=y.device)
    rejected = torch.zeros(R, dtype=torch.bool, device=y.device)
    found = [(torch.zeros_like(rows), rows, y)]
    for _ in range(control.max_steps):
        done = seen == m
        if bool(done.all()):
            break
        left = end - now
        last = way * left <= way * h * (1 + 1e-9)
        h = torch.where(last, left, h)  # also nothing, for a row that is done
        stuck = ~done & ~last & (h.abs() <= 16 * torch.finfo(torch.float64).eps * now.abs())
        if bool(stuck.any()):
            _too_small(now, h, stuck)
        with torch.set_grad_enabled(graph and not spare):
            new, stages = _attempt(f, now, y, k, h, graph and not spare)
        with torch.no_grad():
            error = _wide(h, y) * stages.combine(DOPRI5_ERROR).detach()
            ratio = control.ratio(error, y.detach(), new.detach()).to(torch.float64)
            ratio = torch.where(ratio.isfinite(), ratio, 1e10)  # NaN is an error that is too large
            accept = ratio <= 1.0
            step = torch.where(accept, h, 0.0)
            moved = torch.where(accept, torch.where(last, end, now + h), now)
            upto = torch.searchsorted(order, way * moved, right=True)
            count = upto - seen
            at = torch.repeat_interleave(rows, count)
            first = torch.repeat_interleave(seen - (count.cumsum(0) - count), count)
            which = first + torch.arange(len(at), device=y.device)
            part = (times[which] - now[at]) / torch.where(step == 0, 1.0, step)[at]
        every = bool(accept.all())
        if graph and (spare or not (every or bool(new.isfinite().all()))):
            # a rejected step stays out of the graph: 0 times infinity has no gradient
            run = _replay(f, now, step, at, part)
            if spare:
                new, k_new, values = checkpoint(run, y, k, use_reentrant=False)
            else:
                new, k_new, values = run(y, k)
        else:
            k_new = stages.list[-1]
            values = _between(y, step, stages, at, part) if len(at) else y[at]
            if not every:
                mask = accept.reshape(-1, *[1] * (y.ndim - 1))
                new, k_new = torch.where(mask, new, y), torch.where(mask, k_new, k)
            elif not graph:
                k_new = k_new.clone()
        if len(at):
            exact = part == 1.0
            if bool(exact.any()):
                values = torch.where(_mask(exact, y), new[at], values)
            found.append((which, at, values))
        with torch.no_grad():
            up = SAFETY * ratio.clamp(min=1e-10) ** -0.14 * before**0.08
            up = torch.where(rejected, up.clamp(max=1.0), up).clamp(SHRINK, GROW)
            down = (SAFETY * ratio.clamp(min=1.0) ** -0.2).clamp(min=SHRINK)
            before = torch.where(accept, ratio.clamp(min=1e-4), before)
            rejected = ~accept
            h = torch.where(accept, up, down) * torch.where(h == 0, way, h)
        y, k, now, seen = new, k_new, moved, upto
    else:
        if bool((seen < m).any()):
            _too_many(control.max_steps, now, way)
    out = y.new_zeros((m, *y.shape))
    which, at, values = (torch.cat(parts) for parts in zip(*found))
    return out.index_put((which, at), values)


def _mask(which: Tensor, like: Tensor) -> Tensor:
    return which.reshape(-1, *[1] * (like.ndim - 1))


def _replay(
    f: Field, now: Tensor, step: Tensor, at: Tensor, part: Tensor
) -> Callable[..., tuple[Tensor, ...]]:
    """A step again, with steps of nothing for rows whose step was rejected."""

    def run(y: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        new, stages = _attempt(f, now, y, k, step, True)
        return new, stages.list[-1], _between(y, step, stages, at, part)

    return run


def _too_small(now: Tensor, h: Tensor, stuck: Tensor) -> None:
    i = int(stuck.nonzero()[0])
    raise ValueError(
        f"dopri5 needs steps of {float(h[i].abs()):.3g} at t={float(now[i]):.6g}, below rounding: the "
        "solution may have a pole there, or f may not be smooth; check f or end before that time"
    )


def _too_many(max_steps: int, now: Tensor, way: float) -> None:
    late = float(now[(way * now).argmin()])
    raise ValueError(
        f"dopri5 came to t={late:.6g} in max_steps={max_steps} steps; for a stiff system use "
        "method='radau' (scipy's, without a gradient), else raise max_steps or loosen rtol and atol"
    )


__all__ = ["Control", "adaptive", "row_norm"]
