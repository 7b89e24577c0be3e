r"""Entropic optimal transport by Sinkhorn's iteration.

.. math:: OT_\varepsilon = \min_T\ \langle T, M\rangle + \varepsilon\,KL(T\|a\otimes b)
          = \max_{f,g}\ a^\top f + b^\top g
          - \varepsilon\sum_{ij}a_ib_j\big(e^{(f_i+g_j-M_{ij})/\varepsilon} - 1\big)

The potentials live in the log domain. Between two updates of them the iteration scales a kernel
:math:`e^{(f_i+g_j-M_{ij})/\varepsilon}` that holds what is known of f and g already, so that a sweep is
two products with a matrix and no entry overflows (Schmitzer's stabilised scaling).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import NotConverged, ShapeError
from groundstate.math.arrays import takes_arrays

ROUGH, SWEEPS = 0.05, 200  # error and sweeps on the way to the ε asked for
_BLOCK = 1 << 17  # cells of a block of rows
_WINDOW = 12  # sweeps between two looks at the rate of convergence
_EARLY = 2  # sweeps that may scale a lot, and are looked at one by one
_MOST = 1.9995  # largest over-relaxation
_FAR = {torch.float64: 60.0, torch.float32: 20.0}  # logarithm of a scaling that is folded into f, g


@dataclass(frozen=True)
class Sinkhorn:
    r"""Entropic transport: value, plan and potentials.

    Attributes
    ----------
    value : (...) :math:`OT_\varepsilon`, the dual value
    plan : (..., n, m) :math:`a_ib_je^{(f_i+g_j-M_{ij})/\varepsilon}`
    f, g : (..., n), (..., m) potentials, those of b with mean 0
    error : largest :math:`\sum_i|T\mathbf 1 - a|_i` over the batch; columns are exact
    n_iter : sweeps at the last ε
    """

    value: Any
    plan: Any = field(repr=False)
    f: Any = field(repr=False)
    g: Any = field(repr=False)
    error: float
    n_iter: int


@takes_arrays("a", "b", "M")
def sinkhorn(
    a: Any, b: Any, M: Any, eps: float, tol: float = 1e-9, max_iter: int = 10_000
) -> Sinkhorn:
    r"""Transport from a to b with a price on determination.

    Differentiable without unrolling: the value has the envelope's gradient (plan, f and g), plan
    and potentials the one of the implicit function theorem.

    Parameters
    ----------
    a, b : masses ``(..., n)`` and ``(..., m)`` of equal sums; None for equal masses that sum to 1
    M : costs ``(..., n, m)``
    eps : strength ε of the entropy, in units of M
    tol : bound on the sum of absolute errors of the plan's marginals, for masses that sum to 1;
        in single precision not below 8e-6
    max_iter : sweeps at the last ε

    Examples
    --------
    >>> M = [[1.0, 9.0], [0.0, 4.0]]
    >>> found = sinkhorn(None, None, M, eps=0.1)
    >>> found.plan.round(3).tolist(), round(found.value, 4)
    ([[0.5, 0.0], [0.0, 0.5]], 2.5693)
    """
    a, b, M = checked(a, b, M, eps)
    eps, tol, most = float(eps), float(tol), int(max_iter)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (a, b, M)):
        f, g, error, n_iter = _Potentials.apply(a, b, M, eps, tol, most)
        value = _Value.apply(a, b, M, f.detach(), g.detach(), eps)
        plan = _kernel(f, g, M, eps) * a.unsqueeze(-1) * b.unsqueeze(-2)
    else:
        f, g, error, n_iter, K = potentials(a, b, M, eps, tol, most)
        plan = _scaled(K, a, b)
        value = _dual(a, b, f, g, plan.sum((-2, -1)), eps)
    shift = g.mean(-1, keepdim=True)
    return Sinkhorn(value, plan, f + shift, g - shift, float(error), int(n_iter))


def checked(a: Tensor | None, b: Tensor | None, M: Tensor, eps: float) -> tuple[Tensor, ...]:
    """Masses and costs of one batch shape, or an error that says what is wrong."""
    if not (eps > 0 and math.isfinite(eps)):
        raise ValueError(f"eps must be positive, got {eps!r}; emd solves the problem without it")
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
    one, other = a.detach().sum(-1), b.detach().sum(-1)
    if bool((a.detach() < 0).any()) or bool((b.detach() < 0).any()):
        raise ValueError("masses must not be negative")
    if not bool((one > 0).all()) or bool(((one - other).abs() > 1e-6 * one).any()):
        raise ValueError("a and b must have the same positive total mass; divide each by its sum")
    b = b * (one / other).unsqueeze(-1)  # to the last digit, or the error stays above tol
    a, b = a.to(M.dtype), b.to(M.dtype)
    if (a.ndim, b.ndim, M.ndim) == (1, 1, 2):
        return a, b, M
    batch = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1], M.shape[:-2])
    return a.expand(*batch, n), b.expand(*batch, m), M.expand(*batch, n, m)


def _dual(a: Tensor, b: Tensor, f: Tensor, g: Tensor, inside: Tensor, eps: float) -> Tensor:
    """The dual value, given the mass of the plan."""
    return (a * f).sum(-1) + (b * g).sum(-1) - eps * (inside - a.sum(-1) * b.sum(-1))


def _blocks(M: Tensor) -> Iterator[slice]:
    """Rows that stay in the cache of a CPU."""
    rows = M.shape[-2] if M.ndim > 2 or M.is_cuda else max(1, _BLOCK // M.shape[-1])
    return (slice(at, at + rows) for at in range(0, M.shape[-2], rows))


def _kernel(f: Tensor, g: Tensor, M: Tensor, eps: float, out: Tensor | None = None) -> Tensor:
    """exp((f + g − M)/ε)."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in (f, g, M)):
        return ((f.unsqueeze(-1) + g.unsqueeze(-2) - M) / eps).exp()
    K = torch.empty_like(M, memory_format=torch.contiguous_format) if out is None else out
    for rows in _blocks(M):
        part = K[..., rows, :]
        torch.sub(g.unsqueeze(-2), M[..., rows, :], out=part)
        part.add_(f[..., rows].unsqueeze(-1)).mul_(1 / eps).exp_()
    return K


