r"""Distributions on sequences whose energy is a chain of unary and pairwise terms.

.. math::

    e(y) = \sum_{t=1}^{L} u_t(y_t) + \sum_{t=1}^{L-1} w_t(y_t, y_{t+1}),
    \qquad p(y) = e^{-e(y)/T} / Z

Everything follows from one backward recursion over messages
:math:`\beta_t(i) = \log\sum_j \exp(-w_t(i,j) - u_{t+1}(j) + \beta_{t+1}(j))` (at T = 1), after
which the distribution is an ordinary Markov chain with transitions
:math:`Q_t(i,j) = \exp(-w_t(i,j) - u_{t+1}(j) + \beta_{t+1}(j) - \beta_t(i))`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.errors import ShapeError
from groundstate.math.chains import chain_fast, chain_reference

Backend = Literal["auto", "fast", "reference"]
LONG = 64  # steps


@dataclass(frozen=True)
class ChainFactors:
    r"""The terms of a chain energy.

    Parameters
    ----------
    unary : Tensor, ``(B, L, K)``
        :math:`u_t(k)`; ``+inf`` forbids a state.
    pairwise : Tensor, ``(K, K)`` or ``(B, L-1, K, K)``
        :math:`w(i, j)` for state ``i`` followed by state ``j``.
    lengths : Tensor, ``(B,)``, optional
        Rows shorter than ``L``; terms behind the length count nothing.
    """

    unary: Tensor
    pairwise: Tensor
    lengths: Tensor | None = None

    def __post_init__(self) -> None:
        if self.unary.ndim != 3 or 0 in self.unary.shape[1:]:
            raise ShapeError(f"unary must be (B, L, K), got {tuple(self.unary.shape)}")
        b, n, k = self.unary.shape
        if tuple(self.pairwise.shape) not in ((k, k), (b, n - 1, k, k)):
            raise ShapeError(
                f"pairwise must be ({k}, {k}) or ({b}, {n - 1}, {k}, {k}) for unary "
                f"{tuple(self.unary.shape)}, got {tuple(self.pairwise.shape)}"
            )
        if self.lengths is not None:
            if tuple(self.lengths.shape) != (b,):
                raise ShapeError(f"lengths must be ({b},), got {tuple(self.lengths.shape)}")
            if b and not bool(((self.lengths >= 1) & (self.lengths <= n)).all()):
                raise ShapeError(
                    f"lengths must lie in 1..{n}, got {int(self.lengths.min())}"
                    f"..{int(self.lengths.max())}"
                )

    @property
    def steps(self) -> Tensor:
        """Length of every row, ``(B,)`` int64."""
        b, n, _ = self.unary.shape
        if self.lengths is None:
            return torch.full((b,), n, dtype=torch.int64, device=self.unary.device)
        return self.lengths.to(torch.int64)

    @property
    def inside(self) -> Tensor:
        """True before the end of the row, ``(B, L)``."""
        return torch.arange(self.unary.shape[1], device=self.unary.device) < self.steps[:, None]

    def energy(self, y: Tensor) -> Tensor:
        """``e(y)`` for ``(B, L)`` or ``(n, B, L)`` int64 sequences: ``(B,)`` or ``(n, B)``."""
        b, n, _ = self.unary.shape
        if tuple(y.shape[-2:]) != (b, n):
            raise ShapeError(f"sequences must end in shape ({b}, {n}), got {tuple(y.shape)}")
        y = torch.where(self.inside, y, 0)
        rows = torch.arange(b, device=y.device)[:, None]
        times = torch.arange(n, device=y.device)
        u = self.unary[rows, times, y]  # (..., B, L)
        e = torch.where(self.inside, u, 0.0).sum(-1)
        if n == 1:
            return e
        if self.pairwise.ndim == 2:
            w = self.pairwise[y[..., :-1], y[..., 1:]]  # (..., B, L-1)
        else:
            w = self.pairwise[rows, times[:-1], y[..., :-1], y[..., 1:]]
        return e + torch.where(self.inside[:, 1:], w, 0.0).sum(-1)

    def plus(self, unary: Tensor) -> ChainFactors:
        """Further unary terms added, e.g. a Hamming cost."""
        return ChainFactors(self.unary + unary, self.pairwise, self.lengths)

    def __add__(self, other: ChainFactors) -> ChainFactors:
        """Sum of two chain energies over the same sequences."""
        w, v = self.pairwise, other.pairwise
        if w.ndim != v.ndim and self.unary.shape[1] == 1:
            w, v = (p if p.ndim == 2 else p.new_zeros(p.shape[-2:]) for p in (w, v))
        lengths = self.lengths if self.lengths is not None else other.lengths
        return ChainFactors(self.unary + other.unary, w + v, lengths)

    def __mul__(self, c: float) -> ChainFactors:
        return ChainFactors(self.unary * c, self.pairwise * c, self.lengths)

    __rmul__ = __mul__


class ChainDistribution(Distribution):
    r"""The Boltzmann distribution :math:`p(y) = e^{-e(y)/T}/Z` of a chain energy.

    Exact and in :math:`O(LK^2)` per row: most probable sequence and the ``k`` best (min-sum,
    ties to the lexicographically lowest), log partition function, marginals, entropy and draws.
    Log-space recursions; on the CPU a compiled kernel runs the rows in parallel.

    Parameters
    ----------
    factors : ChainFactors
    T : float, default=1.0
        0 is the point mass on the mode, ``inf`` the uniform distribution on what is not forbidden.
    backend : {"auto", "fast", "reference"}, default="auto"
        "reference" is the readable torch recursion, differentiable any number of times; "fast"
        the compiled CPU kernel, differentiable once. "auto" takes "fast" for large CPU inputs.

    Notes
    -----
    ``batch_shape`` is ``(B,)`` and ``event_shape`` ``(L,)``; what stands behind a row's length is 0
    in modes and draws and ignored in ``log_prob``.

    Examples
    --------
    >>> u = torch.tensor([[[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]]])
    >>> distribution = ChainDistribution(ChainFactors(u, torch.tensor([[0.0, 0.7], [0.3, 0.0]])))
    >>> distribution.mode.tolist()
    [[0, 1, 1]]
    >>> [round(float(p), 4) for p in distribution.marginals[0, :, 1]]
    [0.3356, 0.5744, 0.6959]
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(
        self,
        factors: ChainFactors,
        T: float = 1.0,
        *,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ) -> None:
        if not T >= 0:
            raise ValueError(f"temperature must be in [0, inf], got T={T}")
        self.factors, self.T, self.backend = factors, float(T), backend
        for name in ("unary", "pairwise"):
            _check(getattr(factors, name), name)
        b, n, _ = factors.unary.shape
        self._cache: dict[str, Tensor] = {}
        super().__init__(torch.Size([b]), torch.Size([n]), validate_args=False)

    # --- the energy over T -----------------------------------------------------------------

    def _scaled(self) -> tuple[Tensor, Tensor]:
        u, w = self.factors.unary, self.factors.pairwise
        if math.isinf(self.T):
            return (torch.where(torch.isposinf(a), math.inf, 0.0).to(a.dtype) for a in (u, w))  # type: ignore[return-value]
        return (u, w) if self.T == 1.0 else (u / self.T, w / self.T)

    def _fast(self) -> bool:
        u, w = self.factors.unary, self.factors.pairwise
        if self.backend != "auto":
            return self.backend == "fast"
        if u.device.type != "cpu" or u.dtype != w.dtype:
            return False
        b, n, k = u.shape
        # the reference takes n steps of many small operations, but can be differentiated again
        return b * n * k * k >= 2**16 or (n >= LONG and not self._wants_grad())

    def _wants_grad(self) -> bool:
        u, w = self.factors.unary, self.factors.pairwise
        return torch.is_grad_enabled() and (u.requires_grad or w.requires_grad)

    # --- minimum -------------------------------------------------------------------------

    @property
    def mode(self) -> Tensor:
        """The sequence of lowest energy, ``(B, L)`` int64."""
        if "mode" not in self._cache:
            u, w = self.factors.unary.detach(), self.factors.pairwise.detach()
            if self._fast():
                self._cache["mode"] = chain_fast.mode(u, w, self.factors.steps)
            else:
                self._cache["mode"] = self.topk(1)[0][0]
        return self._cache["mode"]

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` lowest-energy sequences ``(k, B, L)`` and their energies ``(k, B)``, ascending.

        Rows with fewer than ``k`` sequences get energy ``+inf`` for the rest.
        """
        if k < 1:
            raise ValueError(f"topk needs k >= 1, got {k}")
        u, w = self.factors.unary.detach(), self.factors.pairwise.detach()
        return chain_reference.topk(u, w, self.factors.steps, k)

    # --- sums ------------------------------------------------------------------------------

    @property
    def log_partition(self) -> Tensor:
        """``log Z``, ``(B,)``, differentiable in the factors."""
        if self.T == 0.0:
            raise ValueError("log Z = -F/T is not defined at T=0; use free_energy")
        u, w = self._scaled()
        steps = self.factors.steps
        if self._fast():
            log_z = chain_fast.log_partition(u, w, steps)
        else:
            log_z = chain_reference.log_partition(u, w, steps)
        if bool(torch.isneginf(log_z).any()):
            row = int(torch.isneginf(log_z).nonzero()[0, 0])
            raise ValueError(f"every sequence is forbidden (+inf) in row {row}")
        return log_z

    @property
    def free_energy(self) -> Tensor:
        """``F = -T log Z``, ``(B,)``; the minimum energy at T = 0."""
        if self.T == 0.0:
            return self.factors.energy(self.mode)
        return -self.T * self.log_partition

    @property
    def marginals(self) -> Tensor:
        """``P(y_t = k)``, ``(B, L, K)``; zero behind the length."""
        return self._marginals()[0]

    @property
    def pair_marginals(self) -> Tensor:
        """``P(y_t = i, y_{t+1} = j)``, ``(B, L-1, K, K)``; zero behind the length."""
        return self._marginals(pairs=True)[1]

    def statistics(self, weight: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """What expectation maximisation needs: log Z ``(B,)``, marginals ``(B, L, K)``, and pair
        marginals summed over rows (by weight) and positions, ``(K, K)``; without gradients.
        """
        with torch.no_grad():
            u, w = self._scaled()
            steps = self.factors.steps
            if self._fast():
                return chain_fast.statistics(u, w, steps, weight)
            mu, pair = chain_reference.marginals(u, w, steps)
            by = pair if weight is None else pair * weight[:, None, None, None]
            return chain_reference.log_partition(u, w, steps), mu, by.sum((0, 1))

    def _marginals(self, pairs: bool = False) -> tuple[Tensor, Tensor]:
        if self.T == 0.0:
            return self._at_mode()
        u, w = self._scaled()
        if self._fast() and not self._wants_grad():
            return chain_fast.marginals(u, w, self.factors.steps, pairs)
        return chain_reference.marginals(u, w, self.factors.steps)

    def _at_mode(self) -> tuple[Tensor, Tensor]:
        u = self.factors.unary
        inside = self.factors.inside.to(u.dtype)
        hot = torch.nn.functional.one_hot(self.mode, u.shape[-1]).to(u.dtype) * inside[..., None]
        return hot, hot[:, :-1, :, None] * hot[:, 1:, None, :]

    def entropy(self) -> Tensor:
        """``H(p) = log Z + E[e]/T``, ``(B,)``."""
        if self.T == 0.0:
            return self.factors.unary.new_zeros(self.batch_shape)
        mu, pair = self._marginals(pairs=True)
        u, w = self._scaled()
        w = w if w.ndim == 4 else w.expand(pair.shape)
        mean = _expect(mu, u).flatten(1).sum(1) + _expect(pair, w).flatten(1).sum(1)
        return self.log_partition + mean

    def log_prob(self, value: Tensor) -> Tensor:
        """``-e(y)/T - log Z`` for ``(..., B, L)`` sequences."""
        k = self.factors.unary.shape[-1]
        bad = self.factors.inside & ((value < 0) | (value >= k))
        if bool(bad.any()):
            raise ValueError(f"sequences must hold states 0..{k - 1}, got {value[bad][0].item()}")
        e = self.factors.energy(value)
        if self.T == 0.0:
            same = ((value == self.mode) | ~self.factors.inside).all(-1)
            return torch.where(same, 0.0, -math.inf).to(e.dtype)
        if math.isinf(self.T):
            e = torch.where(torch.isposinf(e), math.inf, 0.0).to(e.dtype)
            return -e - self.log_partition
        return -e / self.T - self.log_partition

    # --- draws ---------------------------------------------------------------------------

    def sample(
        self,
        sample_shape: torch.Size | tuple[int, ...] | list[int] = (),
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Independent sequences, ``(*sample_shape, B, L)`` int64."""
        shape = tuple(sample_shape)
        b, n = int(self.batch_shape[0]), int(self.event_shape[0])
        count = math.prod(shape)
        if self.T == 0.0:
            return self.mode.expand(*shape, b, n).clone()
        with torch.no_grad():
            u, w = self._scaled()
            device = u.device
            noise = torch.rand(count, b, n, generator=generator, device=device, dtype=u.dtype)
            run = chain_fast.sample if self._fast() else chain_reference.sample
            return run(u, w, self.factors.steps, noise).reshape(*shape, b, n)


def _expect(p: Tensor, e: Tensor) -> Tensor:
    """``p * e`` with ``0 * inf = 0``."""
    return p * torch.where(p > 0, e, 0.0)


def _check(e: Tensor, name: str) -> None:
    total = float(e.detach().sum())  # NaN or -inf exactly when an element is; +inf may be there
    if math.isnan(total) or total == -math.inf:
        bad = torch.isnan(e) | torch.isneginf(e)
        if bool(bad.any()):
            where = tuple(int(i) for i in bad.nonzero()[0])
            raise FloatingPointError(
                f"{name} holds {float(e[where])} at {where}; energies are real or +inf"
            )
