r"""EM climbs a staircase that touches the likelihood, and where it ends depends on the start."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs, scatter
from groundstate.infer import posterior
from groundstate.learn import EM, NLL, History, elbo, fit

CENTRES = [[-6.0, -2.0], [-5.0, 3.0], [0.0, 5.0], [5.0, 3.0], [5.5, -3.0]]
APART = 1e-3  # optima with log-likelihoods closer than this count as one


@experiment("ENE-X-em", theme="energy", title="EM is monotone, touches log-lik, finds local optima")
def em(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Each half of EM raises the bound
    :math:`J(q, \theta) = \sum_i E_{q_i}[\log p(x_i, z)] + H(q_i)`: the M-step over θ, the E-step over
    q, after which the bound touches the likelihood:

    .. math:: \log p(\theta_{t+1}) = J(q_{t+1}, \theta_{t+1}) \ge J(q_t, \theta_{t+1})
              \ge J(q_t, \theta_t) = \log p(\theta_t).

    Five clusters, five unit Gaussians, centroids started at random rows: nothing ever falls, and
    different starts end at different optima.
    """
    key = Key.of(seed)
    small = _worked_example()
    x, _ = blobs(key.fold("data"), CENTRES, 1.0, 500)
    histories: list[History] = []
    ends: list[Tensor] = []
    touch = slope = 0.0
    for i in range(8 if quick else 20):
        energy = CentroidEnergy(5, 2).double()
        rows = torch.randperm(len(x), generator=key.fold("start", i).torch())[:5]
        energy.mu.data.copy_(x[rows])
        solver = EM(max_iter=5000, tol=1e-12, audit=True)
        histories.append(fit(energy, {"x": x}, NLL(), solver, random_state=0))
        with torch.no_grad():
            gap = elbo(energy, posterior(energy, "z", {"x": x}), {"x": x}).gap
        assert gap is not None
        touch = max(touch, float(gap.abs().max()))
        loss = NLL()(energy, {"x": x}).loss.mean()
        slope = max(slope, float(torch.autograd.grad(loss, energy.mu)[0].abs().max()))
        ends.append(energy.mu.detach().clone())

    fall = max(_worst_fall(h) for h in histories)
    final = torch.tensor([h.extra["log_likelihood"][-1] for h in histories], dtype=torch.float64)
    ordered = final.sort(descending=True).values
    optima = 1 + int(((ordered[:-1] - ordered[1:]) > APART).sum())
    claims = [
        Claim.close("four points: log p at the start", small[0][0], -2.168465, tol=1e-6),
        Claim.close("four points: bound after the M-step", small[1][0], -1.954753, tol=1e-6),
        Claim.close("four points: log p after the E-step", small[0][1], -1.909317, tol=1e-6),
        Claim.at_most("largest fall of the bound over all half steps", fall, 1e-10),
        Claim.at_most("largest |bound − log-likelihood| after an E-step", touch, 1e-10),
        Claim.at_least("distinct optima", optima, 2),
        Claim.at_most("largest gradient of the mean log-likelihood at the ends", slope, 1e-5),
    ]
    numbers = {"optima": optima, "final": final.tolist(), "fall": fall, "slope": slope}

    def draw(figure: Figure) -> None:
        stairs, runs, plane = figure.subplots(1, 3)
        worst = int(final.argmin())
        low, between = small
        stairs.plot(low, "o", color=COLOURS[0], label="log p = bound after E")
        for t, b in enumerate(between):
            path = [low[t], b, low[t + 1]]
            stairs.plot([t, t + 0.5, t + 1], path, color=COLOURS[5], linewidth=1, zorder=0)
            stairs.plot(t + 0.5, b, "s", color=COLOURS[1], label="" if t else "bound after M")
        stairs.set(title="the staircase on four points", xlabel="iteration", xticks=range(4))
        stairs.legend(loc="lower right")
        for h in histories:
            runs.plot(h.extra["log_likelihood"], color=COLOURS[0], alpha=0.4, linewidth=1)
        runs.set(
            title=f"{len(histories)} starts, {optima} optima", xlabel="iteration", xscale="symlog"
        )
        scatter(plane, x, torch.full((len(x),), 5))
        for i, colour, label in ((int(final.argmax()), 2, "best"), (worst, 4, "worst")):
            mu = ends[i].numpy()
            plane.plot(mu[:, 0], mu[:, 1], "X", color=COLOURS[colour], markersize=9, label=label)
        plane.set_title("where the centroids end")
        plane.legend()

    return Result(claims, numbers, draw, size=(10.0, 3.6))


def _worked_example() -> tuple[list[float], list[float]]:
    """Log-likelihoods and bounds between them on {−2, −1, 1, 3}, from centroids (−1, 1)."""
    energy = CentroidEnergy(2, 1).double()
    energy.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    x = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=torch.float64)
    history = fit(energy, {"x": x}, NLL(), EM(max_iter=3, tol=None, audit=True))
    return history.extra["log_likelihood"], history.extra["bound"]


def _worst_fall(history: History) -> float:
    likelihood = torch.tensor(history.extra["log_likelihood"], dtype=torch.float64)
    between = torch.tensor(history.extra["bound"], dtype=torch.float64)
    m_step, e_step = likelihood[:-1] - between, between - likelihood[1:]
    return float(torch.maximum(m_step, e_step).max())
