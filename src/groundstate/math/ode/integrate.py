r"""The solution of :math:`\dot y = f(t, y)` at given times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.ode.adaptive import Control, adaptive, row_norm
from groundstate.math.ode.adjoint import adjoint, parameters_of
from groundstate.math.ode.fixed import Field, clock, fixed
from groundstate.math.ode.tables import FIXED

METHODS = (*FIXED, "dopri5", "radau")
GRADIENTS = ("backprop", "adjoint", "checkpoint")


def integrate(
    f: Callable[[Any, Any], Any],
    y0: Any,
    t: Any,
    method: str = "rk4",
    steps: int | None = None,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    max_steps: int = 10_000,
    gradient: str = "backprop",
    params: Sequence[Tensor] | None = None,
    rows: bool | None = None,
) -> Any:
    r"""Follow :math:`\dot y = f(t, y)` from :math:`y(t_0) = y_0` through the times t.

    ======== ===== ================================================================================
    euler    p = 1 :math:`y + hf(t, y)`; with h = 1 a residual block
    midpoint p = 2 the slope in the middle of the step
    heun     p = 2 the mean of the slopes at both ends
    rk4      p = 4 four slopes; Simpson's rule where f depends on t alone
    dopri5   p = 5 Dormand and Prince: steps as ``rtol`` and ``atol`` ask for, states between steps
                   by its quartic
    radau          scipy's implicit method for stiff systems, without a gradient
    ======== ===== ================================================================================

    Parameters
    ----------
    f : the slope, of a time and a state of the shape and kind of ``y0`` (a module always gets tensors)
    y0 : state at ``t[0]``, of any shape
    t : times ``(m,)``, ascending or descending
    method : see above
    steps : steps from one time to the next, 1 unless given; for the methods with fixed steps
    rtol, atol : error allowed in a step of dopri5 or radau, atol + rtol·|y|
    max_steps : steps of dopri5 at most
    gradient : "backprop" through all steps; "checkpoint", the same to the last digit but with the slopes
        computed again instead of remembered; "adjoint", an equation backwards in time, whose memory
        does not grow with the steps and whose error is that of the method
    params : for "adjoint": the tensors that get a gradient besides ``y0`` and ``t``; unless given, the
        parameters of a module, or all that f is seen to depend on
    rows : for dopri5: whether the first axis of ``y0`` counts systems that know nothing of each other,
        each with its own steps; f then gets the times as ``(B, 1, ...)``. Unless given, a vector is one
        system, and more axes are rows; one system of such a shape needs ``rows=False``

    Returns
    -------
    ``(m, *y0.shape)``, beginning with ``y0``

    Examples
    --------
    >>> integrate(lambda t, y: y, [1.0], [0.0, 1.0]).round(6).tolist()  # 65/24
    [[1.0], [2.708333]]
    >>> t = np.linspace(0, np.pi, 3)
    >>> integrate(lambda t, y: np.stack([y[1], -y[0]]), [0.0, 1.0], t, "dopri5").round(4).tolist()
    [[0.0, 1.0], [1.0, -0.0], [-0.0, -1.0]]
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if gradient not in GRADIENTS:
        raise ValueError(f"gradient must be one of {', '.join(GRADIENTS)}, got {gradient!r}")
    if steps is not None and (method not in FIXED or steps < 1):
        raise ValueError(
            f"steps must be at least 1 and goes with {', '.join(FIXED)}, got {steps} for {method}"
        )
    if not (rtol > 0 and atol >= 0 and max_steps >= 1):
        raise ValueError(
            f"rtol={rtol} and max_steps={max_steps} must be positive, atol={atol} >= 0"
        )
    numpy = not isinstance(y0, Tensor)
    state = as_tensor(y0, "y0")
    times = as_tensor(t, "t").to(state.device)
    times = times.to(state.real.dtype if state.is_complex() else state.dtype)
    _check_times(times)
    field = _field(f, state, numpy)
    with torch.set_grad_enabled(
        torch.is_grad_enabled() and (not numpy or isinstance(f, nn.Module))
    ):
        if len(times) == 1:
            out = state[None]
        elif method == "radau":
            out = _radau(field, state, times, rtol, atol)
        else:
            apart = _rows(rows, state) and method == "dopri5"
            if apart:
                _check_apart(field, state, times)
            control = Control(rtol, atol, max_steps)
            spare = gradient == "checkpoint"
            solve = partial(_solve, method=method, steps=steps or 1, control=control, spare=spare)
            if gradient == "adjoint" and torch.is_grad_enabled():
                if params is None:
                    params = parameters_of(f, field, clock(times[0], state, apart), state)
                out = adjoint(field, state, times, partial(solve, rows=apart), params, apart)
            else:
                out = _move_times(solve, field, state, times, apart, method)
    return to_numpy(out) if numpy else out


