r"""Gradients through the draws beat gradients of the log-distribution, and baselines help."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Categorical, Normal

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import EstimatorRow, compare_estimators

F64 = torch.float64
REPEATS = 5_000_000  # the fourth moment of z⁵ is large: with less its variance is not within 5 %
P, R = (0.5, 0.3, 0.2), (1.0, 2.0, 4.0)
BARE, MEAN, BEST, PATH = (
    "score function",
    "score function, mean",
    "score function, optimal",
    "pathwise",
)
STATED = {
    "rewards": {BARE: 3.8822, MEAN: 0.6408, BEST: 0.528387},
    "rewards + 100": {BARE: 6492.2822, MEAN: 0.6408, BEST: 0.528387},
    "normal": {BARE: 456.4371, PATH: 107.4436},
}


@experiment(
    "ENE-X-estimators",
    theme="energy",
    title="Pathwise beats score function; baselines help",
    slow=True,
)
def estimators(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Three unbiased estimators of :math:`\nabla_\varphi E_{q_\varphi}[f(z)]` from one draw, with
    very different variance:

    .. math:: f(z)\nabla\log q(z), \qquad (f(z) - b)\nabla\log q(z), \qquad
              \nabla_z f(z)\,\partial z/\partial\varphi.

    A finite distribution p = (.5, .3, .2) with rewards (1, 2, 4): adding 100 to all rewards changes
    nothing that matters, yet multiplies the variance of the bare estimator by 1700; a baseline
    removes it, and :math:`b^* = E[f\|s\|^2]/E\|s\|^2` removes a little more than the mean. A normal
    distribution N(.7, 1) with :math:`f = -\tfrac12(1 - z^2)^2`: following the draw is four times
    better.
    """
    key = Key.of(seed)
    reward = torch.tensor(R, dtype=F64)
    tables: dict[str, list[EstimatorRow]] = {}
    for name, extra in (("rewards", 0.0), ("rewards + 100", 100.0)):
        logits = torch.tensor(P, dtype=F64).log().requires_grad_()

        def gain(z: Tensor, extra: float = extra) -> Tensor:
            return reward[z] + extra

        q = Categorical(logits=logits)
        own = key.fold(name).torch()
        tables[name] = compare_estimators(
            gain, q, repeats=50_000 if quick else 200_000, generator=own
        )
    mu = torch.tensor(0.7, dtype=F64, requires_grad=True)
    distribution = Normal(mu, torch.tensor(1.0, dtype=F64))
    own = key.fold("normal").torch()
    tables["normal"] = compare_estimators(
        lambda z: -0.5 * (1 - z**2) ** 2, distribution, repeats=REPEATS, generator=own
    )

    claims, off = [], 0.0
    for name, rows in tables.items():
        found = {row.name: row for row in rows}
        for which, value in STATED[name].items():
            text = f"{name}: variance of {which}"
            claims.append(Claim.close(text, found[which].variance, value, tol=0.05 * value))
        for row in rows[1:]:
            gap = (row.mean - rows[0].mean).abs() / row.stderr
            off = max(off, float(gap.max()))
    claims.append(Claim.at_most("all means: distance from the exact gradient in stderr", off, 4.0))
    numbers = {name: {row.name: row.variance for row in rows} for name, rows in tables.items()} | {
        "distance": off
    }
    seconds = {name: {row.name: row.seconds for row in rows} for name, rows in tables.items()}

    def draw(figure: Figure) -> None:
        for ax, (name, rows) in zip(figure.subplots(1, 3), tables.items()):
            shown = rows[1:]
            labels = [row.name.replace("score function", "score") for row in shown]
            bars = ax.bar(labels, [row.variance for row in shown], color=COLOURS[: len(shown)])
            ax.bar_label(bars, [f"{row.variance:.3g}" for row in shown], fontsize=8)
            ax.set(yscale="log", title=name)
            ax.tick_params(axis="x", rotation=25)
        figure.suptitle("total variance of one gradient estimate")

    return Result(claims, numbers, draw, seconds, size=(10.0, 3.8))
