r"""How far chains can be trusted: autocorrelation, effective sample size, R̂, standard errors.

Input everywhere: draws ``(n, C, *event)``, the draw first and the chain second, as ``run_chains``
keeps them; results ``(*event)`` in float64. Rank-normalised and split as in Vehtari, Gelman,
Simpson, Carpenter and Bürkner (2021).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import ShapeError

Array = NDArray[np.float64]
Kind = Literal["bulk", "tail", "mean"]


def autocorr(draws: Tensor) -> Tensor:
    r"""Autocorrelation at every lag by FFT, ``(n, *rest)``; lag 0 is 1.

    >>> x = torch.tensor([1.0, -1.0] * 50)
    >>> [round(float(r), 2) for r in autocorr(x)[:3]]
    [1.0, -0.99, 0.98]
    """
    x = _array(draws, chains=False)
    cov = _autocov(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        return torch.from_numpy(cov / cov[:1])


def ess(draws: Tensor, kind: Kind = "bulk") -> Tensor:
    r"""Effective sample size :math:`nC/\tau`, with τ the integrated autocorrelation time.

    Parameters
    ----------
    draws : ``(n, C, *event)``
    kind : "bulk" ranks the draws first, so that it exists for any distribution; "tail" is the smaller of
        those of the 5 % and 95 % quantiles; "mean" is that of the mean itself

    Returns
    -------
    ``(*event)``; NaN when there are fewer than four draws or a draw is not finite

    Examples
    --------
    >>> x = torch.randn(1000, 4, generator=torch.Generator().manual_seed(0))
    >>> 3500 < float(ess(x)) < 4600
    True
    """
    x = _array(draws)
    if kind == "bulk":
        return _out(_ess(_rank(_split(x))), x)
    if kind == "mean":
        return _out(_ess(_split(x)), x)
    if kind == "tail":
        return _out(np.minimum(_ess_quantile(x, 0.05), _ess_quantile(x, 0.95)), x)
    raise ValueError(f"kind must be 'bulk', 'tail' or 'mean', got {kind!r}")


def rhat(draws: Tensor) -> Tensor:
    r"""Rank-normalised split :math:`\hat R`: 1 when the chains agree; above 1.01 run longer.

    The larger of the values for the ranks and for the ranks of the distance from the median.
    NaN with fewer than two chains.

    >>> x = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    >>> bool(rhat(x) < 1.01), bool(rhat(x + torch.tensor([0.0, 0.0, 0.0, 3.0])) > 1.2)
    (True, True)
    """
    x = _array(draws)
    if x.shape[1] < 2:
        return torch.full(x.shape[2:], torch.nan, dtype=torch.float64)
    halves = _split(x)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return _out(np.maximum(_rhat(_rank(halves)), _rhat(_rank(folded))), x)


def mcse(draws: Tensor, of: Literal["mean", "sd"] = "mean") -> Tensor:
    """Monte Carlo standard error of the mean or of the standard deviation, ``(*event)``."""
    x = _array(draws)
    if of == "mean":
        return _out(x.std((0, 1), ddof=1) / np.sqrt(_ess(_split(x))), x)
    if of == "sd":
        square = (x - x.mean((0, 1))) ** 2
        mean = square.mean((0, 1))
        spread = ((square**2).mean((0, 1)) - mean**2) / _ess(_split(square))
        return _out(np.sqrt(spread / mean / 4), x)
    raise ValueError(f"of must be 'mean' or 'sd', got {of!r}")


def _array(draws: Tensor, chains: bool = True) -> Array:
    x = draws.detach().cpu().to(torch.float64).numpy()
    if chains and x.ndim < 2:
        raise ShapeError(
            f"draws must be (n, C, ...): draws first, chains second, got {tuple(draws.shape)}; "
            "use draws[:, None] for one chain"
        )
    return x


def _out(value: Any, x: Array) -> Tensor:
    bad = ~np.isfinite(x).all(axis=(0, 1))
    value = np.where(bad | (x.shape[0] < 4), np.nan, value)
    return torch.from_numpy(np.asarray(value, dtype=np.float64))


def _split(x: Array) -> Array:
    """Halves of chains as chains, ``(n//2, 2C, *event)``."""
    half = x.shape[0] // 2
    return np.concatenate([x[:half], x[x.shape[0] - half :]], axis=1)


def _rank(x: Array) -> Array:
    """Normal scores of the ranks over all draws and chains."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    n, c = x.shape[:2]
    rank = rankdata(x.reshape(n * c, *x.shape[2:]), method="average", axis=0).reshape(x.shape)
    scores: Array = ndtri((rank - 0.375) / (n * c + 0.25))
    return scores


def _autocov(x: Array) -> Array:
    from scipy.fft import next_fast_len

    n = x.shape[0]
    size = next_fast_len(2 * n)
    spectrum = np.fft.rfft(x - x.mean(0), n=size, axis=0)
    power = spectrum * np.conjugate(spectrum)
    cov: Array = np.fft.irfft(power, n=size, axis=0)[:n] / n
    return cov


def _rhat(x: Array) -> Array:
    n = x.shape[0]
    between = n * x.mean(0).var(0, ddof=1)
    within = x.var(0, ddof=1).mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value: Array = np.sqrt((between / within + n - 1) / n)
    return value


def _ess(x: Array) -> Array:
    """Geyer's initial monotone positive sequence of pairs of autocorrelations."""
    n, c = x.shape[:2]
    if n < 4:
        return np.full(x.shape[2:], np.nan)
    cov = _autocov(x).mean(1)  # (n, *event)
    within = cov[0] * n / (n - 1)
    total = cov[0].copy()
    if c > 1:
        total += x.mean(0).var(0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within - cov) / total
    rho[0] = 1.0
    last = (n - 3) // 2  # index of the last pair that is looked at
    pairs = rho[: 2 * (last + 1)].reshape(last + 1, 2, *rho.shape[1:]).sum(1)  # (K, *event)
    ended = pairs <= 0
    ended[last] = True
    stop = ended.argmax(0)  # the first pair that is not positive
    before = np.arange(last + 1).reshape(-1, *(1,) * (pairs.ndim - 1)) < stop
    monotone = np.where(before, np.minimum.accumulate(pairs, axis=0), 0.0).sum(0)
    even = np.take_along_axis(rho, 2 * stop[None], axis=0)[0]
    final = np.take_along_axis(pairs, stop[None], axis=0)[0]
    tau = -1 + 2 * monotone + np.where((even > 0) | (final >= 0), even, 0.0)
    size = n * c
    result = size / np.maximum(tau, 1 / np.log10(size))
    constant = x.max((0, 1)) - x.min((0, 1)) < np.finfo(float).resolution
    out: Array = np.where(constant, float(size), result)
    return out


def _ess_quantile(x: Array, p: float) -> Array:
    n = x.shape[0] * x.shape[1]
    ordered = np.sort(x.reshape(n, *x.shape[2:]), axis=0)
    at = n * p + 1 - p  # the quantile of R's type 7
    k = int(np.floor(np.clip(at, 1, max(n - 1, 1))))
    part = np.clip(at - k, 0, 1)
    cut = (1 - part) * ordered[k - 1] + part * ordered[min(k, n - 1)]
    return _ess(_split((x <= cut).astype(np.float64)))
