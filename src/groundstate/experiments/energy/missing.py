r"""Filling in what is missing is inference of what was not observed."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from groundstate.compute.random import Key
from groundstate.energy import DensityEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import Gradient, impute, minimise, posterior
from groundstate.math.distributions.operations import draw

F64 = torch.float64
HIDDEN = 0.3


@experiment("ENE-X-missing", theme="energy", title="Imputation is inference")
def missing(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Hide 30 % of the entries of Gaussian rows and free them in
    :math:`e(x) = \tfrac12(x-\mu)^\top\Sigma^{-1}(x-\mu)`.

    Minimising over the hidden part gives its conditional mean,
    :math:`\mu_h + \Sigma_{ho}\Sigma_{oo}^{-1}(x_o - \mu_o)`. The most probable completion is no
    typical one: it leaves out the conditional variance
    :math:`\Sigma_{hh} - \Sigma_{ho}\Sigma_{oo}^{-1}\Sigma_{oh}`, so the filled table is too narrow;
    a table filled with column means is narrower still, by the share that was hidden. Draws from the
    conditional distribution restore the variance. For Σ = [[2, 1], [1, 2]] and x₁ = 1: x₂ = ½ ±
    √1.5.
    """
    key = Key.of(seed)
    mean, cov = _gaussian(key.fold("distribution"))
    distribution = MultivariateNormal(mean, cov)
    energy = DensityEnergy(distribution)
    n = 4000 if quick else 20_000
    x = draw(distribution, n, key.fold("rows").torch())  # (n, d)
    hidden = torch.rand(x.shape, generator=key.fold("hidden").torch()) < HIDDEN
    holes = torch.where(hidden, torch.nan, x)

    exact = _conditional_mean(mean, cov, x, hidden)
    best = impute(energy, holes, "minimise")
    few = slice(0, 500)
    descended = impute(
        energy, holes[few], "minimise", method=Gradient(tol=1e-9, max_iter=500),
        generator=key.fold("start").torch(),
    )  # fmt: skip
    sampled = impute(energy, holes, "sample", generator=key.fold("draws").torch())
    column = torch.nanmean(holes, 0)
    flat = torch.where(hidden, column, x)
    filled = {"column means": flat, "minimise": best, "sample": sampled}
    ratio = {name: float((v.var(0) / x.var(0)).mean()) for name, v in filled.items()}
    coupled = {name: _coupling(v) / _coupling(x) for name, v in filled.items()}
    error = {
        name: float((v - x)[hidden].square().mean() / (flat - x)[hidden].square().mean())
        for name, v in filled.items()
    }
    untouched = max(float((v - x)[~hidden].abs().max()) for v in filled.values())

    small = DensityEnergy(
        MultivariateNormal(torch.zeros(2, dtype=F64), torch.tensor([[2.0, 1], [1, 2]], dtype=F64))
    )
    mask, known = torch.tensor([[False, True]]), torch.tensor([[1.0, 0.0]], dtype=F64)
    spread = posterior(small, {"x": mask}, {"x": known}).variance[0, 1]
    x_2 = minimise(small, {"x": mask}, {"x": known})["x"][0, 1]

    claims = [
        Claim.at_most("minimise: distance from the conditional mean",
                      float((best - exact).abs().max()), 1e-6),
        Claim.at_most("the same by descent of e alone",
                      float((descended - exact[few]).abs().max()), 1e-6),
        Claim.close("Σ = [[2, 1], [1, 2]], x₁ = 1: x₂", float(x_2), 0.5, tol=1e-6),
        Claim.close("Σ = [[2, 1], [1, 2]], x₁ = 1: variance of x₂", float(spread), 1.5, tol=1e-6),
        Claim.close("draws: variance of the filled table, relative to the whole",
                    ratio["sample"], 1.0, tol=0.02),
        Claim.below("minimise: variance of the filled table, relative", ratio["minimise"], 0.95),
        Claim.close("column means: variance of the filled table, relative",
                    ratio["column means"], 1 - HIDDEN, tol=0.02),
        Claim.close("draws: covariance between columns, relative", coupled["sample"], 1, tol=0.03),
        Claim.below("column means: covariance between columns, relative",
                    coupled["column means"], 0.6),
        Claim.below("minimise: squared error relative to column means", error["minimise"], 0.9),
        Claim.equal("largest change of an observed entry", untouched, 0.0),
    ]  # fmt: skip
    numbers = {"variance": ratio, "covariance": coupled, "squared error": error}

    def draw_all(figure: Figure) -> None:
        axes = figure.subplots(1, 4, sharex=True, sharey=True)
        rows = slice(0, 700)
        whole = ~hidden[rows, :2].any(1)
        for ax, (name, v) in zip(axes, {"the whole table": x, **filled}.items()):
            at = v[rows, :2].numpy()
            for own, colour in ((whole, COLOURS[5]), (~whole, COLOURS[1])):
                ax.scatter(at[own, 0], at[own, 1], s=5, color=colour, alpha=0.6, linewidth=0)
            note = (
                f"\nvariance × {ratio[name]:.2f}" if name in ratio else "\norange: will be hidden"
            )
            ax.set(title=name + note, xlabel="x₁")
        axes[0].set_ylabel("x₂")

    return Result(claims, numbers, draw_all, size=(11.0, 3.3))


def _gaussian(key: Key) -> tuple[Tensor, Tensor]:
    """A mean and a covariance in four dimensions whose neighbours correlate with .7."""
    lag = torch.arange(4, dtype=F64)
    correlation = 0.7 ** (lag[:, None] - lag).abs()
    scale = torch.tensor([1.0, 1.5, 0.7, 2.0], dtype=F64)
    mean = torch.randn(4, generator=key.torch(), dtype=F64)
    return mean, scale[:, None] * correlation * scale


def _conditional_mean(mean: Tensor, cov: Tensor, x: Tensor, hidden: Tensor) -> Tensor:
    """The textbook formula, one pattern of holes after the other."""
    filled = x.clone()
    for pattern in torch.unique(hidden, dim=0):
        h, o = pattern.nonzero()[:, 0], (~pattern).nonzero()[:, 0]
        rows = (hidden == pattern).all(1).nonzero()[:, 0]
        gain = torch.linalg.solve(cov[o][:, o], cov[o][:, h])  # (o, h)
        filled[rows[:, None], h] = mean[h] + (x[rows][:, o] - mean[o]) @ gain
    return filled


def _coupling(x: Tensor) -> float:
    """Mean covariance between different columns."""
    cov = torch.cov(x.T)
    return float((cov.sum() - cov.trace()) / (cov.numel() - len(cov)))
