r"""What the settings of a sampler do: width, burn-in, thinning, and the bias of a step."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.energy import DensityEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import Chains, Langevin, Metropolis, expect, run_chains, sample
from groundstate.math.chains.diagnostics import autocorr, ess, mcse

F64 = torch.float64
WIDTHS = (0.25, 0.5, 1.0, 2.4, 5.0, 10.0)
MALA = {0.1: 0.99288, 0.5: 0.92083, 1.0: 0.78365}  # step size: mean acceptance
THIN = 10
# eighteen numbers are compared with their formulas: together they are outside of so many standard
# errors as rarely as one number is outside of three (Bonferroni)
FORMULAS = len(WIDTHS) + 3 * len(MALA) + 3
REACH = float(Normal(0.0, 1.0).icdf(torch.tensor(1 - 0.0027 / 2 / FORMULAS, dtype=F64)))


def gauss() -> DensityEnergy:
    """N(0, 1) as an energy."""
    return DensityEnergy(Normal(torch.zeros(1, dtype=F64), torch.ones(1, dtype=F64)))


@experiment("ENE-X-mcmc", theme="energy", title="Width, burn-in, thinning, step bias", slow=True)
def mcmc(seed: int = 0, *, quick: bool = False) -> Result:
    r"""On the target N(0, 1) the settings of a sampler have known effects.

    Random walk of width τ: acceptance :math:`\frac2\pi\arctan\frac2\tau`; too small a width crawls,
    too large a one stays, 2.4 gives most effective draws. Langevin with step η and without
    correction is an autoregression :math:`x' = (1-\eta)x + \sqrt{2\eta}\,\xi`: variance
    :math:`1/(1-\eta/2)` instead of 1 and correlation :math:`(1-\eta)^k` at distance k, so that
    keeping every k-th state thins it out; the correction removes the bias. Chains started far off
    must be given time to arrive before they are counted. Eighteen numbers are compared with their
    formulas, each within 3.8 standard errors: together they leave them as rarely as one leaves 3.
    """
    key = Key.of(seed)
    energy = gauss()
    C, steps = (500, 200) if quick else (2000, 400)
    exact = sample(energy, "x", n=C, generator=key.fold("start").torch())["x"][:, 0]
    claims: list[Claim] = []

    walks: dict[float, Chains] = {}
    rates, sizes = [], []
    for tau in WIDTHS:
        kernel = Metropolis(scale=tau, adapt=False).kernel(energy)
        own = key.fold("width", str(tau)).torch()
        walks[tau] = run_chains(kernel, {"x": exact}, steps, generator=own)
        rate = expect(None, walks[tau].accept)
        rates.append(float(rate.mean))
        sizes.append(float(ess(walks[tau].values["x"], "mean")) / (C * steps))
        formula = 2 / math.pi * math.atan(2 / tau)
        text = f"width {tau:g}: acceptance"
        claims.append(Claim.close(text, rates[-1], formula, tol=REACH * float(rate.stderr)))
    best = WIDTHS[max(range(len(WIDTHS)), key=sizes.__getitem__)]
    claims.append(Claim.equal("width with most effective draws", best, 2.4))

    variances: dict[str, list[float]] = {"unadjusted": [], "adjusted": []}
    for eta, stated in MALA.items():
        for adjusted in (False, True):
            kernel = Langevin(step_size=eta, adjusted=adjusted).kernel(energy)
            own = key.fold("langevin", str(eta), int(adjusted)).torch()
            done = run_chains(kernel, {"x": exact}, 100 + steps, burn_in=100, thin=2, generator=own)
            square = done.values["x"].square()
            found, error = float(square.mean()), REACH * float(mcse(square))
            name = "adjusted" if adjusted else "unadjusted"
            variances[name].append(found)
            truth = 1.0 if adjusted else 1 / (1 - eta / 2)
            claims.append(Claim.close(f"step {eta:g}, {name}: variance", found, truth, tol=error))
            if adjusted:
                rate = expect(None, done.accept)
                text = f"step {eta:g}, adjusted: acceptance"
                claims.append(
                    Claim.close(text, float(rate.mean), stated, tol=REACH * float(rate.stderr))
                )

    far, away = _burn_in(energy, key, claims)
    lags = _thinning(energy, key, exact, steps, claims)
    numbers = {
        "width": list(WIDTHS),
        "acceptance": rates,
        "effective share": sizes,
        "variance": variances,
        "start": away,
        "correlation": lags,
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 3)
        for ax, tau in zip(axes[0], (0.25, 2.4, 10.0)):
            ax.plot(walks[tau].values["x"][:300, 0, 0].numpy(), color=COLOURS[0], linewidth=0.8)
            ax.set(title=f"width {tau:g}: {rates[WIDTHS.index(tau)]:.0%} accepted", ylim=(-4, 4))
        for tau, colour in zip((0.25, 1.0, 2.4, 10.0), COLOURS):
            mean = autocorr(walks[tau].values["x"][:, :, 0]).mean(1)[:60]
            axes[1, 0].plot(mean.numpy(), color=colour, label=f"width {tau:g}")
        axes[1, 0].set(title="autocorrelation", xlabel="lag")
        axes[1, 0].legend()
        at = torch.linspace(0.02, 1.2, 60)
        axes[1, 1].plot(at, 1 / (1 - at / 2), color=COLOURS[5], label="1 / (1 − η/2)")
        for (name, values), colour in zip(variances.items(), COLOURS):
            axes[1, 1].plot(list(MALA), values, "o", color=colour, label=name)
        axes[1, 1].set(title="Langevin: variance", xlabel="step η")
        axes[1, 1].legend()
        axes[1, 2].plot(far[:200, :8].numpy(), color=COLOURS[0], linewidth=0.6, alpha=0.7)
        axes[1, 2].axvspan(0, 150, color=COLOURS[1], alpha=0.15)
        axes[1, 2].set(title="burn-in: started at 20", xlabel="step")

    return Result(claims, numbers, draw, size=(10.0, 5.6))


def _burn_in(energy: DensityEnergy, key: Key, claims: list[Claim]) -> tuple[Tensor, list[float]]:
    """Chains from x = 20: all states, and the mean with and without burn-in."""
    kernel = Metropolis(scale=1.0, adapt=False).kernel(energy)
    start = {"x": torch.full((200, 1), 20.0, dtype=F64)}
    done = run_chains(kernel, start, 1000, generator=key.fold("far").torch())
    x = done.values["x"][..., 0]  # (1000, 200)
    kept = x[150:]
    whole, rest, error = float(x.mean()), float(kept.mean()), REACH * float(mcse(kept))
    claims.append(Claim.above("started at 20, no burn-in: mean", whole, error))
    claims.append(Claim.close("started at 20, 150 steps forgotten: mean", rest, 0.0, tol=error))
    return x, [whole, rest]


def _thinning(
    energy: DensityEnergy, key: Key, exact: Tensor, steps: int, claims: list[Claim]
) -> dict[str, float]:
    """Correlation of neighbours among the kept states of unadjusted Langevin with η = .1."""
    eta, n_steps, burn_in = 0.1, 2 * steps + 105, 105
    variance = 1 / (1 - eta / 2)
    kernel = Langevin(step_size=eta, adjusted=False).kernel(energy)
    found = {}
    for thin in (1, THIN):
        own = key.fold("thin", thin).torch()
        done = run_chains(kernel, {"x": exact}, n_steps, burn_in=burn_in, thin=thin, generator=own)
        x = done.values["x"]
        products = x[:-1] * x[1:] / variance
        rho, error = float(products.mean()), REACH * float(mcse(products))
        found[f"every {thin}"] = rho
        text = f"correlation of neighbours, every {thin}. state kept"
        claims.append(Claim.close(text, rho, (1 - eta) ** thin, tol=error))
        claims.append(
            Claim.equal(
                f"states kept of {n_steps}, thin={thin}", len(x), (n_steps - burn_in) // thin
            )
        )
    return found
