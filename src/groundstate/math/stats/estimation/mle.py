r"""Maximum likelihood for any torch distribution:
:math:`\hat\theta = \arg\max_\theta\sum_i w_i\log p(x_i; \theta)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import AffineTransform, Distribution, biject_to

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, Unsupported
from groundstate.math.arrays import as_tensor
from groundstate.math.distributions.parameters import parameter_names, rebuilt
from groundstate.math.stats.estimation.closed import CLOSED
from groundstate.math.stats.estimation.starts import start

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MLE(Displayed):
    """A distribution fitted by maximum likelihood.

    Attributes
    ----------
    distribution : with the fitted parameters
    params : names and values
    stderr : standard errors from Fisher's information (observed, where there is no closed form)
    loglik : log-likelihood at the optimum
    n : rows, or the sum of their weights
    converged : whether the gradient vanished
    """

    distribution: Distribution
    params: dict[str, Any]
    stderr: dict[str, Any]
    loglik: float
    n: float
    converged: bool
    problem: _Problem = field(repr=False)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"distribution": type(self.distribution).__name__}
        for name, value in self.params.items():
            facts[name] = f"{value:.4g} ± {self.stderr[name]:.2g}" if np.ndim(value) == 0 else value
        return facts | {"log-likelihood": self.loglik}

    @property
    def aic(self) -> float:
        """Twice the number of free parameters minus twice the log-likelihood."""
        return 2 * self.problem.free_count(self.params) - 2 * self.loglik

    def profile(self, name: str, values: Any = None) -> tuple[Floats, Floats]:
        r"""The largest log-likelihood with one parameter held at each of ``values``.

        Parameters
        ----------
        name : a parameter that is a number
        values : None takes 41 within four standard errors, inside the support

        Returns
        -------
        values, log-likelihoods
        """
        if name not in self.params or np.ndim(self.params[name]):
            raise ValueError(
                f"{name!r} is not a number among the fitted parameters {list(self.params)}"
            )
        if values is None:
            reach = 4 * self.stderr[name]
            values = np.linspace(self.params[name] - reach, self.params[name] + reach, 41)
            check = self.problem.constraint(name).check(torch.from_numpy(values))
            values = values[check.numpy()]
        points = np.atleast_1d(np.asarray(values, np.float64))
        rest = {k: v for k, v in self.params.items() if k != name}
        found = []
        for value in points:
            held = self.problem.holding({name: float(value)})
            found.append(held.loglik(rest) if not rest else held.solve(rest)[1])
        return points, np.array(found)


def fit_mle(
    dist: type[Distribution],
    x: Any,
    *,
    weights: Any = None,
    init: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> MLE:
    r"""Fit the parameters of a distribution to rows by maximum likelihood.

    Bernoulli, categorical, Poisson, exponential, normal and Laplace distributions have closed forms; any
    other is maximised over unconstrained parameters (``biject_to``) by L-BFGS in float64, then by Newton's
    method. Sums of logarithms do not underflow where products of densities do.

    Parameters
    ----------
    dist : class of torch distributions, such as ``Gamma`` or ``groundstate.distributions.Stable``
    x : ``(n,)``, or ``(n, d)`` for distributions of vectors
    weights : ``(n,)``; a weight of 2 is the row twice
    init : values to start from, by name
    fixed : parameters that are known, by name, such as ``{"total_count": 80}``

    Examples
    --------
    >>> from torch.distributions import Binomial, Normal
    >>> coin = fit_mle(Binomial, [49.0], fixed={"total_count": 80})
    >>> round(coin.params["probs"], 6), round(coin.stderr["probs"], 4)
    (0.6125, 0.0545)
    >>> fit_mle(Normal, [1.0, 2.0, 6.0])
    MLE: distribution Normal, loc 3 ± 1.2, scale 2.16 ± 0.88, log-likelihood -6.567
    """
    rows = as_tensor(x, "x").detach().double()
    if rows.ndim == 0 or len(rows) == 0:
        raise DataError(f"x must be at least one row, got shape {tuple(rows.shape)}")
    w = torch.ones(len(rows), dtype=rows.dtype, device=rows.device)
    if weights is not None:
        w = as_tensor(weights, "weights", rows).detach().double()
        if w.shape != (len(rows),) or bool((w < 0).any()) or not float(w.sum()) > 0:
            raise DataError("weights must be one number per row, at least 0, not all 0")
        rows, w = rows[w > 0], w[w > 0]
    known = dict(fixed or {})
    problem = _Problem(dist, rows, w, known)
    if dist in CLOSED and not known:
        found, errors = CLOSED[dist](rows, w)
        params = {k: _plain(v) for k, v in found.items()}
        stderr = {k: _plain(v) for k, v in errors.items()}
        value, converged = problem.loglik(params), True
    else:
        first = start(dist, rows, w, problem.free, init or {})
        problem.check(first)
        params, value, stderr, converged = problem.solve(first)
    made = problem.distribution({k: _tensor(v, rows) for k, v in params.items()})
    return MLE(made, params, stderr, value, float(w.sum()), converged, problem)


class _Problem:
    """The log-likelihood of rows as a function of unconstrained numbers."""

    def __init__(
        self, kind: type[Distribution], x: Tensor, w: Tensor, fixed: Mapping[str, Any]
    ) -> None:
        self.kind, self.x, self.w = kind, x, w
        self.fixed = {k: _tensor(v, x) for k, v in fixed.items()}
        names = parameter_names(kind)
        if not names:
            raise Unsupported(
                f"{kind.__name__} declares no parameters that a search could move; it fits Normal, Gamma, "
                "StudentT and other distributions whose likelihood is smooth in its parameters"
            )
        unknown = [k for k in fixed if k not in names]
        if unknown:
            raise ValueError(f"{kind.__name__} has no parameters {unknown}; it has {names}")
        self.free = [
            name for name in names
            if name not in fixed and not getattr(self.constraint(name), "is_discrete", False)
        ]  # fmt: skip

    def constraint(self, name: str) -> Any:
        return self.kind.arg_constraints[name]  # type: ignore[index]

    def _maps(self) -> dict[str, Any]:
        """From unconstrained numbers to each free parameter."""
        maps = {}
        for name in self.free:
            try:
                maps[name] = biject_to(self.constraint(name))
            except NotImplementedError:
                other = f"; use {self.kind.__name__}.fit" if hasattr(self.kind, "fit") else ""
                raise Unsupported(
                    f"{name} of {self.kind.__name__} cannot be reached from unconstrained numbers, so it "
                    f"cannot be searched for; give it as fixed={{{name!r}: ...}}{other}"
                ) from None
        return maps

    def check(self, params: Mapping[str, Any]) -> None:
        """Rows outside the support, and supports that move with a free parameter, are errors."""
        leaves = {k: _tensor(v, self.x).detach().requires_grad_() for k, v in params.items()}
        made = self.distribution(leaves)
        support: Any = made.support
        for end in ("lower_bound", "upper_bound"):
            if getattr(getattr(support, end, None), "requires_grad", False):
                raise Unsupported(
                    f"the support of {self.kind.__name__} moves with a parameter, and the likelihood jumps "
                    "there; give that parameter as fixed={...}, for example from the least value of x"
                )
        inside = support.check(self.x)
        if not bool(inside.all()):
            unsaid = [n for n in parameter_names(self.kind) if n not in (*self.free, *self.fixed)]
            hint = (
                f"; {unsaid[0]} is not fitted: give it as fixed={{{unsaid[0]!r}: ...}}"
                if unsaid
                else ""
            )
            raise DataError(
                f"{int((~inside).sum())} of {len(self.x)} rows lie outside the support of "
                f"{self.kind.__name__} ({support}){hint}"
            )

    def holding(self, more: Mapping[str, Any]) -> _Problem:
        return _Problem(self.kind, self.x, self.w, {**self.fixed, **more})

    def distribution(self, params: Mapping[str, Tensor]) -> Distribution:
        return rebuilt(self.kind, {**self.fixed, **params})

    def free_count(self, params: Mapping[str, Any]) -> int:
        """Free numbers: a covariance is symmetric, probabilities sum to one."""

        def size(name: str, value: Tensor) -> int:
            if name == "covariance_matrix":
                return len(value) * (len(value) + 1) // 2
            free: Tensor = biject_to(self.constraint(name)).inv(value)
            return free.numel()

        return sum(size(k, _tensor(v, self.x)) for k, v in params.items())

    def loglik(self, params: Mapping[str, Any]) -> float:
        return float(self._total({k: _tensor(v, self.x) for k, v in params.items()}))

    def _total(self, params: Mapping[str, Tensor]) -> Tensor:
        return (self.w * self.distribution(params).log_prob(self.x)).sum()

    def solve(self, first: Mapping[str, Any]) -> tuple[dict[str, Any], float, dict[str, Any], bool]:
        """Parameters, log-likelihood, standard errors, whether it converged."""
        maps = self._maps()
        if "loc" in maps:
            maps["loc"] = AffineTransform(*self._place(first))
        parts = [maps[n].inv(_tensor(first[n], self.x)) for n in self.free]
        sizes, shapes = [p.numel() for p in parts], [p.shape for p in parts]
        total = float(self.w.sum())

        def params(u: Tensor) -> dict[str, Tensor]:
            return {
                name: maps[name](part.reshape(shape))
                for name, part, shape in zip(self.free, u.split(sizes), shapes)
            }

        def mean_nll(u: Tensor) -> Tensor:
            return -self._total(params(u)) / total

        def both(v: Floats) -> tuple[float, Floats]:
            u = torch.as_tensor(v, device=self.x.device).requires_grad_()
            value = mean_nll(u)
            (slope,) = torch.autograd.grad(value, u)
            if not bool(torch.isfinite(value)):
                return 1e300, np.zeros(len(v))
            return float(value.detach()), torch.nan_to_num(slope).cpu().numpy()

        at = torch.cat([p.reshape(-1) for p in parts]).detach().cpu().numpy()
        found = scipy.optimize.minimize(
            both,
            at,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-8},
        )
        u = torch.as_tensor(found.x, device=self.x.device)
        u, H = _polished(mean_nll, u)
        _, slope = both(u.cpu().numpy())
        values = params(u)
        return (
            {k: _plain(v) for k, v in values.items()},
            -float(mean_nll(u)) * total,
            self._errors(params, u, H * total),
            bool(np.abs(slope).max(initial=0.0) < 1e-5),
        )

    def _place(self, first: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Where a location starts, and the scale of the start: the unit in which it is searched for."""
        known = {**self.fixed, **first}
        loc = _tensor(known["loc"], self.x)
        if "covariance_matrix" in known:
            unit = _tensor(known["covariance_matrix"], self.x).diagonal().sqrt()
        else:
            unit = _tensor(known.get("scale", 1.0), self.x)
        return loc, torch.where(unit > 0, unit, 1.0)

    def _errors(self, params: Any, u: Tensor, H: Tensor) -> dict[str, Any]:
        """Standard errors by the delta method; NaN where the likelihood is flat or at a boundary."""
        L, failed = torch.linalg.cholesky_ex(H)
        out = {}
        for name in self.free:
            v = u.detach().requires_grad_()
            value = params(v)[name]
            J = _rows(value.reshape(-1), v).reshape(*value.shape, len(u))
            flat = J.reshape(-1, len(u))
            half = torch.linalg.solve_triangular(L, flat.T, upper=False)
            error = half.square().sum(0).sqrt().reshape(J.shape[:-1])
            out[name] = _plain(torch.where(failed == 0, error, math.nan))
        return out