def _scaled(K: Tensor, x: Tensor, y: Tensor, squares: int = 0) -> Tensor:
    """K with its rows times x and its columns times y, then squared so many times; in place."""
    for rows in _blocks(K):
        part = K[..., rows, :]
        part.mul_(x[..., rows].unsqueeze(-1)).mul_(y.unsqueeze(-2))
        for _ in range(squares):
            part.square_()
    return K


def _soft(M: Tensor, log_mass: Tensor, potential: Tensor, eps: float, dim: int) -> Tensor:
    """−ε log Σ mass · e^((potential − M)/ε), along ``dim``."""
    h = (log_mass + potential / eps).unsqueeze(-1 if dim == -2 else -2)
    return -eps * torch.logsumexp(h - M / eps, dim)


def _times(K: Tensor, v: Tensor) -> Tensor:
    return torch.mv(K, v) if K.ndim == 2 else (K @ v.unsqueeze(-1)).squeeze(-1)


def levels(top: float, eps: float) -> list[float]:
    """ε times powers of four, from the size of the costs down to ε itself."""
    count = max(0, math.ceil(math.log(max(top / eps, 1.0), 4)))
    return [eps * 4.0**k for k in range(count, -1, -1)]


def potentials(
    a: Tensor, b: Tensor, M: Tensor, eps: float, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, float, int, Tensor]:
    """f, g, the marginal error, the number of sweeps at the last ε, and exp((f + g − M)/ε).

    The kernel of a quarter of ε is the fourth power of the one before; only the first and the last
    one are exponentials.
    """
    tol = max(tol, reachable(M))
    low = M.amin((-2, -1))
    f, g = torch.zeros_like(a) + low.unsqueeze(-1), torch.zeros_like(b)
    x, y = torch.ones_like(a), torch.ones_like(b)
    pace, K = Pace(tol), torch.empty_like(M, memory_format=torch.contiguous_format)
    for at, value in enumerate(levels(float((M.amax((-2, -1)) - low).max()), eps)):
        last = value == eps
        pace, most = (Pace(tol), max_iter) if last else (Pace(max(tol, ROUGH)), SWEEPS)
        if at == 0 or last:
            _kernel(f, g, M, value, K)
        else:
            _scaled(K, x, y, squares=2)
        f, g, x, y = _sweeps(a, b, M, K, f, g, value, pace, most)
    if pace.error > tol:
        not_converged(pace, max_iter)
    return f, g, pace.error, pace.sweeps, _scaled(K, x, y)


