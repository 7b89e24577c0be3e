r"""Exact optimal transport.

.. math:: \min_T\ \langle T, M\rangle,\qquad T\mathbf 1 = a,\ T^\top\mathbf 1 = b,\ T \ge 0
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays

F64 = NDArray[np.float64]
_PIVOTS = 1000  # for each row and column; twenty are usual


class Transport(NamedTuple):
    r"""An optimal plan and what proves it: :math:`u_i + v_j \le M_{ij}` with equality on the plan.

    Attributes
    ----------
    cost : (...) the value, :math:`\langle T, M\rangle = a^\top u + b^\top v`
    plan : (..., n, m)
    u, v : (..., n), (..., m) the duals, prices of a unit of a and of b
    """

    cost: Any
    plan: Any
    u: Any
    v: Any

    def __repr__(self) -> str:
        return f"Transport(cost={self.cost}, plan={tuple(self.plan.shape)})"


@takes_arrays("a", "b", "M")
def emd(a: Any, b: Any, M: Any) -> Transport:
    r"""The cheapest way to turn the masses a into the masses b.

    A network simplex on the CPU, wherever the tensors live. The cost has gradient ``plan`` in M and
    ``u``, ``v`` in a, b (up to a constant, since the masses stay equal).

    Parameters
    ----------
    a, b : masses ``(..., n)`` and ``(..., m)`` of equal sums; None for equal masses that sum to 1
    M : costs ``(..., n, m)``

    Examples
    --------
    >>> found = emd([0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [4.0, 1.0]])
    >>> found.cost, found.plan.tolist()
    (0.5, [[0.5, 0.0], [0.0, 0.5]])
    """
    if M.ndim < 2 or 0 in M.shape:
        raise ShapeError(f"M must be costs (..., n, m), got shape {tuple(M.shape)}")
    n, m = M.shape[-2:]
    a = M.new_full((n,), 1 / n) if a is None else a
    b = M.new_full((m,), 1 / m) if b is None else b
    if a.ndim == 0 or b.ndim == 0 or (a.shape[-1], b.shape[-1]) != (n, m):
        raise ShapeError(
            f"M of shape {tuple(M.shape)} needs {n} masses a and {m} masses b, got "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    a, b = a.to(M.dtype), b.to(M.dtype)
    if (a.ndim, b.ndim, M.ndim) != (1, 1, 2):
        batch = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1], M.shape[:-2])
        a, b, M = a.expand(*batch, n), b.expand(*batch, m), M.expand(*batch, n, m)
    learned = torch.is_grad_enabled() and (a.requires_grad or b.requires_grad or M.requires_grad)
    return Transport(*(_Emd.apply if learned else _batch)(a, b, M))


def _batch(a: Tensor, b: Tensor, M: Tensor) -> tuple[Tensor, ...]:
    """Cost, plan and duals of every problem."""
    n, m = M.shape[-2:]
    host = [v.detach().double().cpu().numpy() for v in (a, b, M)]
    flat = host[0].reshape(-1, n), host[1].reshape(-1, m), host[2].reshape(-1, n, m)
    each = [_solve(*parts) for parts in zip(*flat, strict=True)]
    shapes = ((), (n, m), (n,), (m,))
    return tuple(
        torch.from_numpy(_stacked(part)).reshape((*M.shape[:-2], *shape)).to(M)
        for part, shape in zip(zip(*each, strict=True), shapes, strict=True)
    )


class _Emd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, M: Tensor) -> tuple[Tensor, ...]:
        cost, plan, u, v = _batch(a, b, M)
        ctx.save_for_backward(plan, u, v)
        ctx.mark_non_differentiable(plan, u, v)
        return cost, plan, u, v

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        plan, u, v = ctx.saved_tensors
        g = grads[0]
        return g[..., None] * u, g[..., None] * v, g[..., None, None] * plan


def _stacked(parts: tuple[F64, ...]) -> F64:
    return parts[0] if len(parts) == 1 else np.stack(parts)


def _solve(a: F64, b: F64, C: F64) -> tuple[F64, ...]:
    """Cost, plan and duals of one problem."""
    low = min(a.min(), b.min())
    if low < 0:
        raise ValueError("masses must not be negative")
    total, other = float(a.sum()), float(b.sum())
    if not total > 0 or abs(total - other) > 1e-6 * max(total, other):
        raise ValueError(
            f"a and b must have the same positive total mass, got {total:.9g} and {other:.9g}; "
            "divide each by its sum"
        )
    solve = _positive if low > 0 else _some_empty
    cost, plan, u, v = solve(a, b * (total / other), C)
    shift = v.mean()  # duals are known up to a constant
    return np.asarray(cost), plan, u + shift, v - shift


def _positive(a: F64, b: F64, C: F64, max_pivots: int | None = None) -> tuple[Any, ...]:
    """The same where no mass is zero."""
    from groundstate.math.transport.network_simplex_numba import solve

    C, unit = np.ascontiguousarray(C), 1.0
    if len(a) == len(b) and (a == a[0]).all() and (b == b[0]).all():
        unit = float(a[0])  # an assignment: whole units flow, without rounding
        a = b = np.ones(len(a))
    limit = _PIVOTS * (len(a) + len(b)) if max_pivots is None else max_pivots
    flow, source, sink, potential, pivots = solve(C, a, b, limit)
    if pivots < 0:
        plan, u, v = _linear_program(C, a, b)
        return unit * (plan * C).sum(), unit * plan, u, v
    flow *= unit
    plan = np.zeros(C.shape)
    plan[source, sink] = flow
    return flow @ C[source, sink], plan, -potential[: len(a)], potential[len(a) :]


def _some_empty(a: F64, b: F64, C: F64) -> tuple[Any, ...]:
    """Rows and columns without mass take no part; their prices are the highest that are allowed."""
    i, j = np.flatnonzero(a), np.flatnonzero(b)
    cost, inside, u, v = _positive(a[i], b[j], C[np.ix_(i, j)])
    plan, whole_u, whole_v = np.zeros(C.shape), np.empty(len(a)), np.empty(len(b))
    plan[np.ix_(i, j)], whole_u[i], whole_v[j] = inside, u, v
    whole_u[a == 0] = (C[a == 0][:, j] - v).min(1, initial=np.inf)
    whole_v[b == 0] = (C[:, b == 0] - whole_u[:, None]).min(0, initial=np.inf)
    return cost, plan, whole_u, whole_v


def _linear_program(C: F64, a: F64, b: F64) -> tuple[F64, F64, F64]:
    """The same by HiGHS, for a problem on which the simplex ran out of pivots."""
    from scipy.optimize import linprog
    from scipy.sparse import eye, kron, vstack

    n, m = C.shape
    marginals = vstack([kron(eye(n), np.ones((1, m))), kron(np.ones((1, n)), eye(m))]).tocsr()
    found = linprog(C.ravel(), A_eq=marginals, b_eq=np.r_[a, b], bounds=(0, None), method="highs")
    if found.status != 0:
        raise ValueError(f"no transport plan was found: {found.message}")
    dual = found.eqlin.marginals
    return found.x.reshape(n, m), dual[:n], dual[n:]
