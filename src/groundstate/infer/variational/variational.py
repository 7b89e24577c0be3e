r"""Variational: the best distribution of a family, and the bound it gives.

.. math:: F \le \mathbb{E}_q[e] - T\,H(q), \qquad
          \mathbb{E}_q[e] - T\,H(q) - F = T\,\mathrm{KL}(q\,\|\,e^{-e/T}/Z).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.infer.base import Draws, FreeEnergy, Method, Query
from groundstate.infer.exact.closed import energies_of
from groundstate.infer.exact.grid import Grid, count
from groundstate.infer.pack import no_gradient
from groundstate.infer.variational.families import Family, Gaussian, default_family
from groundstate.math.distributions.operations import draw
from groundstate.math.optim.batched_lbfgs import descend
from groundstate.registry import methods

LISTED = 2**12  # joint finite values that are still summed exactly


@methods.register(formula=r"F \le \mathbb{E}_q[e] - T H(q)", make=lambda energy: Variational())
@dataclass(frozen=True)
class Variational(Method):
    r"""Fit :math:`q_\varphi` to the Boltzmann distribution by lowering :math:`\mathbb{E}_q[e] - T\,H(q)`.

    Finite variables are summed exactly where they can be listed, real ones are drawn as maps of
    fixed noise, so that the bound is a smooth function of φ that L-BFGS lowers, every row by
    itself. Larger finite spaces take score-function gradients. ``marginalise`` returns an upper
    bound on F, evaluated with fresh noise and differentiable in θ with φ held fixed; ``sample``
    draws from q.

    Parameters
    ----------
    family : a family for all free variables or a mapping by name; None is mean field
    n : noise vectors while fitting (four times as many when evaluating)
    max_iter : most iterations
    tol : bound on the gradient, largest entry

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> from groundstate.infer import marginalise
    >>> joint = torch.tensor([[0.4, 0.1], [0.2, 0.3]], dtype=torch.float64)
    >>> found = marginalise(TableEnergy(-joint.log()), ("x", "y"), method=Variational())
    >>> round(found.value.item(), 6), found.kind
    (0.091986, 'upper')
    """

    family: Family | Mapping[str, Family] | None = None
    n: int = 64
    max_iter: int = 500
    tol: float = 1e-6

    operations: ClassVar[frozenset[str]] = frozenset({"marginalise", "sample"})

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if masks:
            return f"{', '.join(map(repr, masks))} is known in part"
        for name in free:
            reason = self._family(name, energy).reason_against(energy.spaces[name])
            if reason is not None:
                return f"{name!r} has no distribution in the family: {reason}"
            if not energy.spaces[name].is_finite and no_gradient(energy, name) is not None:
                return no_gradient(energy, name)
        return None

    def _family(self, name: str, energy: Energy) -> Family:
        if isinstance(self.family, Mapping):
            return self.family.get(name, default_family(energy.spaces[name]))
        return default_family(energy.spaces[name]) if self.family is None else self.family

    def marginalise(self, query: Query) -> FreeEnergy:
        bound = Bound(query, self)
        return bound.evaluate(bound.fit())

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        distributions = self.distributions(query)
        values = {
            name: draw(distribution, n, query.generator)
            for name, distribution in distributions.items()
        }
        for value in values.values():
            _check_finite(query, value)
        return Draws(values, energies_of(query, values), "approximate")

    def distributions(self, query: Query) -> dict[str, Distribution]:
        """The fitted distribution of every free variable; together they are their product."""
        bound = Bound(query, self)
        params = bound.fit()
        with torch.no_grad():
            bound.evaluate(params)
        return bound.distributions(params)

    def distribution(self, query: Query) -> Distribution:
        """The fitted distribution of the one free variable."""
        distributions = self.distributions(query)
        if len(distributions) > 1:
            raise Unsupported(
                f"a product of distributions of {', '.join(distributions)} is not one distribution; "
                "use Variational().distributions(query)"
            )
        return next(iter(distributions.values()))


class Bound:
    """The bound of a question as a function of the parameters φ, ``(B, P)``."""

    def __init__(self, query: Query, method: Variational) -> None:
        self.query, self.method = query, method
        self.families = {name: method._family(name, query.energy) for name in query.free}
        self.spaces = {name: query.space(name) for name in query.free}
        self.sizes = {n: f.size(self.spaces[n]) for n, f in self.families.items()}
        self.real = [n for n, s in self.spaces.items() if not s.is_finite]
        self.finite = [n for n, s in self.spaces.items() if s.is_finite]
        listed = {n: self.spaces[n] for n in self.finite}
        self.listable = count(listed, {}) <= LISTED
        self.grid = None
        if self.finite and self.listable:
            self.grid = Grid(listed, device=query.device, dtype=query.dtype)
        self.dims = {n: math.prod(self.spaces[n].shape) for n in self.real}

    def split(self, params: Tensor) -> dict[str, Tensor]:
        parts = torch.split(params, list(self.sizes.values()), 1)
        return dict(zip(self.sizes, parts, strict=True))

    def distributions(self, params: Tensor) -> dict[str, Distribution]:
        parts = self.split(params)
        return {n: f.distribution(self.spaces[n], parts[n]) for n, f in self.families.items()}

    # --- fitting -------------------------------------------------------------------------

    def fit(self, start: Tensor | None = None) -> Tensor:
        """Parameters ``(B, P)`` that lower the bound, without gradient; never above ``start``."""
        query = self.query
        if start is None:
            start = torch.cat(
                [
                    f.init(self.spaces[n], query.rows, device=query.device, dtype=query.dtype)
                    for n, f in self.families.items()
                ],
                1,
            )
        fixed = {name: v.detach() for name, v in query.fixed.items()}
        if self.finite and not self.listable:
            return self._fit_by_score(start)
        noise = self._noise(self.method.n)
        table = None
        if not self.real:  # the energies do not depend on φ: list them once
            with torch.no_grad():
                table = self._energies({}, fixed, query.rows, 1)[0]  # (B, K)

        def value_and_grad(phi: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
            given = fixed if rows is None else {k: v[rows] for k, v in fixed.items()}
            listed = table if rows is None or table is None else table[rows]
            with torch.enable_grad():
                phi = phi.detach().requires_grad_()
                value = self._bound(phi, given, noise, listed).mean(0)
                (g,) = torch.autograd.grad(value.sum(), phi)
            return value.detach(), g

        everywhere = torch.full_like(start[0], math.inf)
        found = descend(
            value_and_grad,
            start,
            low=-everywhere,
            high=everywhere,
            max_iter=self.method.max_iter,
            tol=self.method.tol,
        )
        return found.point

    def _noise(self, n: int, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Standard normal noise ``(n, d)`` shared by all rows.

        Without a generator it is the fixed noise of fitting, in pairs of opposite sign and
        whitened where there is enough of it: means and covariances are then exact.
        """
        query, noise = self.query, {}
        fixed = generator is None
        source = generator or Key.of(0).torch(query.device)
        for name, d in self.dims.items():
            half = (n + 1) // 2 if fixed else n
            eps = torch.randn(
                half, d, generator=source, device=source.device, dtype=query.dtype
            ).to(query.device)
            if fixed:
                eps = torch.cat([eps, -eps])
                if half >= 2 * d:
                    root = torch.linalg.cholesky(eps.mT @ eps / len(eps))
                    eps = torch.linalg.solve_triangular(root, eps.mT, upper=False).mT
            noise[name] = eps
        return noise

    def _energies(
        self, reals: Mapping[str, Tensor], given: Mapping[str, Tensor], rows: int, n: int
    ) -> Tensor:
        """``e`` at draws ``(n, B, *event)`` and every listed finite value: ``(n, B, K)``."""
        k = 1 if self.grid is None else self.grid.size
        values = {
            name: v.unsqueeze(2).expand(n, rows, k, *v.shape[2:]).reshape(-1, *v.shape[2:])
            for name, v in reals.items()
        }
        if self.grid is not None:
            codes = torch.arange(k, device=self.query.device)
            for name, v in self.grid.shared(codes).items():
                values[name] = v.repeat(n * rows, *(1,) * (v.ndim - 1))
        fixed = {
            name: v.repeat_interleave(k, 0).repeat(n, *(1,) * (v.ndim - 1))
            for name, v in given.items()
        }
        e: Tensor = self.query.energy(**fixed, **values)
        return e.reshape(n, rows, k)

    def _bound(
        self,
        params: Tensor,
        given: Mapping[str, Tensor],
        noise: Mapping[str, Tensor],
        table: Tensor | None = None,
        closed: bool = True,
    ) -> Tensor:
        """The bound of every noise vector, ``(n, B)``; their mean is the bound.

        ``closed`` takes the entropy in closed form where there is one. Without it ``e + T log q``
        is averaged, which has no variance at all once q is the distribution.
        """
        parts, rows = self.split(params), len(params)
        n = len(next(iter(noise.values()))) if noise else 1
        T = self.query.T
        reals, minus_entropy = {}, params.new_zeros(n, rows)
        for name in self.real:
            family, space = self.families[name], self.spaces[name]
            family = family if isinstance(family, Gaussian) else Gaussian("diag")
            eps = noise[name][:, None].expand(-1, rows, -1)
            reals[name], log_q = family.place(space, parts[name], eps)
            h = family.entropy(space, parts[name]) if closed else None
            minus_entropy = minus_entropy + (log_q if h is None else -h)
        e = self._energies(reals, given, rows, n) if table is None else table[None]
        if self.grid is None:
            return e[..., 0] + T * minus_entropy
        log_q = self._log_q(parts)  # (B, K)
        q = log_q.exp()
        minus_entropy = minus_entropy + torch.where(q > 0, q * log_q, 0.0).sum(1)
        mean = torch.where(q > 0, q * e, 0.0).sum(2)  # a forbidden value needs q = 0
        return mean + T * minus_entropy

    def _log_q(self, parts: Mapping[str, Tensor]) -> Tensor:
        """Log probabilities of the listed finite values, ``(B, K)``."""
        assert self.grid is not None
        values = self.grid.shared(torch.arange(self.grid.size, device=self.query.device))
        total: Tensor | None = None
        for name, v in values.items():
            distribution = self.families[name].distribution(self.spaces[name], parts[name])
            log_q = distribution.log_prob(v[:, None].expand(-1, len(parts[name]), *v.shape[1:])).mT
            total = log_q if total is None else total + log_q
        assert total is not None
        return total

    def _fit_by_score(self, start: Tensor) -> Tensor:
        """Adam on score-function gradients with a leave-one-out baseline."""
        query, n = self.query, max(2, self.method.n)
        phi = start.clone().requires_grad_()
        adam = torch.optim.Adam([phi], lr=0.05)
        generator = query.generator or Key.of(0).torch()
        for _ in range(self.method.max_iter):
            with torch.enable_grad():  # the caller may have turned gradients off
                distributions = self.distributions(phi)
                values = {
                    name: draw(distribution, n, generator).detach()
                    for name, distribution in distributions.items()
                }
                log_q = sum(
                    (distribution.log_prob(values[m]) for m, distribution in distributions.items()),
                    torch.zeros(()),
                )
                with torch.no_grad():
                    cost = energies_of(query, values) + query.T * log_q  # (n, B)
                    centred = (cost - cost.mean(0)) * n / (n - 1)
                loss = (centred * log_q).mean(0).sum()
                (phi.grad,) = torch.autograd.grad(loss, phi)
            adam.step()
        return phi.detach()

    # --- evaluating ----------------------------------------------------------------------

    def value(self, params: Tensor) -> Tensor:
        """The bound at φ ``(B,)`` as ``fit`` sees it, with the fixed noise of fitting."""
        return self._bound(params, self.query.fixed, self._noise(self.method.n)).mean(0)

    def evaluate(self, params: Tensor) -> FreeEnergy:
        """The bound at φ, differentiable in θ and the given; fresh noise where there is any."""
        query, params = self.query, params.detach()
        generator = query.generator or Key.of(None).torch(query.device)
        if self.finite and not self.listable:
            distributions = self.distributions(params)
            values = {
                m: draw(distribution, 4 * self.method.n, generator)
                for m, distribution in distributions.items()
            }
            log_q = sum(
                (distribution.log_prob(values[m]) for m, distribution in distributions.items()),
                torch.zeros(()),
            )
            each = energies_of(query, values) + query.T * log_q
        else:
            noise = self._noise(4 * self.method.n, generator)
            each = self._bound(params, query.fixed, noise, closed=False)
        value = each.mean(0)
        _check_finite(query, value)
        if len(each) == 1:
            return FreeEnergy(value, "upper", info={"params": params})
        stderr = each.detach().std(0) / math.sqrt(len(each))
        return FreeEnergy(value, "upper", stderr, {"params": params})


def _check_finite(query: Query, value: Tensor) -> None:
    if not bool(torch.isfinite(value).all()):
        energy, names = type(query.energy).__name__, ", ".join(query.free)
        raise FloatingPointError(
            f"the bound of {energy} over {names} has no finite minimum; exp(-e/T) is probably "
            "not integrable over it, so there is no distribution to approximate"
        )