def _solve(
    field: Field,
    y: Tensor,
    t: Tensor,
    norm: Callable[[Tensor], Tensor] | None,
    *,
    rows: bool,
    method: str,
    steps: int,
    control: Control,
    spare: bool,
) -> Tensor:
    if method in FIXED:
        return fixed(field, y, t, FIXED[method], steps, spare)
    if norm is not None or not rows:
        alone = Control(control.rtol, control.atol, control.max_steps, norm or row_norm)

        def one(time: Tensor, state: Tensor) -> Tensor:
            return field(time.reshape(()), state[0])[None]

        return adaptive(one, y[None], t, alone, spare)[:, 0]
    return adaptive(field, y, t, control, spare)


def _move_times(
    solve: Callable[..., Tensor], field: Field, y: Tensor, t: Tensor, rows: bool, method: str
) -> Tensor:
    """The solution, with a gradient in the times where they have one: dy/dt is f, and a later start
    takes f(t₀, y₀) away from where the start is.
    """
    if method in FIXED or not t.requires_grad:
        return solve(field, y, t, None, rows=rows)
    fixed_times = t.detach()
    shift = t - fixed_times  # nothing, but with a gradient
    first = field(clock(fixed_times[0], y, rows), y).detach()
    out = solve(field, y - shift[0] * first, fixed_times, None, rows=rows)
    slopes = [field(clock(s, y, rows), x).detach() for s, x in zip(fixed_times[1:], out[1:])]
    moved = [x + s * k for x, s, k in zip(out[1:], shift[1:], slopes)]
    return torch.stack([y, *moved])


def _field(f: Callable[[Any, Any], Any], like: Tensor, numpy: bool) -> Field:
    """f for tensors, with a check of what it returns."""
    by_arrays = numpy and not isinstance(f, nn.Module)

    def field(time: Tensor, y: Tensor) -> Tensor:
        if by_arrays:
            out = torch.as_tensor(np.asarray(f(to_numpy(time), y.detach().numpy())))
            out = out.to(y.dtype)
        else:
            out = f(time, y)
            if not isinstance(out, Tensor):
                raise ShapeError(f"f must return a tensor like y0, got {type(out).__name__}")
        if out.shape != y.shape:
            raise ShapeError(
                f"f must return the shape of y, {tuple(y.shape)}, got {tuple(out.shape)}"
            )
        return out

    return field


def _check_times(t: Tensor) -> None:
    if t.ndim != 1 or not len(t):
        raise ShapeError(f"t must be times (m,), got shape {tuple(t.shape)}")
    gaps = t.detach().diff()
    if not (bool((gaps > 0).all()) or bool((gaps < 0).all())):
        raise ValueError("t must be strictly ascending or strictly descending")


def _rows(rows: bool | None, y: Tensor) -> bool:
    if rows and y.ndim < 1:
        raise ShapeError("rows=True needs a y0 whose first axis counts systems, got a number")
    return y.ndim >= 2 if rows is None else rows


@torch.no_grad()
def _check_apart(field: Field, y: Tensor, t: Tensor) -> None:
    """Whether the slope of other rows changes with the first one; each will have its own time."""
    if len(y) < 2:
        return
    y = y.detach()
    now = clock(t[0], y, True)
    changed = y.clone()
    changed[0] = y[1] if not torch.equal(y[0], y[1]) else 1.01 * y[1] + 1e-3
    one, other = field(now, y)[1:], field(now, changed)[1:]
    gap = (one - other).abs().max()
    if float(gap) > torch.finfo(y.dtype).eps ** 0.5 * float(one.abs().max()):
        raise ValueError(
            f"f mixes the rows of y0 {tuple(y.shape)}: the slopes of the others change with the first "
            "row; pass rows=False if y0 is the state of one system"
        )


def _radau(field: Field, y: Tensor, t: Tensor, rtol: float, atol: float) -> Tensor:
    from scipy.integrate import solve_ivp

    if torch.is_grad_enabled() and (y.requires_grad or field(t[0], y).requires_grad):
        raise Unsupported(
            "method='radau' is scipy's and has no gradient; use method='dopri5', or call it under "
            "torch.no_grad()"
        )

    if y.is_complex():
        raise ValueError("method='radau' is for real systems; pass real and imaginary parts as y0")

    def slope(time: float, flat: Any) -> Any:
        at = torch.as_tensor(flat).to(y).reshape(y.shape)
        with torch.no_grad():
            return field(torch.as_tensor(time).to(t), at).reshape(-1).cpu().numpy()

    times = t.detach().double().cpu().numpy()
    start = y.detach().reshape(-1).cpu().numpy()
    found = solve_ivp(
        slope, (times[0], times[-1]), start, "Radau", t_eval=times, rtol=rtol, atol=atol
    )
    if not found.success:
        raise ValueError(f"radau could not follow the system to t={times[-1]:g}: {found.message}")
    return torch.as_tensor(found.y.T.copy()).to(y).reshape(len(t), *y.shape)
