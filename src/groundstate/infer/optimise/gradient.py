r"""Gradient: local minimisation over real variables, all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.infer.base import Method, Minimum, Query, check_energies
from groundstate.infer.pack import Pack, is_simplex, no_gradient
from groundstate.math.optim.batched_lbfgs import Descent, ValueAndGrad, descend
from groundstate.registry import methods

MakeOptimizer = Callable[[list[Tensor]], torch.optim.Optimizer]


@methods.register(formula=r"u \leftarrow P(u - t H \nabla e)", make=lambda energy: Gradient())
@dataclass(frozen=True)
class Gradient(Method):
    r"""Descend :math:`\nabla_v e` by batched L-BFGS with per-row Armijo backtracking.

    Boxes are kept by projection, simplices by a softmax. A row stops when the largest entry of
    its projected gradient is at most ``tol``. The answer is local; the best of ``restarts``
    starts is returned. Every row starts from the same points (``init`` first, where it is
    given), so a row's answer does not depend on the rows it is asked with.

    Parameters
    ----------
    max_iter : most iterations
    tol : bound on the projected gradient, largest entry
    memory : steps that L-BFGS remembers
    restarts : number of start points per row
    optimizer : makes a torch optimiser from a list of tensors, to be used instead of L-BFGS;
        its best point is returned
    path : keep the points on the way in ``Minimum.path``

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Bowl(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(2, low=0.0), y=Real(2))
    ...     def forward(self, x, y):
    ...         return 0.5 * (x - y).square().sum(-1)
    >>> from groundstate.infer import minimise
    >>> found = minimise(Bowl(), "x", {"y": torch.tensor([[1.0, -2.0]])}, method=Gradient())
    >>> found["x"].tolist(), found.converged.tolist(), found.exact
    ([[1.0, 0.0]], [True], False)
    """

    max_iter: int = 200
    tol: float = 1e-6
    memory: int = 10
    restarts: int = 1
    optimizer: MakeOptimizer | None = None
    path: bool = False

    operations: ClassVar[frozenset[str]] = frozenset({"minimise"})

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        for name in free:
            reason = no_gradient(energy, name)
            if reason is not None:
                return reason
            if name in masks and is_simplex(energy.spaces[name]):
                return f"{name!r} is a probability vector known in part"
        return None

    def minimise(self, query: Query) -> Minimum:
        b, n = query.rows, self.restarts
        pack = Pack(query)
        start = pack.starts(n).reshape(n * b, pack.dim)
        f = value_and_grad(query, pack, n)
        check_energies(f(start, None)[0], query.energy)
        if self.optimizer is None:
            found = descend(
                f,
                start,
                low=pack.low,
                high=pack.high,
                reach=pack.reach,
                max_iter=self.max_iter,
                tol=self.tol,
                memory=self.memory,
                path=self.path,
            )
        else:
            found = self._optimise(self.optimizer, f, start, pack)
        e = found.value.reshape(n, b)
        best = e.nan_to_num(nan=torch.inf).argmin(0)  # (B,) the first of equals
        pick = best * b + torch.arange(b, device=best.device)
        with torch.no_grad():
            values = pack.unpack(found.point[pick])
            steps = [] if found.path is None else [pack.unpack(u[pick]) for u in found.path]
        path = {v: torch.stack([step[v] for step in steps]) for v in values} if steps else None
        converged = found.converged[pick]
        if pack.reach is not None:
            converged = converged & ~_improvable(query, values, self.tol)
        trace = found.trace[:, pick]
        return Minimum(values, found.value[pick], False, converged, found.n_iter, trace, path)

    def _optimise(self, make: MakeOptimizer, f: ValueAndGrad, start: Tensor, pack: Pack) -> Descent:
        u = start.clamp(pack.low, pack.high).requires_grad_()
        optimizer = make([u])
        with torch.no_grad():
            value, g = f(u, None)
            best_u, best_f = u.detach().clone(), value.clone()
            trace, steps, points = [best_f.clone()], 0, [best_u]
            converged = torch.zeros_like(best_f, dtype=torch.bool)
            for _ in range(self.max_iter):
                projected = u - (u - g).clamp(pack.low, pack.high)
                converged |= projected.abs().amax(1) <= self.tol
                if bool(converged.all()):
                    break
                held = u.detach().clone()
                u.grad = g
                optimizer.step()
                u.clamp_(pack.low, pack.high)
                u.copy_(torch.where(converged[:, None], held, u))  # finished rows stay
                value, g = f(u, None)
                better = value < best_f
                best_u = torch.where(better[:, None], u.detach(), best_u)
                best_f = torch.where(better, value, best_f)
                trace.append(best_f.clone())
                if self.path:
                    points.append(u.detach().clone())
                steps += 1
        way = torch.stack(points) if self.path else None
        return Descent(best_u, best_f, converged, steps, torch.stack(trace), way)


def _improvable(query: Query, values: Mapping[str, Tensor], tol: float) -> Tensor:
    """Rows in which raising some probability from nearly 0 would lower the energy, ``(B,)``.

    There the gradient in the logits vanishes although the point is no minimum.
    """
    names = [name for name in values if is_simplex(query.space(name))]
    with torch.enable_grad():
        at = {n: v.detach().requires_grad_() if n in names else v for n, v in values.items()}
        e = query.energy(**query.fixed, **at)
        grads = torch.autograd.grad(e.sum(), [at[n] for n in names])
    bad = torch.zeros(len(e), dtype=torch.bool, device=e.device)
    for name, g in zip(names, grads, strict=True):
        gain = (values[name] * g).sum(-1, keepdim=True) - g
        bad |= (gain > max(1e-2, tol)).flatten(1).any(1)
    return bad


def value_and_grad(query: Query, pack: Pack, repeats: int = 1) -> ValueAndGrad:
    """``e`` and its gradient in the packed free variables, for all rows or some of them."""

    def repeated(v: Tensor) -> Tensor:
        return v.repeat(repeats, *(1,) * (v.ndim - 1)) if repeats > 1 else v

    fixed = {name: repeated(v.detach()) for name, v in query.fixed.items()}
    unknown = None if pack.unknown is None else repeated(pack.unknown)
    whole = torch.zeros(query.rows * repeats, pack.dim, device=query.device, dtype=query.dtype)

    def energy(v: Tensor, rows: Tensor | None) -> Tensor:
        if query.energy.rows is None:
            given = fixed if rows is None else {name: w[rows] for name, w in fixed.items()}
            return query.energy(**given, **pack.unpack(v))
        # the energy holds values for exactly these rows: always ask about all of them
        full = v if rows is None else whole.index_copy(0, rows, v)
        e = [query.energy(**query.fixed, **pack.unpack(part)) for part in full.split(query.rows)]
        return torch.cat(e) if rows is None else torch.cat(e)[rows]

    def f(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            v = u.detach().requires_grad_()
            e = energy(v, rows)
            if not e.requires_grad:
                raise Unsupported(
                    f"{type(query.energy).__name__} has no gradient in "
                    f"{', '.join(query.free)}; its forward must be differentiable in it"
                )
            (g,) = torch.autograd.grad(e.sum(), v, allow_unused=True)
        g = torch.zeros_like(u) if g is None else g
        if unknown is not None:
            g = g * (unknown if rows is None else unknown[rows])
        return e.detach(), g

    return f
