"""Pictures of sequences: recurrent networks unrolled, their cells and gates, forecasts."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, Plain, figure
from matplotlib.figure import Figure

from groundstate import AutoRegressor
from groundstate.math.chains.autoregression import ar_roots
from groundstate.nn import Recurrent, draw_cell, draw_gates, draw_unrolled
from groundstate.nn.inspect.unrolled import PATTERNS


def unrolled() -> Plain:
    """A simple network with a column for every item."""
    return Plain(draw_unrolled(5))


def patterns() -> Plain:
    """One answer, many answers, an answer for each item, answers after all items."""
    return Plain(*(draw_unrolled(3, name) for name in PATTERNS))


def cells() -> Plain:
    """Inside the three cells."""
    return Plain(*(draw_cell(name) for name in ("rnn", "gru", "lstm")), width=330.0)


def gates() -> Plain:
    """The gates of a long short-term memory while a pulse goes by."""
    net = Recurrent("lstm", 1, 5, forget_bias=1.0, generator=torch.Generator().manual_seed(3))
    x = torch.zeros(30, 1)
    x[6:9] = 4.0
    return Plain(draw_gates(net, x))


def autoregression() -> Figure:
    """A series, how it goes on with its band, and the roots of its equation."""
    rng = np.random.default_rng(0)
    x = [0.0, 0.0]
    for _ in range(220):
        x.append(1.0 + 1.5 * x[-1] - 0.75 * x[-2] + rng.normal())
    series = np.array(x[22:])
    model = AutoRegressor(2).fit(series[:160])
    made = model.forecast(40)
    fig, (left, right) = figure(2)
    left.plot(np.arange(100, 200), series[100:], color=COLOURS[0], lw=1, label="series")
    ahead = np.arange(160, 200)
    left.fill_between(ahead, made.lower, made.upper, color=COLOURS[1], alpha=0.25, label="90 %")
    left.plot(ahead, made.mean, color=COLOURS[1], label="forecast")
    left.set(xlabel="item")
    left.legend(frameon=False)
    turn = np.linspace(0, 2 * np.pi, 200)
    right.plot(np.cos(turn), np.sin(turn), color="#888", lw=1)
    for k, theta in enumerate((model.coef_, [1.5, -0.75])):
        roots = np.asarray(ar_roots(theta))
        label = ("estimated", "true")[k]
        right.scatter(roots.real, roots.imag, color=COLOURS[k], marker="ox"[k], label=label)
    right.set(title="roots outside the circle: stationary", aspect="equal")
    right.legend(frameon=False)
    return fig


PICTURES = {
    "sequences-unrolled": unrolled,
    "sequences-patterns": patterns,
    "sequences-cells": cells,
    "sequences-gates": gates,
    "sequences-autoregression": autoregression,
}
