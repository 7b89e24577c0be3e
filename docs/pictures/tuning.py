"""Pictures of the tuning page."""

from __future__ import annotations

import numpy as np
import optuna
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate.tune import CEMSampler, PriorSampler, SMBOSampler, expected_improvement
from groundstate.tune.samplers.process import fit_process


def _branin(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    curve = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(curve + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.397887357729738)


def expected_improvement_picture() -> Figure:
    """The surrogate of a risk with its band, and the expected improvement under it."""
    u = np.array([0.03, 0.2, 0.42, 0.7, 0.95])[:, None]
    risk = np.sin(9 * u[:, 0]) + u[:, 0]
    y = (risk - risk.mean()) / risk.std()
    process = fit_process(u, y, np.zeros(1, np.intp))
    at = np.linspace(0, 1, 300)[:, None]
    mean, std = process.predict(at)
    gain = expected_improvement(mean, std, float(y.min()))
    fig, (left, right) = figure(2)
    left.fill_between(at[:, 0], mean - 2 * std, mean + 2 * std, color=COLOURS[0], alpha=0.2)
    left.plot(at[:, 0], mean, color=COLOURS[0])
    left.plot(u[:, 0], y, "o", color="black")
    left.axhline(y.min(), color="black", linestyle="--", linewidth=0.7)
    left.set(xlabel="setting", ylabel="risk", title="what five trials say about the others")
    right.plot(at[:, 0], gain, color="black", label="expected improvement")
    for beta in (3.0, 30.0):
        q = np.exp(beta * gain / gain.max())
        right.plot(at[:, 0], q / q.max() * gain.max(), linewidth=0.8, label=f"proposal, β={beta:g}")
    right.set(xlabel="setting", ylabel="expected improvement", title="where to look next")
    right.legend(frameon=False, loc="upper right", fontsize="small")
    return fig


def regret_curves() -> Figure:
    """Best risk so far on Branin's function, median of seven seeds."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    fig, (axis,) = figure(1)
    kinds = {"random": PriorSampler, "cross-entropy": CEMSampler, "SMBO": SMBOSampler}
    for colour, (name, kind) in zip(COLOURS, kinds.items()):
        curves = []
        for seed in range(7):
            study = optuna.create_study(sampler=kind(seed=seed))
            study.optimize(_branin, n_trials=40)
            curves.append(np.minimum.accumulate([t.value for t in study.trials]))
        axis.plot(np.arange(1, 41), np.median(curves, 0), color=colour, label=name)
    axis.set(yscale="log", xlabel="trial", ylabel="regret", title="fewer trainings")
    axis.legend(frameon=False)
    return fig


PICTURES = {"expected-improvement": expected_improvement_picture, "regret-curves": regret_curves}
