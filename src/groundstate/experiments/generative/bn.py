r"""Explaining away, and seeing against doing."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.generative.graphical.discrete_bayesian_network import (
    DiscreteBayesianNetwork,
)

RATES = (0.01, 0.1, 0.5)
ROWS = 20_000
OR = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
WET = [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]]


def alarm(p: float) -> DiscreteBayesianNetwork:
    """Burglary or earthquake, each of probability p, rings the alarm."""
    prior = [1 - p, p]
    return DiscreteBayesianNetwork.from_tables(
        [("burglary", "alarm"), ("quake", "alarm")],
        {"burglary": prior, "quake": prior, "alarm": OR},
    )


def fork() -> DiscreteBayesianNetwork:
    """A common cause of x and y."""
    noisy = [[0.9, 0.1], [0.1, 0.9]]
    return DiscreteBayesianNetwork.from_tables(
        [("z", "x"), ("z", "y")], {"z": [0.5, 0.5], "x": noisy, "y": noisy}
    )


def sprinkler() -> DiscreteBayesianNetwork:
    """Clouds bring rain and keep the sprinkler off; both wet the grass."""
    return DiscreteBayesianNetwork.from_tables(
        [("cloudy", "sprinkler"), ("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")],
        {
            "cloudy": [0.5, 0.5],
            "sprinkler": [[0.5, 0.5], [0.9, 0.1]],
            "rain": [[0.8, 0.2], [0.2, 0.8]],
            "wet": WET,
        },
    )


def correlation(p: Any) -> float:
    """Of two bits with joint probabilities ``(2, 2)``."""
    a, b = p[1].sum(), p[:, 1].sum()
    return float((p[1, 1] - a * b) / np.sqrt(a * (1 - a) * b * (1 - b)))


@experiment("GENX-bn", theme="generative", title="Explaining away; seeing is not doing")
def bayesian_networks(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two causes that know nothing of each other become rivals once their effect is seen: with
    :math:`z = x \lor y` and :math:`P(x) = P(y) = p`,
    :math:`\operatorname{corr}(x, y \mid z = 1) = -(1 - p)`. With a common cause,
    :math:`P(y \mid x = 1) \ne P(y \mid do(x = 1))`: seeing x tells of the cause, setting it does not.

    Exact by variable elimination, and from rows that the networks draw: tables learned by counting,
    and an intervention carried out in the simulation.
    """
    exact = [correlation(alarm(p).query(["burglary", "quake"], {"alarm": 1})) for p in RATES]
    prior = [correlation(alarm(p).query(["burglary", "quake"])) for p in RATES]
    drawn = []
    for p in RATES:
        rows = alarm(p).sample(ROWS, evidence={"alarm": 1}, random_state=seed)
        drawn.append(float(np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]))
    two, net = fork(), sprinkler()
    see, do = two.query("y", {"x": 1})[1], two.do(x=1).query("y")[1]
    rain_see, rain_do = net.query("rain", {"sprinkler": 1})[1], net.do(sprinkler=1).query("rain")[1]
    X = two.sample(ROWS, random_state=seed)
    seen = float(X[X[:, 1] == 1, 2].mean())
    done = float(two.do(x=1).sample(ROWS, random_state=seed)[:, 2].mean())
    learned = DiscreteBayesianNetwork([(0, 1), (0, 2)]).fit(X)
    again = float(learned.do({1: 1}).query(2)[1])
    wet = net.query("sprinkler", {"wet": 1})[1]
    both = net.query("sprinkler", {"wet": 1, "rain": 1})[1]
    claims = [
        *(
            Claim.close(f"corr of the causes given the alarm, p = {p}", c, -(1 - p), tol=1e-12)
            for p, c in zip(RATES, exact, strict=True)
        ),
        Claim.at_most("largest correlation before the alarm", max(map(abs, prior)), 1e-12),
        Claim.at_most(
            "the same from rows drawn given the alarm: largest error",
            max(abs(a - b) for a, b in zip(drawn, exact, strict=True)),
            0.03,
        ),
        Claim.close("P(y | x = 1) of the fork", see, 0.82, tol=1e-12),
        Claim.close("P(y | do(x = 1)) of the fork", do, 0.5, tol=1e-12),
        Claim.close("seen in rows", seen, 0.82, tol=0.02),
        Claim.close("done in rows", done, 0.5, tol=0.02),
        Claim.close(
            "done in the network learned from rows that were only seen", again, 0.5, tol=0.02
        ),
        Claim.close("rain when the sprinkler is seen on", rain_see, 0.3, tol=1e-12),
        Claim.close("rain when the sprinkler is set on", rain_do, 0.5, tol=1e-12),
        Claim.at_most(
            "sprinkler on, once rain explains the wet grass, against before", both / wet, 0.5
        ),
    ]
    numbers = {"correlation": exact, "drawn": drawn, "fork": [see, do], "rain": [rain_see, rain_do]}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 2)
        alarm(0.1).plot(axes[0, 0], evidence={"alarm": 1})
        axes[0, 0].set_title("an alarm rings (p = 0.1)")
        alarm(0.1).plot(axes[0, 1], evidence={"alarm": 1, "quake": 1})
        axes[0, 1].set_title("... and there was a quake")
        net.plot(axes[1, 0], evidence={"sprinkler": 1})
        axes[1, 0].set_title("seeing the sprinkler on")
        net.do(sprinkler=1).plot(axes[1, 1])
        axes[1, 1].set_title("setting it on: do(sprinkler = 1)")
        for ax in axes.flat:
            ax.title.set_color(COLOURS[0])

    return Result(claims, numbers, draw, size=(9.0, 7.0))
