r"""How well the proposal fits decides how well importance sampling works."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.energy.iw import normal, normal_normal
from groundstate.infer import Importance, log_likelihood, marginalise, posterior

F64 = torch.float64
SIZES = (10, 30, 100, 300, 1000, 3000, 10000)


@experiment("ENE-X-importance", theme="energy", title="Proposal quality decides", slow=True)
def importance(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Standard deviation of :math:`\hat p(x) = \frac1M\sum_m p(x, z_m)/q(z_m)` for
    :math:`z \sim N(0,1)`, :math:`x \mid z \sim N(z,1)`, x = 2, against the number of draws M.

    With finite weight variance V it is :math:`\sqrt{V/M}`, slope −½ on log-log axes; the prior has
    V = .0134518, :math:`q = N(1,1)` V = .00166607, and the posterior N(1, ½) V = 0. A proposal
    narrower than N(1, ¼) has infinite V: :math:`N(1, .05)` has tail index
    :math:`k = 1 - 2\cdot.05 = .9`; its errors come in rare jumps, and the tail index of the weights
    tells, where the draws alone look fine.
    """
    key = Key.of(seed)
    energy, x = normal_normal(), torch.full((1, 1), 2.0, dtype=F64)
    with torch.no_grad():
        best = posterior(energy, "z", {"x": x})
    exact = Normal(best.mean[0], best.variance[0].sqrt())
    proposals = {
        "prior": normal(0, 1),
        "N(1, 1)": normal(1, 1),
        "posterior": exact,
        "N(1, .05)": normal(1, 0.05),
    }
    repeats = 150 if quick else 300
    rows = x.expand(repeats, 1)
    spread: dict[str, list[float]] = {}
    scatter: dict[str, float] = {}
    slope: dict[str, float] = {}
    k_hat: dict[str, float] = {}
    ess: dict[str, float] = {}
    warned: dict[str, bool] = {}
    for name, q in proposals.items():
        own = key.fold(name).torch()
        with torch.no_grad():
            spread[name] = [
                float(log_likelihood(energy, rows, q, n, generator=own).exp().std()) for n in SIZES
            ]
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                method = Importance(q, n=400_000)
                found = marginalise(energy, "z", {"x": x}, method=method, generator=own)
        k_hat[name], ess[name] = float(found.info["pareto_k"]), float(found.info["ess"]) / 400_000
        warned[name] = any(issubclass(w.category, Unreliable) for w in heard)
        if name != "posterior":
            slope[name], scatter[name] = _line(spread[name])

    narrow = "N(1, .05)"
    claims = [
        Claim.close(f"{name}: slope of log std against log M", slope[name], -0.5, tol=0.05)
        for name in ("prior", "N(1, 1)")
    ]
    claims += [
        Claim.at_most("posterior: largest std", max(spread["posterior"]), 1e-12),
        Claim.above("N(1, .05): Pareto tail index of the weights", k_hat[narrow], 0.7),
        Claim.below("N(1, 1): Pareto tail index of the weights", k_hat["N(1, 1)"], 0.7),
        Claim.above(
            "N(1, .05) is erratic: scatter of log std about its line, against the prior's",
            scatter[narrow] / scatter["prior"],
            3.0,
        ),
        Claim.equal(
            "who is warned about",
            [name for name, was_warned in warned.items() if was_warned],
            [narrow],
        ),
    ]
    numbers = {
        "M": list(SIZES),
        "std": spread,
        "slope": slope,
        "scatter": scatter,
        "pareto k": {n: k for n, k in k_hat.items() if math.isfinite(k)},
        "ess": ess,
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        for (name, stds), colour in zip(spread.items(), COLOURS):
            if name == "posterior":
                continue
            label = f"{name}: slope {slope[name]:.2f}"
            left.loglog(SIZES, stds, "o-", color=colour, label=label)
        for variance in (0.0134518, 0.00166607):
            theory = [math.sqrt(variance / n) for n in SIZES]
            left.loglog(SIZES, theory, color="black", linestyle=":", linewidth=1)
        left.set(xlabel="draws M", title="standard deviation of the estimate of p(x)")
        left.plot([], [], color=COLOURS[2], label="posterior: 0")
        left.legend()
        z = torch.linspace(-4.5, 3.5, 400, dtype=F64)
        for (name, q), colour in zip(proposals.items(), COLOURS):
            k = k_hat[name]
            label = f"{name}: k = {k:.2f}" if math.isfinite(k) else f"{name}: equal weights"
            right.plot(z.numpy(), q.log_prob(z).exp().numpy(), color=colour, label=label)
        right.set(title="proposals and tail index", xlabel="z", xlim=(-4.5, 3.5))
        right.legend(loc="upper left")

    return Result(claims, numbers, draw)


def _line(stds: list[float]) -> tuple[float, float]:
    """Slope of log std against log M, and the scatter about the line."""
    at, values = np.log(SIZES), np.log(stds)
    slope, offset = np.polyfit(at, values, 1)
    return float(slope), float(np.std(values - slope * at - offset, ddof=2))
