r"""Dormand and Prince with a step size, an error and a clock of its own for every row of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from groundstate.math.ode.fixed import Field
from groundstate.math.ode.outputs import Outputs, Passed
from groundstate.math.ode.tables import DOPRI5, DOPRI5_DENSE, DOPRI5_ERROR

LOG_SAFETY, LOG_SHRINK, LOG_GROW, LOG_FLOOR = (math.log(x) for x in (0.9, 0.2, 10.0, 1e-4))
DENSE = tuple(zip(*DOPRI5_DENSE))
Norm = Callable[[Tensor], Tensor]


def row_norm(scaled: Tensor) -> Tensor:
    """Root of the mean square of every row, ``(R,)``."""
    if scaled.ndim < 2:
        return scaled.abs()
    square = (scaled.abs() if scaled.is_complex() else scaled).flatten(1).square()
    n = square.shape[1]
    return (square @ square.new_full((n,), 1 / n)).sqrt()  # faster than a mean over a short axis


@dataclass(frozen=True)
class Control:
    """What decides on steps: tolerances, the norm of the error, and the most steps of a row."""

    rtol: float
    atol: float
    max_steps: int
    norm: Norm = row_norm

    def ratio(self, error: Tensor, before: Tensor, after: Tensor) -> Tensor:
        """The error in units of what is allowed, ``(R,)``."""
        allowed = torch.maximum(before.abs(), after.abs()).mul_(self.rtol).add_(self.atol)
        return self.norm(error / allowed)


class Stages:
    """The slopes of a step; one block of memory where no gradient is needed."""

    def __init__(self, like: Tensor, keep_graph: bool) -> None:
        self.list: list[Tensor] = []
        self.share = torch.tensor(DOPRI5.c, dtype=torch.float64, device=like.device)[:, None]
        self.block: Tensor | None = None
        if not keep_graph:
            self.block = torch.empty(
                (len(DOPRI5.a), *like.shape), dtype=like.dtype, device=like.device
            )
            flat = self.block.view(len(DOPRI5.a), -1)
            self.places = list(self.block)
            self.parts = [flat[:n] for n in range(len(flat) + 1)]
            rows = (*DOPRI5.a, DOPRI5_ERROR, DENSE)
            self.rows = [torch.tensor(row, dtype=like.dtype, device=like.device) for row in rows]

    def put(self, k: Tensor) -> None:
        if self.block is not None:
            k = self.places[len(self.list)].copy_(k)
        self.list.append(k)

    def before(self, i: int) -> Tensor:
        """The slope that leads to stage i."""
        if self.block is not None:
            return (self.rows[i] @ self.parts[i]).view(self.places[0].shape)
        return self._sum(DOPRI5.a[i])

    def error(self) -> Tensor:
        """The difference of the solutions of order 5 and 4, for a step of one."""
        if self.block is not None:
            return (self.rows[-2] @ self.parts[-1]).view(self.places[0].shape)
        return self._sum(DOPRI5_ERROR)

    def quartic(self) -> Tensor:
        """Coefficients of θ to θ⁴ of the slope between both ends of the step, ``(4, R, ...)``."""
        if self.block is not None:
            return (self.rows[-1] @ self.parts[-1]).view(4, *self.places[0].shape)
        return torch.stack([self._sum(weights) for weights in DENSE])

    def _sum(self, weights: tuple[float, ...]) -> Tensor:
        out = self.list[0] * weights[0]
        for w, k in zip(weights[1:], self.list[1:]):
            if w:
                out = torch.add(out, k, alpha=w)
        return out


def _wide(x: Tensor, like: Tensor) -> Tensor:
    """Numbers of rows ``(R,)`` in the precision and with the axes of states ``(R, ...)``."""
    kind = like.real.dtype if like.is_complex() else like.dtype
    return x.to(kind).reshape(-1, *[1] * (like.ndim - 1))


def _full(x: Tensor, like: Tensor) -> Tensor:
    """The same, repeated over the axes of states: products with a short last axis are slow."""
    wide = _wide(x, like)
    return wide.expand(len(x), *like.shape[1:]).to(like.dtype).contiguous()


def _attempt(f: Field, t: Tensor, y: Tensor, k: Tensor, h: Tensor, stages: Stages) -> Tensor:
    """One step of every row from t, ``(R,)``, with its own h; fills ``stages``."""
    stages.list.clear()
    stages.put(k)
    full = _full(h, y)
    new = y
    share = stages.share
    clocks = _wide(torch.addcmul(t, share, h).flatten(), y).view(
        len(share), *full.shape[:1], *[1] * (y.ndim - 1)
    )
    for i, clock in enumerate(clocks[1:], 1):
        new = torch.addcmul(y, full, stages.before(i))
        stages.put(f(clock, new))
    return new


def _between(y: Tensor, h: Tensor, stages: Stages, passed: list[Passed]) -> tuple[Tensor, ...]:
    """States at the parts θ of the steps that were passed, by the quartic of the method."""
    quartic = stages.quartic() if passed else y
    return tuple(_at(y, h, quartic, *one[:2]) for one in passed)


def _at(y: Tensor, h: Tensor, quartic: Tensor, rows: Tensor | None, part: Tensor) -> Tensor:
    if rows is not None:
        y, h, quartic = (
            y.index_select(0, rows),
            h.index_select(0, rows),
            quartic.index_select(1, rows),
        )
    theta, scale = _full(part, y), _full(part * h, y)
    q1, q2, q3, q4 = quartic
    inner = torch.addcmul(q3, theta, q4)
    inner = torch.addcmul(q2, theta, inner)
    inner = torch.addcmul(q1, theta, inner)
    return torch.addcmul(y, scale, inner)


def _first_step(f: Field, t: Tensor, y: Tensor, k: Tensor, control: Control) -> Tensor:
    """A first step size of every row (Hairer, Nørsett and Wanner, II.4)."""
    scale = control.atol + control.rtol * y.abs()
    d0, d1 = control.norm(y / scale), control.norm(k / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = torch.where(small, 1e-6, 0.01 * d0 / torch.where(d1 > 0, d1, 1.0)).to(torch.float64)
    probe = f(_wide(t + h0, y), y + _wide(h0, y) * k)
    d2 = control.norm((probe - k) / scale) / h0
    most = torch.maximum(d1, d2)
    h1 = torch.where(
        most <= 1e-15, (1e-3 * h0).clamp(min=1e-6), (0.01 / most.clamp(min=1e-300)) ** (1 / 5)
    )
    return torch.minimum(100 * h0, torch.where(h1.isfinite(), h1, h0))


def _reversed(f: Field) -> Field:
    return lambda t, y: -f(-t, y)


def adaptive(f: Field, y: Tensor, t: Tensor, control: Control, spare: bool) -> Tensor:
    """The states ``(m, R, ...)`` of rows y ``(R, ...)`` at the times t ``(m,)``.

    Step sizes are constants for the gradient. ``spare`` remembers the states between steps alone and
    computes the slopes again for the gradient.
    """
    R = len(y)
    times = t.detach().to(torch.float64)
    way = 1.0 if float(times[-1]) >= float(times[0]) else -1.0
    if way < 0:  # time runs forward below
        f, times = _reversed(f), -times
    end = times[-1]
    now = times[0].expand(R).clone()
    k = f(_wide(now, y), y)
    graph = torch.is_grad_enabled() and (k.requires_grad or y.requires_grad)
    with torch.no_grad():
        h = _first_step(f, now, y.detach(), k.detach(), control)
        stages = Stages(y, keep_graph=False)
        log_before = torch.zeros(R, dtype=torch.float64, device=y.device)
        rejected: Tensor | None = None
    outputs = Outputs(y, times, graph)
    for _ in range(control.max_steps):
        left = end - now
        last = left <= h * (1 + 1e-9)
        h = torch.where(last, left, h)  # also nothing, for a row that is done
        if rejected is not None:
            _check_size(h, now, rejected & ~last, way)
        with torch.set_grad_enabled(graph and not spare):
            if graph and not spare:
                stages = Stages(y, keep_graph=True)
            new = _attempt(f, now, y, k, h, stages)
        k_new = stages.list[-1]
        with torch.no_grad():
            error = _wide(h, y) * stages.error().detach()
            ratio = control.ratio(error, y.detach(), new.detach()).to(torch.float64)
            ratio = ratio.nan_to_num_(1e10, 1e10)  # NaN is an error that is too large
            accept = ratio <= 1.0
            every = bool(accept.all())
            rejected = None if every else ~accept
            step = h if every else torch.where(accept, h, 0.0)
            ended = last & accept
            moved = torch.where(ended, end, now + step)
            passed = outputs.passed(now, moved, step)
        if graph and (spare or not (every or bool(new.isfinite().all()))):
            # a rejected step stays out of the graph: 0 times infinity has no gradient
            run = _replay(f, now, step, passed)
            new, k_new, *values = checkpoint(run, y, k, use_reentrant=False) if spare else run(y, k)
        else:
            values = _between(y, step, stages, passed)
            if rejected is not None and graph:
                mask = _mask(accept, y)
                new, k_new = torch.where(mask, new, y), torch.where(mask, k_new, k)
            elif rejected is not None:
                again = rejected.nonzero()[:, 0]
                new.index_copy_(0, again, y[again])
                k_new.index_copy_(0, again, stages.list[0][again])
        ends = bool(passed) and bool(ended.any())
        for one, value in zip(passed, values):
            if ends:
                exact = new if one.rows is None else new[one.rows]
                value = torch.where(_mask(one.part == 1.0, y), exact, value)
            outputs.put(one, value)
        if passed and outputs.complete:
            break
        with torch.no_grad():
            log_ratio = ratio.clamp_(min=1e-10).log_()
            grow = log_before.mul_(0.08).sub_(log_ratio, alpha=0.14).add_(LOG_SAFETY)
            grow.clamp_(LOG_SHRINK, LOG_GROW)
            log_before = log_ratio.clamp(min=LOG_FLOOR)
            if rejected is not None:
                less = (LOG_SAFETY - 0.2 * log_ratio).clamp(min=LOG_SHRINK)
                grow = torch.where(accept, grow, less)
                log_before.masked_fill_(rejected, 0.0)
            h = grow.exp_().mul_(h.masked_fill(ended, 1.0))
        y, k, now = new, k_new, moved
    else:
        _too_many(control.max_steps, now, way)
    return outputs.states()


def _mask(which: Tensor, like: Tensor) -> Tensor:
    return which.reshape(-1, *[1] * (like.ndim - 1))


def _replay(
    f: Field, now: Tensor, step: Tensor, passed: list[Passed]
) -> Callable[..., tuple[Tensor, ...]]:
    """A step again, with steps of nothing for rows whose step was rejected."""

    def run(y: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        stages = Stages(y, keep_graph=True)
        new = _attempt(f, now, y, k, step, stages)
        return new, stages.list[-1], *_between(y, step, stages, passed)

    return run


def _check_size(h: Tensor, now: Tensor, which: Tensor, way: float) -> None:
    stuck = which & (h.abs() <= 16 * torch.finfo(torch.float64).eps * now.abs())
    if bool(stuck.any()):
        i = int(stuck.nonzero()[0])
        raise ValueError(
            f"dopri5 needs steps of {float(h[i].abs()):.3g} at t={way * float(now[i]):.6g}, below rounding: "
            "the solution may have a pole there, or f may not be smooth; check f or end before that time"
        )


def _too_many(max_steps: int, now: Tensor, way: float) -> None:
    late = way * float(now.min())
    raise ValueError(
        f"dopri5 came to t={late:.6g} in max_steps={max_steps} steps; for a stiff system use "
        "method='radau' (scipy's, without a gradient), else raise max_steps or loosen rtol and atol"
    )
