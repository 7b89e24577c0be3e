"""Where the search for a maximum of the likelihood begins: moments and quantiles of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution, biject_to

from groundstate.math.distributions.parameters import parameters_of
from groundstate.math.stats.cov import cov


def start(
    kind: type[Distribution], x: Tensor, w: Tensor, names: Sequence[str], init: Mapping[str, Any]
) -> dict[str, Any]:
    """Starting values of the parameters ``names``; what is in ``init`` is taken from there."""
    unknown = [name for name in init if name not in names]
    if unknown:
        raise ValueError(
            f"init names {unknown}, which are not among the free parameters {list(names)}"
        )
    guess = {} if all(name in init for name in names) else _guess(kind, x, w)
    out = {}
    for name in names:
        constraint = kind.arg_constraints[name]  # type: ignore[index]
        if name in init:
            out[name] = init[name]
        elif name in guess:
            out[name] = guess[name]
        else:
            size = x.shape[1:] if getattr(constraint, "event_dim", 0) else torch.Size()
            out[name] = biject_to(constraint)(torch.zeros(size, dtype=x.dtype, device=x.device))
        value = torch.as_tensor(out[name], dtype=x.dtype, device=x.device)
        if not bool(constraint.check(value).all()):
            raise ValueError(f"{name} cannot start at {out[name]}; it must satisfy {constraint}")
    return out


def _guess(kind: type[Distribution], x: Tensor, w: Tensor) -> dict[str, Any]:
    mean = (w.reshape(-1, *[1] * (x.ndim - 1)) * x).sum(0) / w.sum()
    if x.ndim > 1:
        eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        spread = cov(x, 0, w) if len(x) > 1 else eye
        return {"loc": mean, "covariance_matrix": spread + 1e-6 * spread.diagonal().mean() * eye}
    variance = (w * (x - mean).square()).sum() / w.sum()
    variance = variance.clamp(min=torch.finfo(x.dtype).tiny).clamp(min=1e-12 * float(mean) ** 2)
    own = getattr(kind, "fit", None)
    if own is not None and len(x) >= 5:  # the class knows a quick consistent estimate
        return {k: _inside(kind, k, v) for k, v in parameters_of(own(x)).items()}
    q = x.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=x.dtype, device=x.device))
    scale = ((q[2] - q[0]) / 1.35).clamp(min=1e-3 * float(variance.sqrt()))
    size = mean.abs().clamp(min=1e-6 * float(variance.sqrt()))
    guess: dict[str, Any] = {
        "loc": q[1], "scale": scale, "df": 5.0, "rate": 1 / size, "concentration": 1.0,
    }  # fmt: skip
    if issubclass(kind, D.Gamma):
        guess |= {"concentration": size**2 / variance, "rate": size / variance}
    elif issubclass(kind, D.InverseGamma):
        shape = 2 + size**2 / variance
        guess |= {"concentration": shape, "rate": size * (shape - 1)}
    elif issubclass(kind, D.Beta):
        m = mean.clamp(1e-3, 1 - 1e-3)
        total = (m * (1 - m) / variance - 1).clamp(min=0.1)
        guess |= {"concentration1": m * total, "concentration0": (1 - m) * total}
    elif issubclass(kind, D.LogNormal):
        logs = x.log()
        guess |= {"loc": logs.mean(), "scale": logs.std().clamp(min=1e-3)}
    elif issubclass(kind, D.NegativeBinomial):
        r = (mean**2 / (variance - mean).clamp(min=0.05 * size)).clamp(1e-2, 1e4)
        guess |= {"total_count": r, "probs": (mean / (mean + r)).clamp(1e-3, 1 - 1e-3)}
    elif issubclass(kind, D.Weibull):
        guess |= {"scale": size, "concentration": size / variance.sqrt()}
    elif issubclass(kind, D.Gumbel):
        guess |= {"scale": (variance * 0.6).sqrt(), "loc": mean - 0.45 * variance.sqrt()}
    elif issubclass(kind, D.VonMises):
        c, s = (w * x.cos()).sum() / w.sum(), (w * x.sin()).sum() / w.sum()
        r = (c.square() + s.square()).sqrt().clamp(max=0.99)
        guess |= {"loc": torch.atan2(s, c), "concentration": r * (2 - r**2) / (1 - r**2) + 1e-3}
    elif issubclass(kind, D.Geometric):
        guess |= {"probs": 1 / (1 + mean)}
    return guess


def _inside(kind: type[Distribution], name: str, value: Tensor) -> Tensor:
    """A little inside the support, where the way to unconstrained numbers is finite."""
    constraint: Any = kind.arg_constraints[name]  # type: ignore[index]
    low, high = getattr(constraint, "lower_bound", None), getattr(constraint, "upper_bound", None)
    if low is None or high is None:
        return value
    margin = 0.01 * (high - low)
    return value.clamp(low + margin, high - margin)
