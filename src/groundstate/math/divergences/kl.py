r"""Kullback-Leibler divergence :math:`KL(p\|q) = E_p\log\frac pq`: tables, distributions, samples."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from groundstate.compute.random import RandomState
from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.distributions.operations import gaussian_moments, is_gaussian
from groundstate.math.info.entropy import draws, log_prob, pair
from groundstate.math.info.pmf import average, exact, in_base, pmfs, weighted

Method = Literal["auto", "plain", "low_variance", "knn"]
_CELLS = 1 << 24  # distances of one block


def kl(
    p: Any,
    q: Any,
    *,
    base: float | None = None,
    method: Method = "auto",
    n: int | None = None,
    dim: int = -1,
    logits: bool = False,
    k: int = 5,
    random_state: RandomState = None,
    stderr: bool = False,
) -> Any:
    r""":math:`KL(p\|q) = \sum_k p_k\log(p_k/q_k)`, 0 exactly where the distributions agree.

    Infinite where p > 0 and q = 0, never NaN. torch's ``KLDivLoss`` takes log q first, then p, and
    is a mean over entries unless ``reduction="batchmean"``.

    Parameters
    ----------
    p, q : two tables (weights, counts or log-weights), two torch distributions, or with
        ``method="knn"`` two samples ``(n, d)`` and ``(m, d)``
    base : of the logarithm; 2 gives bits
    method : ``"auto"`` takes the closed form where there is one. Monte Carlo draws x from p:
        ``"plain"`` averages :math:`\log p - \log q`, ``"low_variance"`` averages
        :math:`r - 1 - \log r \ge 0`, r = q/p. ``"knn"`` compares distances to the k-th neighbour
        in each sample
    n : draws of Monte Carlo, 10,000 unless given
    dim, logits : of tables, as in `info.entropy`
    k : neighbours of ``"knn"``
    random_state : of the draws
    stderr : return an ``Estimate(value, stderr)``

    Examples
    --------
    >>> round(kl([0.5, 0.5], [0.9, 0.1]), 6), round(kl([0.9, 0.1], [0.5, 0.5]), 6)
    (0.510826, 0.368064)
    >>> kl([0.5, 0.5], [1.0, 0.0])
    inf
    >>> from torch.distributions import Normal
    >>> round(float(kl(Normal(0.0, 1.0), Normal(1.0, 2.0))), 6)
    0.443147
    """
    if method not in ("auto", "plain", "low_variance", "knn"):
        raise ValueError(f"method must be 'auto', 'plain', 'low_variance' or 'knn', got {method!r}")
    if method == "knn":
        return _knn(p, q, k, base)
    if not pair(p, q):
        if method != "auto":
            raise ValueError(f"method={method!r} draws from a distribution; tables are summed")
        return _tables(p, q, base, dim, logits, stderr)
    if method == "auto":
        closed = _closed(p, q)
        if closed is not None:
            return exact(closed, base, stderr)
    x = draws(p, 10_000 if n is None else n, random_state)
    log_r = log_prob(q, x) - log_prob(p, x)
    each = torch.expm1(log_r) - log_r if method == "low_variance" else -log_r
    return average(each, base, stderr)


@takes_arrays("p", "q", finite=False)
def _tables(p: Any, q: Any, base: float | None, dim: int, logits: bool, stderr: bool) -> Any:
    a, b = pmfs(p, q, dim, logits=logits)
    if p.shape[dim] != q.shape[dim]:
        raise ShapeError(f"p and q need the same values, got {p.shape[dim]} and {q.shape[dim]}")
    ratio = torch.where(a.p > 0, a.log, 0.0) - b.log
    return exact(weighted(a.p, ratio).sum(dim).clamp_min(0.0), base, stderr)


def _closed(p: Distribution, q: Distribution) -> Tensor | None:
    try:
        value: Tensor = kl_divergence(p, q)
        return value
    except NotImplementedError:
        vectors = len(p.event_shape) == len(q.event_shape) == 1
        if vectors and is_gaussian(p) and is_gaussian(q):
            return _gaussian(*_spread(p), *_spread(q))
        return None


def _spread(p: Distribution) -> tuple[Tensor, Tensor]:
    mean, cov = gaussian_moments(p)
    return mean, torch.linalg.cholesky(cov)


@takes_arrays("mean0", "cov0", "mean1", "cov1", "logvar0", "logvar1")
def kl_gaussian(
    mean0: Any,
    cov0: Any = None,
    mean1: Any = None,
    cov1: Any = None,
    base: float | None = None,
    *,
    logvar0: Any = None,
    logvar1: Any = None,
) -> Any:
    r"""KL of :math:`N(m_0, S_0)` from :math:`N(m_1, S_1)`,

    .. math:: \tfrac12\Big[\log\frac{|S_1|}{|S_0|} - d + \mathrm{tr}(S_1^{-1}S_0)
              + (m_1-m_0)^\top S_1^{-1}(m_1-m_0)\Big] ,

    by Cholesky factors, coordinate by coordinate where both are diagonal. The second is
    :math:`N(0, I)` unless given: :math:`\tfrac12\sum_j(\mu_j^2+\sigma_j^2-1-\log\sigma_j^2)`.

    Parameters
    ----------
    mean0, mean1 : means ``(..., d)``
    cov0, cov1 : covariances ``(..., d, d)``, variances ``(..., d)``, or one variance for all
        coordinates ``(...)``
    base : of the logarithm
    logvar0, logvar1 : logarithms of variances ``(..., d)`` instead of ``cov0``, ``cov1``, as
        encoders return them; cut off at ±30

    Examples
    --------
    >>> round(kl_gaussian([0, 1], [1, 2], [1, 0], [[2, 0.5], [0.5, 1]]), 7)
    1.5046629
    >>> kl_gaussian([1, -1], [0.5, 2]), round(kl_gaussian([1, 2], 1, cov1=4), 6)
    (1.25, 1.261294)
    >>> kl_gaussian(torch.zeros(2, 3), logvar0=torch.zeros(2, 3))
    tensor([0., 0.])
    """
    m0, m1 = (m.unsqueeze(0) if m.ndim == 0 else m for m in (mean0, _zero_mean(mean1, mean0)))
    if m0.shape[-1] != m1.shape[-1]:
        raise ShapeError(f"means need one length, got {m0.shape[-1]} and {m1.shape[-1]}")
    if cov0 is None and logvar0 is None:
        raise ValueError("kl_gaussian needs the spread of the first Gaussian: pass cov0 or logvar0")
    if cov1 is None and logvar1 is None:
        cov1 = m1.new_ones(())
    v0, v1 = _logvar(cov0, logvar0, m0, "0"), _logvar(cov1, logvar1, m1, "1")
    if v0 is not None and v1 is not None:
        return in_base(gaussian_kl_terms(m0, v0, m1, v1).sum(-1), base)
    L0, L1 = _factor(cov0, v0, m0, "cov0"), _factor(cov1, v1, m1, "cov1")
    return in_base(_gaussian(m0, L0, m1, L1), base)


LOGVAR = 30.0  # variances outside e^±30 are rounding


def gaussian_kl_terms(
    mean0: Tensor, logvar0: Tensor, mean1: Tensor | None = None, logvar1: Tensor | None = None
) -> Tensor:
    r"""The coordinates of the KL of two diagonal Gaussians ``(..., d)``, the second one standard
    normal unless given; nothing is checked.

    >>> gaussian_kl_terms(torch.tensor([1.0, -1.0]), torch.tensor([0.5, 2.0]).log()).sum()
    tensor(1.2500)
    """
    if mean1 is None or logvar1 is None:
        return 0.5 * (mean0.square() + logvar0.exp() - 1 - logvar0)
    away = (mean0 - mean1).square() * (-logvar1).exp()
    return 0.5 * (away + (logvar0 - logvar1).exp() - 1 - logvar0 + logvar1)


def _zero_mean(mean1: Tensor | None, mean0: Tensor) -> Tensor:
    return torch.zeros_like(mean0) if mean1 is None else mean1


def _logvar(cov: Tensor | None, logvar: Tensor | None, mean: Tensor, which: str) -> Tensor | None:
    """Logarithms of the variances, or None for a full covariance."""
    d, name = mean.shape[-1], f"logvar{which}"
    if logvar is not None:
        if cov is not None:
            raise ValueError(f"pass cov{which} or {name}, not both")
        if logvar.ndim and logvar.shape[-1] not in (1, d):
            raise ShapeError(f"{name} must hold {d} numbers, got shape {tuple(logvar.shape)}")
        return logvar.clamp(-LOGVAR, LOGVAR).expand(torch.broadcast_shapes(logvar.shape, (d,)))
    assert cov is not None
    if cov.ndim == mean.ndim + 1:
        return None
    variances = cov.unsqueeze(-1).expand(*cov.shape, d) if cov.ndim < mean.ndim else cov
    if variances.shape[-1] != d:
        raise ShapeError(f"cov{which} must hold {d} variances, got shape {tuple(cov.shape)}")
    if not bool((variances.detach() > 0).all()):
        raise ValueError(f"cov{which} must hold positive variances")
    return variances.log()


def _factor(cov: Tensor | None, logvar: Tensor | None, mean: Tensor, name: str) -> Tensor:
    """The Cholesky factor of a covariance or of variances."""
    if logvar is not None:
        return torch.diag_embed((0.5 * logvar).exp())
    assert cov is not None
    d = mean.shape[-1]
    if cov.shape[-2:] != (d, d):
        raise ShapeError(f"{name} must be ({d}, {d}) at its end, got {tuple(cov.shape)}")
    L, failed = torch.linalg.cholesky_ex(cov)
    if bool(failed.any()):
        raise ValueError(f"{name} is not positive definite; add a little to its diagonal")
    return L


def _gaussian(m0: Tensor, L0: Tensor, m1: Tensor, L1: Tensor) -> Tensor:
    def log_det(L: Tensor) -> Tensor:
        return 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def solve(B: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(L1, B, upper=False)

    trace = solve(L0).square().sum((-2, -1))
    away = solve((m1 - m0).unsqueeze(-1)).square().sum((-2, -1))
    return 0.5 * (log_det(L1) - log_det(L0) - m0.shape[-1] + trace + away)


@takes_arrays("p", "q")
def _knn(p: Any, q: Any, k: int, base: float | None) -> Any:
    r""":math:`\frac dn\sum_i\log\frac{\nu_k(i)}{\rho_k(i)} + \log\frac{m}{n-1}`: ρ and ν are the
    distances of x_i to its k-th neighbour among the other x and among the y."""
    x, y = (rows[:, None] if rows.ndim == 1 else rows for rows in (p, q))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ShapeError(
            f"knn needs samples (n, d) and (m, d), got {tuple(p.shape)} and {tuple(q.shape)}"
        )
    n, m = len(x), len(y)
    if not 1 <= k <= min(n - 1, m):
        raise ValueError(f"k={k} neighbours need more rows than that, got {n} and {m}")

    def kth(rows: Tensor, k: int) -> Tensor:
        mode = "donot_use_mm_for_euclid_dist"
        blocks = x.split(max(1, _CELLS // len(rows)))
        found = [torch.cdist(b, rows, compute_mode=mode).kthvalue(k, -1).values for b in blocks]
        return torch.cat(found)

    rho, nu = kth(x, k + 1), kth(y, k)
    if not bool((rho.detach() > 0).all()):
        raise ValueError("p holds a row more than k times; knn is for continuous samples")
    return in_base(x.shape[1] * (nu.log() - rho.log()).mean() + math.log(m / (n - 1)), base)
