r"""Distribution functions of torch's distributions and their inverses, with gradients.

.. math:: F(x) = P(X \le x), \qquad F' = p, \qquad \partial_\theta F^{-1}(q) = -\partial_\theta F / p

torch has them for some; Student's t, gamma, beta, Fisher's F, Poisson, binomial, negative binomial and
geometric distributions are added here, and whatever has a ``cdf`` can be inverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.errors import Unsupported
from groundstate.math.arrays import takes_arrays
from groundstate.math.distributions.calculus.incomplete import FAR, Known, betainc, gammainc
from groundstate.math.distributions.calculus.tails import CDF, ICDF, LOG_SF, of_kind

CLOSE = 1e-9  # the last step squares it
COARSE = 12  # halvings before Newton's steps
HALVINGS = 90  # steps at most


@takes_arrays("x", finite=False)
def cdf(distribution: Distribution, x: Any) -> Any:
    """P(X ≤ x), differentiable in x (the density) and in the parameters.

    Parameters
    ----------
    distribution : any with ``cdf``, or StudentT, Gamma, Chi2, InverseGamma, Beta, FisherSnedecor,
        Bernoulli, Binomial, Poisson, Geometric, NegativeBinomial
    x : values that broadcast with the batch shape

    Examples
    --------
    >>> round(cdf(D.Poisson(torch.tensor(3.0).double()), 2.0), 6)
    0.42319
    """
    known = of_kind(_CDF, distribution)
    if known is not None:
        return known(distribution, x)
    low, high = ends(distribution)
    try:
        result: Tensor = distribution.cdf(x.clamp(low, high))
        return result
    except NotImplementedError:
        raise Unsupported(
            f"{type(distribution).__name__} has no distribution function here; estimate it from "
            "draws with distributions.Empirical"
        ) from None


@takes_arrays("q")
def icdf(distribution: Distribution, q: Any) -> Any:
    """The quantile function: the smallest x with P(X ≤ x) ≥ q, differentiable for continuous ones.

    Examples
    --------
    >>> round(icdf(D.StudentT(torch.tensor(9.0).double()), 0.975), 6)  # a row of the printed table
    2.262157
    """
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise ValueError(
            f"q are probabilities between 0 and 1, got {float(q.min())} to {float(q.max())}"
        )
    known = of_kind(ICDF, distribution)
    if known is not None:
        return known(distribution, q)
    if of_kind(_CDF, distribution) is None:
        try:
            result: Tensor = distribution.icdf(q)
            return result
        except NotImplementedError:
            pass
    return inverted(distribution, q)


@takes_arrays("a", "b", finite=False)
def prob(distribution: Distribution, a: Any, b: Any) -> Any:
    """P(a ≤ X ≤ b); a single point of a continuous distribution has none.

    Examples
    --------
    >>> lifetime = D.Uniform(torch.tensor(4.0).double(), torch.tensor(6.0).double())
    >>> round(prob(lifetime, 5.0, 5.01), 6), prob(lifetime, 5.0, 5.0)
    (0.005, 0.0)
    """
    if bool((a > b).any()):
        raise ValueError("prob(a, b) needs a ≤ b")
    if is_discrete(distribution):
        a = a.ceil() - 1
    below = cdf(distribution, a)
    plain = cdf(distribution, b) - below
    if not bool((below > 0.5).any()):
        return plain.clamp(min=0)
    upper = log_sf(distribution, a).exp() - log_sf(distribution, b).exp()
    return torch.where(below > 0.5, upper, plain).clamp(min=0)


@takes_arrays("x", finite=False)
def log_sf(distribution: Distribution, x: Any) -> Any:
    """log P(X > x), to full digits far out in the tail where a formula is known.

    Examples
    --------
    >>> round(log_sf(D.Normal(torch.tensor(0.0).double(), torch.tensor(1.0).double()), 30.0), 4)
    -454.3212
    """
    p: Any = distribution
    own = getattr(p, "log_sf", None)
    if own is not None:
        known: Tensor = own(x)
        return known
    formula = of_kind(LOG_SF, distribution)
    if formula is not None:
        return formula(distribution, x)
    if isinstance(p, D.StudentT):
        return cdf(D.StudentT(p.df, -p.loc, p.scale, validate_args=False), -x).log()
    return torch.log1p(-cdf(distribution, x))


def inverted(distribution: Distribution, q: Tensor) -> Tensor:
    """Quantiles by bisection of the distribution function; one Newton step carries the gradient."""
    p: Any = distribution
    shape = torch.broadcast_shapes(q.shape, distribution.batch_shape)
    q = q.expand(shape)
    if is_discrete(distribution):
        return _first_above(distribution, q.detach())
    low, high = ends(distribution)
    loc = getattr(p, "loc", torch.zeros(())) if math.isinf(low) else torch.as_tensor(low)
    scale = getattr(p, "scale", torch.ones(()))
    loc, scale = (torch.as_tensor(v).detach().to(q) for v in (loc, scale))

    def at(u: Tensor) -> Tensor:
        if math.isinf(low):
            return loc + scale * torch.sinh(u)
        return low + (scale * u.exp() if math.isinf(high) else (high - low) * torch.sigmoid(u))

    def back(x: Tensor) -> Tensor:
        if math.isinf(low):
            return torch.asinh((x - loc) / scale)
        y = (x - low) / (scale if math.isinf(high) else high - low)
        return y.log() if math.isinf(high) else y.log() - torch.log1p(-y)

    with torch.no_grad():
        coarse = COARSE if distribution.batch_shape else 0
        if coarse:
            a, b = torch.full_like(q, -FAR), torch.full_like(q, FAR)
        else:  # one look at many points serves every q
            grid = torch.linspace(-40, 40, 257, dtype=q.dtype, device=q.device)
            grid = torch.cat([grid.new_tensor([-FAR]), grid, grid.new_tensor([FAR])])
            place = torch.searchsorted(cdf(distribution, at(grid)).cummax(0)[0], q.contiguous())
            place = place.clamp(1, len(grid) - 1)
            a, b = grid[place - 1], grid[place]
        u = 0.5 * (a + b)
        tails = isinstance(p, D.StudentT) or of_kind(LOG_SF, distribution) is not None

        def above(x: Tensor) -> Tensor:
            """How far F(x) is above q; from the right where q is near 1 and F has no digits left."""
            plain = cdf(distribution, x) - q
            if not tails or not bool((q > 0.5).any()):
                return plain
            return torch.where(q > 0.5, (1 - q) - log_sf(distribution, x).exp(), plain)

        for step in range(HALVINGS):
            x = at(u)
            gap = above(x)
            done = gap.abs() <= CLOSE * torch.minimum(q, 1 - q)
            if bool(done.all()):
                break
            a, b = torch.where(gap < 0, u, a), torch.where(gap < 0, b, u)
            u = torch.where(done, u, 0.5 * (a + b))
            if step >= coarse:  # Newton's step, where it stays inside
                new = back(x - gap / distribution.log_prob(x).exp())
                inside = (new > a) & (new < b)
                u = torch.where(inside & ~done & (step % 4 != 3), new, u)
        x = at(u)
        density = distribution.log_prob(x).exp()
        usable = (density > 0) & torch.isfinite(density) & (q > 0) & (q < 1)
        gap = above(x)
    move = (
        cdf(distribution, x) - q
    )  # carries the gradient; its value has fewer digits than the gap's
    miss = (gap + (move - move.detach())) / torch.where(usable, density, 1.0)
    x = torch.where(usable, x - miss, x)
    return torch.where(q == 0, low, torch.where(q == 1, high, x))


def _first_above(distribution: Distribution, q: Tensor) -> Tensor:
    _, high = ends(distribution)
    with torch.no_grad():
        a = torch.full_like(q, -1.0)
        b = torch.full_like(q, 2.0**50 if math.isinf(high) else high)
        for _ in range(52):
            middle = ((a + b) / 2).floor()
            below = cdf(distribution, middle) < q
            a, b = torch.where(below, middle, a), torch.where(below, b, middle)
        return torch.where((q == 1) & math.isinf(high), math.inf, b)


def is_discrete(distribution: Distribution) -> bool:
    return bool(getattr(distribution.support, "is_discrete", False))


def ends(distribution: Distribution) -> tuple[float, float]:
    """The ends of the support."""
    support: Any = distribution.support
    low = getattr(support, "lower_bound", -math.inf)
    high = getattr(support, "upper_bound", math.inf)
    low, high = (v.min().item() if isinstance(v, Tensor) else v for v in (low, high))
    return float(low), float(high)


def _student(p: Any, x: Tensor) -> Tensor:
    z, df = torch.broadcast_tensors((x - p.loc) / p.scale, p.df)
    half = torch.full_like(df, 0.5)

    def twin(z: Tensor, df: Tensor) -> Tensor:
        # of the two forms the one whose argument is not near 1
        far = z.square() > df
        out = 0.5 * betainc(0.5 * df, half, df / (df + z.square()))
        within = 0.5 - 0.5 * betainc(half, 0.5 * df, z.square() / (df + z.square()))
        tail = torch.where(far, out, within)
        return torch.where(z > 0, 1 - tail, tail)

    def density(z: Tensor, df: Tensor) -> Tensor:
        return D.StudentT(df, validate_args=False).log_prob(z).exp()

    out: Tensor = Known.apply(twin, density, twin, z, df)
    return out


def _count(x: Tensor) -> Tensor:
    return x.detach().floor()


def _binomial(p: Any, x: Tensor) -> Tensor:
    k, n = _count(x), p.total_count
    inside = (k >= 0) & (k < n)
    safe = torch.where(inside, k, torch.zeros_like(k))
    value = betainc((n - safe).clamp(min=1), safe + 1, 1 - p.probs)
    return torch.where(inside, value, (k >= n).to(value.dtype))


def _counting(below: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """A distribution function of counts from its values at 0, 1, ..."""

    def of(p: Any, x: Tensor) -> Tensor:
        k = _count(x)
        return torch.where(k >= 0, below(p, k.clamp(min=0)), 0.0)

    return of


def _fisher(p: Any, x: Tensor) -> Tensor:
    y = p.df1 * x.clamp(min=0)
    return betainc(0.5 * p.df1, 0.5 * p.df2, y / (y + p.df2))


def _inverse_gamma(p: Any, x: Tensor) -> Tensor:
    safe = x.clamp(min=torch.finfo(x.dtype).tiny)
    return torch.where(x > 0, gammainc(p.concentration, p.rate / safe, upper=True), 0.0)


_CDF: dict[type[Distribution], Callable[[Any, Tensor], Tensor]] = {
    D.StudentT: _student,
    D.Gamma: lambda p, x: gammainc(p.concentration, p.rate * x.clamp(min=0)),
    D.InverseGamma: _inverse_gamma,
    D.Beta: lambda p, x: betainc(p.concentration1, p.concentration0, x.clamp(0, 1)),
    D.FisherSnedecor: _fisher,
    D.Bernoulli: _counting(lambda p, k: torch.where(k < 1, 1 - p.probs, 1.0)),
    D.Binomial: _binomial,
    D.Poisson: _counting(lambda p, k: torch.special.gammaincc(k + 1, p.rate.expand_as(k + p.rate))),
    D.Geometric: _counting(lambda p, k: 1 - (1 - p.probs) ** (k + 1)),
    D.NegativeBinomial: _counting(lambda p, k: betainc(p.total_count, k + 1, 1 - p.probs)),
    **CDF,
}