def _polished(f: Any, u: Tensor) -> tuple[Tensor, Tensor]:
    """A few of Newton's steps, as long as they help; the point and the Hessian there."""
    H = _hessian(f, u)
    for _ in range(4):
        v = u.detach().requires_grad_()
        value = f(v)
        (slope,) = torch.autograd.grad(value, v)
        value = value.detach()
        L, failed = torch.linalg.cholesky_ex(H)
        if int(failed) or float(slope.abs().max()) < 1e-13:
            break
        new = u - torch.cholesky_solve(slope.unsqueeze(-1), L).squeeze(-1)
        better = f(new).detach()
        if not float(better) <= float(value) + 1e-14 * abs(float(value)):
            break
        u = new.detach()
        H = _hessian(f, u)
    return u, H


def _hessian(f: Any, u: Tensor) -> Tensor:
    """Central differences of the gradient: some log-densities cannot be derived twice."""
    step = 6e-6 * (1 + u.abs())  # the cube root of the rounding

    def slope(v: Tensor) -> Tensor:
        v = v.detach().requires_grad_()
        (found,) = torch.autograd.grad(f(v), v)
        return found

    columns = []
    for i in range(len(u)):
        move = torch.zeros_like(u)
        move[i] = step[i]
        columns.append((slope(u + move) - slope(u - move)) / (2 * step[i]))
    H = torch.stack(columns, 1)
    return 0.5 * (H + H.T)


def _rows(values: Tensor, v: Tensor) -> Tensor:
    """The gradient of each value.  # (k, len(v))"""
    if not values.requires_grad:
        return torch.zeros(len(values), len(v), dtype=v.dtype, device=v.device)
    found = [
        torch.autograd.grad(value, v, retain_graph=True, allow_unused=True)[0] for value in values
    ]
    return torch.stack([torch.zeros_like(v) if g is None else g for g in found])


def _tensor(value: Any, like: Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def _plain(value: Tensor) -> Any:
    array = value.detach().cpu().numpy()
    return array.item() if array.ndim == 0 else array
