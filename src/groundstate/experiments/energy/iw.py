r"""The importance-weighted bound tightens with the number of draws."""

from __future__ import annotations

import math

import torch
from torch.distributions import Independent, Normal

from groundstate.compute.random import Key
from groundstate.energy import DirectedEnergy, LinearNormal
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import log_likelihood, log_partition
from groundstate.learn import elbo

F64 = torch.float64
STATED = {1: -2.4189, 5: -2.284, 50: -2.2666, 500: -2.2656}
TRUTH = -2.265512


def normal(mean: float, variance: float) -> Normal:
    """A distribution on a line, as a proposal for all rows."""
    return Normal(
        torch.full((1,), mean, dtype=F64), torch.full((1,), math.sqrt(variance), dtype=F64)
    )


def normal_normal() -> DirectedEnergy:
    """z ~ N(0, 1), x ~ N(z, 1): p(x=2) = .103777, posterior N(1, ½)."""
    return DirectedEnergy(normal(0, 1), LinearNormal(torch.ones(1, 1, dtype=F64)))


@experiment("ENE-X-iw", theme="energy", title="Bound tightens with n", slow=True)
def iw(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The mean of n importance weights is unbiased for p(x), so its logarithm is biased down:

    .. math:: L_n = E\log\frac1n\sum_{m=1}^n\frac{p(x, z_m)}{q(z_m)} \le L_{n+1} \le \log p(x),
              \qquad z_m \sim q.

    :math:`L_1` is the ELBO and :math:`L_n \to \log p(x)`. Here :math:`z \sim N(0,1)`,
    :math:`x \mid z \sim N(z,1)`, x = 2 and :math:`q = N(1,1)`.
    """
    key = Key.of(seed)
    energy, q = normal_normal(), normal(1.0, 1.0)
    one = torch.full((1, 1), 2.0, dtype=F64)
    sizes = [1, 5, 50, 500] if quick else [1, 2, 5, 10, 20, 50, 100, 200, 500]
    means, errors = [], []
    with torch.no_grad():
        for n in sizes:
            rows = max(5000, 1_000_000 // n)
            own = key.fold("draws", n).torch()
            found = torch.cat(
                [
                    log_likelihood(energy, one.expand(part, 1), q, n, generator=own)
                    for part in _parts(rows, 1_000_000 // n)
                ]
            )
            means.append(float(found.mean()))
            errors.append(float(found.std()) / math.sqrt(rows))
        truth = float(log_partition(energy, "z", {"x": one}))
        distribution = Independent(Normal(q.loc[None], q.scale[None]), 1)
        bound = float(elbo(energy, distribution, {"x": one}).value)

    at = dict(zip(sizes, means))
    claims = [
        Claim.close(f"importance-weighted bound, n = {n}", at[n], value, tol=0.003)
        for n, value in STATED.items()
    ]
    claims.append(Claim.close("log p(x)", truth, TRUTH, tol=1e-6))
    claims.append(Claim.close("n = 1 is the ELBO", at[1], bound, tol=0.003))
    numbers = {"n": sizes, "bound": means, "stderr": errors, "elbo": bound, "log p": truth}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.errorbar(
            sizes, means, [3 * e for e in errors], color=COLOURS[0], marker="o", capsize=2
        )
        left.axhline(truth, color="black", linestyle="--", linewidth=1, label="log p(x)")
        left.axhline(bound, color=COLOURS[1], linestyle=":", label="ELBO")
        left.set(xscale="log", xlabel="draws n", title="importance-weighted bound")
        left.legend(loc="center right")
        gap = [max(truth - m, 1e-5) for m in means]
        right.loglog(sizes, gap, "o-", color=COLOURS[0], label="log p − bound")
        variance = 0.00166607 / math.exp(2 * TRUTH)
        delta = [variance / (2 * n) for n in sizes]
        right.loglog(sizes, delta, color=COLOURS[5], linestyle="--", label="Var(w) / (2 n p²)")
        right.set(xlabel="draws n", title="what is missing")
        right.legend()

    return Result(claims, numbers, draw)


def _parts(rows: int, most: int) -> list[int]:
    """``rows`` in pieces that fit into memory."""
    whole, rest = divmod(rows, most)
    return [most] * whole + [rest] * bool(rest)
