"""Maximum likelihood in closed form, with Fisher's standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.errors import DataError
from groundstate.math.stats.cov import cov

Found = tuple[dict[str, Tensor], dict[str, Tensor]]  # parameters and their standard errors


def _mean(x: Tensor, w: Tensor) -> Tensor:
    return (w * x).sum() / w.sum()


def _check(ok: Tensor, needs: str, kind: str) -> None:
    if not bool(ok.all()):
        raise DataError(f"{kind} needs {needs}; some values of x are not")


def _bernoulli(x: Tensor, w: Tensor) -> Found:
    _check((x == 0) | (x == 1), "0 and 1", "Bernoulli")
    p = _mean(x, w)
    return {"probs": p}, {"probs": (p * (1 - p) / w.sum()).sqrt()}


def _categorical(x: Tensor, w: Tensor) -> Found:
    _check((x >= 0) & (x == x.round()), "labels 0, 1, ...", "Categorical")
    counts = torch.zeros(int(x.max()) + 1, dtype=w.dtype, device=w.device)
    p = counts.index_add(0, x.long(), w) / w.sum()
    return {"probs": p}, {"probs": (p * (1 - p) / w.sum()).sqrt()}


def _poisson(x: Tensor, w: Tensor) -> Found:
    _check((x >= 0) & (x == x.round()), "counts", "Poisson")
    rate = _mean(x, w)
    return {"rate": rate}, {"rate": (rate / w.sum()).sqrt()}


def _exponential(x: Tensor, w: Tensor) -> Found:
    _check(x >= 0, "numbers of at least 0", "Exponential")
    mean = _mean(x, w)
    _check(mean > 0, "a mean above 0", "Exponential")
    return {"rate": 1 / mean}, {"rate": 1 / mean / w.sum().sqrt()}


def _normal(x: Tensor, w: Tensor) -> Found:
    mean = _mean(x, w)
    scale = _mean((x - mean).square(), w).sqrt()
    _check(scale > 0, "at least two different values", "Normal")
    root = w.sum().sqrt()
    return {"loc": mean, "scale": scale}, {
        "loc": scale / root,
        "scale": scale / root / math.sqrt(2),
    }


def _laplace(x: Tensor, w: Tensor) -> Found:
    ordered, index = x.sort()
    total = w[index].cumsum(0)
    half = 0.5 * total[-1]
    low = int(torch.searchsorted(total, half))
    # with equal weight on both sides every point between is a median; take the middle
    tie = bool((total[low] - half).abs() <= 1e-12 * half) and low + 1 < len(x)
    median = 0.5 * (ordered[low] + ordered[low + 1]) if tie else ordered[low]
    scale = _mean((x - median).abs(), w)
    _check(scale > 0, "at least two different values", "Laplace")
    error = scale / w.sum().sqrt()
    return {"loc": median, "scale": scale}, {"loc": error, "scale": error}


def _multivariate_normal(x: Tensor, w: Tensor) -> Found:
    _check(torch.tensor(x.ndim == 2 and len(x) > x.shape[-1]), "more rows (n, d) than columns",
           "MultivariateNormal")  # fmt: skip
    total = w.sum()
    mean = (w @ x) / total
    S = cov(x, 0, w)
    v = S.diagonal()
    spread = ((torch.outer(v, v) + S.square()) / total).sqrt()
    return (
        {"loc": mean, "covariance_matrix": S},
        {"loc": (v / total).sqrt(), "covariance_matrix": spread},
    )


CLOSED: Mapping[type[Distribution], Callable[[Tensor, Tensor], Found]] = {
    D.Bernoulli: _bernoulli,
    D.Categorical: _categorical,
    D.Poisson: _poisson,
    D.Exponential: _exponential,
    D.Normal: _normal,
    D.Laplace: _laplace,
    D.MultivariateNormal: _multivariate_normal,
}
