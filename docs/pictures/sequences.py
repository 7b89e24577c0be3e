"""Pictures of sequences: recurrent networks unrolled, their cells and gates, forecasts."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, Plain, figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from groundstate import AutoRegressor, Forecaster, SequenceClassifier, SequenceRegressor
from groundstate.math.chains.autoregression import ar_roots
from groundstate.models.sequences.forecaster_role import Forecast
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


def _waves(n: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Waves of different length that grow or fade."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(n) % 2
    for k in y:
        length = int(rng.integers(20, 60))
        time = np.linspace(0, 1, length)
        wave = np.sin(rng.uniform(0, 6) + 25 * time) * (0.3 + (time if k else 1 - time))
        X.append((wave + 0.15 * rng.normal(size=length))[:, None])
    return X, y


def classified() -> Figure:
    """Waves that grow or fade, and the probability that a network gives as it reads on."""
    X, y = _waves(200, 0)
    model = SequenceClassifier("gru", {"hidden": 16}, max_epochs=30, lr=0.01, random_state=0)
    model.fit(X, y)
    new, truth = _waves(40, 1)
    fig, (left, right) = figure(2)
    for k in range(2):
        left.plot(new[k][:, 0] + 2.5 * k, color=COLOURS[k], label=("fades", "grows")[k])
    left.set(xlabel="item", yticks=[], title="two sequences")
    left.legend(frameon=False)
    for wave, k in zip(new, truth):
        sure = [model.predict_proba([wave[:t]])[0, 1] for t in range(2, len(wave) + 1, 3)]
        right.plot(np.arange(2, len(wave) + 1, 3), sure, color=COLOURS[k], lw=0.8, alpha=0.6)
    right.set(
        xlabel="items read", ylabel="p(grows)", title=f"accuracy {model.score(new, truth):.2f}"
    )
    return fig


def numbers() -> Figure:
    """The frequency of a wave, from samples of any number."""
    rng = np.random.default_rng(0)
    y = rng.uniform(1, 4, 400)
    X = [
        np.sin(rng.uniform(0, 6) + f * np.arange(int(rng.integers(15, 40))) / 3)[:, None] for f in y
    ]
    fig, axes = figure(2)
    for ax, network in zip(axes, ("gru", "tcn")):
        model = SequenceRegressor(network, {"hidden": 24}, max_epochs=25, lr=0.01, random_state=0)
        model.fit(X[:300], y[:300])
        ax.plot([1, 4], [1, 4], color="#888", lw=1)
        ax.scatter(y[300:], model.predict(X[300:]), s=10, color=COLOURS[0])
        ax.set(title=f"{network}, R² {model.score(X[300:], y[300:]):.2f}", xlabel="frequency",
               ylabel="predicted")  # fmt: skip
    return fig


def _season(n: int, seed: int = 0) -> np.ndarray:
    """A day within a week, with noise that is larger at noon."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    day = np.sin(2 * np.pi * t / 24)
    return 10 + 3 * day + np.sin(2 * np.pi * t / 168) + (0.2 + 0.5 * (day > 0)) * rng.normal(size=n)


def _band(ax: Axes, x: np.ndarray, start: int, made: Forecast, title: str) -> None:
    steps = len(made.mean)
    ahead = np.arange(start, start + steps)
    ax.plot(
        np.arange(start - 72, start + steps), x[start - 72 : start + steps], color=COLOURS[0], lw=1
    )
    ax.fill_between(ahead, made.lower, made.upper, color=COLOURS[1], alpha=0.25)
    ax.plot(ahead, made.mean, color=COLOURS[1])
    ax.set(title=title, xlabel="hour")


def forecast() -> Figure:
    """Two days ahead by three heads."""
    x = _season(900)
    fig, axes = figure(3, width=10.0)
    for ax, head in zip(axes, ("normal", "quantile", "mdn")):
        model = Forecaster(48, 48, "gru", {"hidden": 24}, head=head, stride=2, max_epochs=20, lr=0.01,
                           random_state=0)  # fmt: skip
        _band(ax, x, 800, model.fit(x[:800]).forecast(), head)
    return fig


def strategies() -> Figure:
    """All steps at once, one step again and again, and a straight line of the last items."""
    x = _season(900)
    fig, axes = figure(3, width=10.0)
    quick = {"max_epochs": 20, "lr": 0.01, "random_state": 0}
    direct = Forecaster(48, 48, "tcn", {"hidden": 24}, stride=2, **quick).fit(x[:800])
    again = Forecaster(1, 48, "gru", {"hidden": 24}, strategy="recursive", **quick).fit(x[:800])
    line = AutoRegressor(26).fit(x[:800])
    for ax, model, title in zip(
        axes, (direct, again, line), ("direct", "recursive", "AutoRegressor")
    ):
        _band(ax, x, 800, model.forecast(48), title)
    return fig


PICTURES = {
    "sequences-forecast": forecast,
    "sequences-strategies": strategies,
    "sequences-classified": classified,
    "sequences-numbers": numbers,
    "sequences-unrolled": unrolled,
    "sequences-patterns": patterns,
    "sequences-cells": cells,
    "sequences-gates": gates,
    "sequences-autoregression": autoregression,
}
