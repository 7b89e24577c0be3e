r"""Distributions of many discrete variables whose energy is a sum of small tables.

.. math:: p(x) = \frac1Z\exp\Bigl(-\tfrac1T\sum_f\theta_f(x_f)\Bigr),\qquad
          \log Z,\ \max_x p,\ p(x_i),\ x \sim p\ \text{by elimination.}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.errors import ShapeError
from groundstate.math.graphs.elimination import NEVER, Contraction


def scores_of(energy: Tensor, T: float = 1.0) -> Tensor:
    """−e/T with a finite number for what is forbidden, so that gradients exist."""
    return (-energy / T).clamp_min(NEVER)


class FactorGraphDistribution(Distribution):
    r"""The Boltzmann distribution of a factor graph, some variables of which may be known.

    Exact by variable elimination, at the cost of the largest table that the min-fill order meets.
    Rows with the same variables known are one batch.

    Parameters
    ----------
    scopes : variables of each factor, by number
    energies : a table for each factor, one axis for each of its variables; ``+inf`` forbids
    sizes : number of values of each variable
    value : ``(B, D)`` rows with the known values in place; None: one row, nothing known
    mask : ``(B, D)`` bool, True where a variable is free; None: all are
    T : temperature

    Notes
    -----
    ``log_prob`` is that of the free variables given the others. Values are floats, as all rows are.

    Examples
    --------
    >>> rain = -torch.tensor([[0.8, 0.2], [0.1, 0.9]]).log()  # p(wet | rain)
    >>> cloud = -torch.tensor([0.7, 0.3]).log()
    >>> x, free = torch.tensor([[0.0, 1.0]]), torch.tensor([[True, False]])
    >>> p = FactorGraphDistribution([(0,), (0, 1)], [cloud, rain], (2, 2), x, free)
    >>> p.marginals()[0]
    tensor([[0.3415, 0.6585]])
    >>> p.mode
    tensor([[1., 1.]])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    support = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(
        self,
        scopes: Sequence[tuple[int, ...]],
        energies: Sequence[Tensor],
        sizes: Sequence[int],
        value: Tensor | None = None,
        mask: Tensor | None = None,
        T: float = 1.0,
    ) -> None:
        self.scopes, self.sizes = tuple(map(tuple, scopes)), tuple(sizes)
        for scope, table in zip(self.scopes, energies, strict=True):
            if tuple(table.shape) != tuple(self.sizes[v] for v in scope):
                raise ShapeError(
                    f"the factor of variables {scope} needs a table of shape "
                    f"{tuple(self.sizes[v] for v in scope)}, got {tuple(table.shape)}"
                )
        self.energies, self.T = tuple(energies), float(T)
        self.scores = [scores_of(e, self.T) for e in energies]
        like = self.scores[0] if self.scores else torch.zeros(())
        self.value = like.new_zeros(1, len(self.sizes)) if value is None else value
        self.mask = torch.ones_like(self.value, dtype=torch.bool) if mask is None else mask
        b, d = self.value.shape
        super().__init__(torch.Size([b]), torch.Size([d]), validate_args=False)

    def _groups(self) -> Iterator[tuple[Tensor, Tensor, list[int]]]:
        """Rows with the same free variables: their numbers, known values, and what is free."""
        patterns, group = torch.unique(self.mask, dim=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            rows = (group == k).nonzero()[:, 0]
            yield rows, self.value[rows].long(), pattern.nonzero()[:, 0].tolist()

    def _restricted(
        self, known: Tensor, free: list[int], extra: dict[int, Tensor] | None = None
    ) -> tuple[list[tuple[int, ...]], list[Tensor]]:
        """Factors of the free variables alone, ``(B, ...)``, at the known values of the rest."""
        inside = set(free)
        scopes, scores, covered = [], [], set[int]()
        for scope, table in zip(self.scopes, self.scores, strict=True):
            left = tuple(v for v in scope if v in inside)
            held = [v for v in scope if v not in inside]
            if held:
                turned = table.permute(*(scope.index(v) for v in (*held, *left)))
                part = turned[tuple(known[:, v] for v in held)]
            else:
                part = table[None]
            scopes.append(left)
            scores.append(part)
            covered.update(left)
        for v in free:
            unary = None if extra is None else extra.get(v)
            if unary is not None or v not in covered:
                scopes.append((v,))
                scores.append(self.value.new_zeros(1, self.sizes[v]) if unary is None else unary)
        return scopes, scores

    def _contracted(self, known: Tensor, free: list[int], **settings: Any) -> Contraction:
        return Contraction(*self._restricted(known, free), self.sizes, **settings)

    @property
    def log_partition(self) -> Tensor:
        r""":math:`\log\sum_{x_{free}}e^{-e/T}` of each row, ``(B,)``; differentiable in the tables."""
        found = self.value.new_zeros(len(self.value)).to(self.scores[0])
        for rows, known, free in self._groups():
            found = found.index_put((rows,), self._contracted(known, free).value.expand(len(rows)))
        return torch.where(found < NEVER / 10, -torch.inf, found)

    def score(self, value: Tensor) -> Tensor:
        """−e(x)/T of rows ``(..., B, D)``."""
        x = value.long()
        parts = [
            s[tuple(x[..., v] for v in scope)]
            for scope, s in zip(self.scopes, self.scores, strict=True)
        ]
        total: Tensor = sum(parts, torch.zeros(x.shape[:-1]).to(self.scores[0]))
        return torch.where(total < NEVER / 10, -torch.inf, total)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.score(value) - self.log_partition

    @property
    def mode(self) -> Tensor:
        """The most probable values, known ones in place, ``(B, D)``; ties go to low values."""
        out = self.value.clone()
        with torch.no_grad():
            for rows, known, free in self._groups():
                best = self._contracted(known, free, best=True)
                out[rows] = best.back(known).to(out)
        return out

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Independent exact draws, ``(n, B, D)``."""
        b, d = self.value.shape
        noise = torch.rand(n, b, d, generator=generator, device=generator.device)
        noise = noise.to(self.value.device)
        out = self.value.expand(n, b, d).clone()
        with torch.no_grad():
            for rows, known, free in self._groups():
                buckets = self._contracted(known, free)
                for k in range(n) if len(rows) > 1 else ():
                    out[k, rows] = buckets.back(known.clone(), noise[k, rows]).to(out)
                if len(rows) == 1:  # one set of buckets for all draws
                    many = known.expand(n, d).clone()
                    out[:, rows[0]] = buckets.back(many, noise[:, rows[0]]).to(out)
        return out

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator(self.value.device)
        generator.manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(*shape, *self.value.shape)

    def marginals(self) -> list[Tensor]:
        """Probabilities of the values of each variable, ``(B, K)`` each; known ones are 0 or 1."""
        dtype = self.scores[0].dtype
        x = self.value.long()
        found = [
            torch.nn.functional.one_hot(x[:, v].clamp(0, k - 1), k).to(dtype)
            for v, k in enumerate(self.sizes)
        ]
        with torch.enable_grad():
            for rows, known, free in self._groups():
                extra = {
                    v: torch.zeros(len(rows), self.sizes[v], dtype=dtype, device=x.device)
                    for v in free
                }
                for unary in extra.values():
                    unary.requires_grad_()
                scopes, scores = self._restricted(known, free, extra)
                held = [s if s.requires_grad and s.is_leaf else s.detach() for s in scores]
                value = Contraction(scopes, held, self.sizes).value
                if free:
                    grads = torch.autograd.grad(value.sum(), list(extra.values()))
                    for v, grad in zip(free, grads, strict=True):
                        found[v][rows] = grad
        return found

    def expected_counts(self, weight: Tensor | None = None) -> tuple[list[Tensor], Tensor]:
        r"""Expected number of rows in every cell of every table, and log Z of each row.

        :math:`\sum_b w_b\,p(x_f \mid \text{known}_b)`, the gradient of
        :math:`\sum_b w_b\log Z_b` in the scores.
        """
        leaves = [s.detach().clone().requires_grad_() for s in self.scores]
        with torch.enable_grad():
            twin = FactorGraphDistribution.__new__(FactorGraphDistribution)
            twin.__dict__.update(self.__dict__)
            twin.scores = leaves
            log_z = twin.log_partition
            total = log_z.sum() if weight is None else log_z @ weight
            counts = torch.autograd.grad(total, leaves)
        return list(counts), log_z.detach()

    @property
    def mean(self) -> Tensor:
        """Mean level numbers, ``(B, D)``."""
        return torch.stack(
            [m @ torch.arange(m.shape[1], device=m.device).to(m) for m in self.marginals()], 1
        )