def reachable(M: Tensor) -> float:
    """The marginal error that rounding allows."""
    return 64 * torch.finfo(M.dtype).eps


def not_converged(pace: Pace, max_iter: int) -> None:
    warnings.warn(
        f"Sinkhorn's marginals are off by {pace.last:.1e} after {max_iter} sweeps, not "
        f"{pace.tol:.1e}; raise max_iter, tol or eps",
        NotConverged,
        stacklevel=6,
    )


def _sweeps(
    a: Tensor, b: Tensor, M: Tensor, K: Tensor, f: Tensor, g: Tensor, eps: float, pace: Pace, most: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Scale the kernel K of f and g until the pace says stop: the new f and g, and the scalings.

    Every row of the kernel of the last ε had an entry of at least 1, and a quarter of ε raises it to
    the fourth power: no row vanishes.
    """
    far, mass = _FAR.get(M.dtype, 20.0), a.sum(-1)
    x, y = torch.ones_like(a), torch.ones_like(b)
    for sweep in range(most):
        rows = _times(K, b * y)
        off = (x * rows).sub_(1).abs_().mul_(a).sum(-1) / mass
        error = float(off.amax() if off.ndim else off)
        finite = math.isfinite(error)
        if not finite or sweep < _EARLY or sweep % _WINDOW == 0:
            reach = [abs(v) for v in torch.stack([*x.aminmax(), *y.aminmax()]).log().tolist()]
            if not (finite and max(reach) < far):
                if all(map(math.isfinite, reach)):
                    g = g + eps * y.log()
                f = _soft(M, b.log(), g, eps, -1)
                g = _soft(M, a.log(), f, eps, -2)
                _kernel(f, g, M, eps, K)
                x, y = torch.ones_like(a), torch.ones_like(b)
                continue
        omega = pace.next(error)
        if omega == 0:
            break
        x = _relaxed(x, rows.reciprocal_(), omega)
        y = _relaxed(y, _times(K.mT, a * x).reciprocal_(), omega)
    return f + eps * x.log(), g + eps * y.log(), x, y


def symmetric_potential(a: Tensor, M: Tensor, eps: float, tol: float, max_iter: int) -> Tensor:
    r"""f = g of a measure with itself: :math:`f \leftarrow \tfrac12(f + \text{its update})`, that is
    :math:`x \leftarrow \sqrt{x/K(ax)}`, which converges in a few steps."""
    f, tol = torch.zeros_like(a), max(tol, reachable(M))
    mass, pace, K = a.sum(-1), Pace(tol), torch.empty_like(M)
    x = torch.ones_like(a)
    for at, value in enumerate(levels(float(M.max()), eps)):
        most, goal = (max_iter, tol) if value == eps else (SWEEPS, max(tol, ROUGH))
        if at == 0 or value == eps:
            _kernel(f, f, M, value, K)
        else:
            _scaled(K, x, x, squares=2)
        x = torch.ones_like(a)
        for _ in range(most):
            rows = _times(K, a * x)
            pace.last = float(((a * (x * rows - 1)).abs().sum(-1) / mass).amax())
            if pace.last <= goal:
                break
            x = (x / rows).sqrt()
        f = f + value * x.log()
    if not pace.last <= tol:
        not_converged(pace, max_iter)
    return f


def _relaxed(old: Tensor, new: Tensor, omega: float) -> Tensor:
    return new if omega == 1 else old * (new / old) ** omega


class Pace:
    r"""When to stop, and how far to go beyond each update: successive over-relaxation.

    Near the solution a sweep multiplies the error by :math:`\lambda^2`; with
    :math:`\omega = 2/(1+\sqrt{1-\lambda^2})` by :math:`\omega - 1`, a far smaller number. λ is
    read off the errors of a window of sweeps by Young's relation
    :math:`(\tau+\omega-1)^2 = \tau\omega^2\lambda^2`. The last sweep is a plain one, after which the
    columns are exact.
    """

    def __init__(self, tol: float) -> None:
        self.tol, self.omega, self.sweeps = tol, 1.0, 0
        self.error = self.last = math.inf  # error: of a plan whose columns are exact
        self._plain, self._mark, self._since = True, math.inf, 0

    def next(self, error: float) -> float:
        """The relaxation of the next sweep, given the error after the last; 0: stop."""
        self.error, self.last = error if self._plain else math.inf, error
        self.sweeps += 1
        if error <= self.tol:
            if self._plain:
                return 0.0
            self._plain = True
            return 1.0
        self._since += 1
        if self._since == _WINDOW:
            before = self.omega
            if math.isfinite(self._mark):
                self._adapt((error / self._mark) ** (1 / _WINDOW))
            # the errors of the first window after a change belong to the change
            self._mark, self._since = error if before == self.omega else math.inf, 0
        self._plain = self.omega == 1
        return self.omega

    def _adapt(self, tau: float) -> None:
        if not tau < 1:
            self.omega = 1.0
            return
        rate = min((tau + self.omega - 1) ** 2 / (tau * self.omega**2), 1 - 1e-8)
        better = min(2 / (1 + math.sqrt(1 - rate)), _MOST)
        if tau > self.omega - 1 and better > self.omega + 0.2 * (2 - self.omega):
            self.omega = better


class _Potentials(torch.autograd.Function):
    r"""Implicit derivative: :math:`f_i = -\varepsilon\log\sum_jb_je^{(g_j-M_{ij})/\varepsilon}` and its
    mirror image are differentiated at their solution, one linear system backwards."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, M: Tensor, eps: float, tol: float, max_iter: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        f, g, error, n_iter, _ = potentials(a, b, M, eps, tol, max_iter)
        ctx.save_for_backward(a, b, M, f, g)
        ctx.eps = eps
        ctx.set_materialize_grads(False)
        counts = torch.tensor(error), torch.tensor(n_iter)
        ctx.mark_non_differentiable(*counts)
        return f, g, *counts

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        a, b, M, f, g = ctx.saved_tensors
        eps = ctx.eps
        to_f = torch.zeros_like(f) if grads[0] is None else grads[0]
        to_g = torch.zeros_like(g) if grads[1] is None else grads[1]
        E = _kernel(f, g, M, eps)
        P, Q = E * b.unsqueeze(-2), E * a.unsqueeze(-1)  # rows of P, columns of Q sum to 1
        right = to_f - (Q @ to_g.unsqueeze(-1)).squeeze(-1)
        unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        null = (a / a.sum(-1, keepdim=True)).unsqueeze(-1)  # f + c, g − c is a solution too
        along_f = torch.linalg.solve(unit - Q @ P.mT + null, right)
        along_g = to_g - (P.mT @ along_f.unsqueeze(-1)).squeeze(-1)
        to_M = along_f.unsqueeze(-1) * P + along_g.unsqueeze(-2) * Q
        to_a = -eps * (E @ along_g.unsqueeze(-1)).squeeze(-1)
        to_b = -eps * (E.mT @ along_f.unsqueeze(-1)).squeeze(-1)
        return to_a, to_b, to_M, None, None, None


class _Value(torch.autograd.Function):
    """The dual value, with the gradient of the envelope theorem."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, M: Tensor, f: Tensor, g: Tensor, eps: float
    ) -> Tensor:
        ctx.save_for_backward(a, b, M, f, g)
        ctx.eps = eps
        E = _kernel(f, g, M, eps)
        inside = ((a.unsqueeze(-2) @ E).squeeze(-2) * b).sum(-1)
        return _dual(a, b, f, g, inside, eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        a, b, M, f, g = ctx.saved_tensors
        up = grad.unsqueeze(-1)
        plan = _kernel(f, g, M, ctx.eps) * a.unsqueeze(-1) * b.unsqueeze(-2)
        return up * f, up * g, up.unsqueeze(-1) * plan, None, None, None
