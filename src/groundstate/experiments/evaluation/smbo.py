r"""Fewer trainings: random search, the cross-entropy method, a model of the risk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import ks_2samp
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64

_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
BETAS = (10.0, 30.0, 100.0, np.inf)
ALPHAS = (0.0, 10.0, 40.0)


def branin_at(x: Any, y: Any) -> Any:
    """Branin's function less its minimum."""
    curve = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return curve + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.397887357729738


def branin(trial: Any) -> float:
    """Two settings, three equal minima."""
    return float(branin_at(trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)))


def hartmann(trial: Any) -> float:
    """Six settings, less the minimum."""
    x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(6)])
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    return float(3.322368011415515 - heights @ np.exp(-(_A * (x - _P) ** 2).sum(1)))


def search(sampler: Any, objective: Callable[[Any], float], n: int) -> Any:
    """A finished study."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=n)
    finally:
        optuna.logging.set_verbosity(before)
    return study


def regrets(
    make: Callable[[Key], Any], objective: Callable[[Any], float], n: int, keys: Any
) -> F64:
    """Lowest value so far after every trial, ``(seeds, n)``."""
    studies = [search(make(key), objective, n) for key in keys]
    return np.array([np.minimum.accumulate([t.value for t in s.trials]) for s in studies])


def step(alpha: float, key: Key) -> float:
    """Mean distance of the proposals to the best before them, in the unit square."""
    from groundstate.tune import SMBOSampler

    trials = search(SMBOSampler(alpha=alpha, beta=3.0, seed=key), branin, 25).trials
    at = np.array([[(t.params["x"] + 5) / 15, t.params["y"] / 15] for t in trials])
    value = np.array([t.value for t in trials])
    return float(np.mean([np.linalg.norm(at[i] - at[value[:i].argmin()]) for i in range(10, 25)]))


@experiment(
    "EVA-X-smbo",
    theme="evaluation",
    title="Random > cross-entropy > model-based: fewer trainings",
    slow=True,
)
def smbo(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Settings are drawn from :math:`q(\lambda) \propto p_0(\lambda)\exp\{\beta\mathrm{EI}(\lambda)/
    \max\mathrm{EI} - \alpha d(\lambda, \lambda_{best})\}`. β = 0 is random search, β = ∞ takes the
    largest expected improvement, and all between find the minimum with far fewer trials; α keeps
    proposals near the best so far. The cross-entropy method, which only refits simple distributions
    to the best trials, lies between random search and the model of the risk.

    Hartmann's function of six settings with 100 trials, Branin's with 35, and C and γ of a support
    vector machine on 300 digits with 20; 20 seeds (5 for the machine).
    """
    from groundstate.tune import CEMSampler, PriorSampler, SMBOSampler

    keys = Key.of(seed).split(5 if quick else 20)
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[:300] / 16, labels[:300]

    def machine(trial: Any) -> float:
        C = trial.suggest_float("C", 1e-3, 1e3, log=True)
        gamma = trial.suggest_float("gamma", 1e-5, 1e1, log=True)
        return 1.0 - float(
            cross_val_score(SVC(C=C, gamma=gamma, random_state=0), digits, labels, cv=3).mean()
        )

    kinds: dict[str, Callable[[Key], Any]] = {
        "random": lambda key: PriorSampler(seed=key),
        "cross-entropy": lambda key: CEMSampler(seed=key),
        "model-based": lambda key: SMBOSampler(seed=key),
    }
    with threadpool_limits(1):  # small matrices: more threads only wait for each other
        runs = {name: regrets(make, hartmann, 100, keys) for name, make in kinds.items()}
        random = regrets(kinds["random"], branin, 35, keys)
        none = regrets(lambda key: SMBOSampler(beta=0.0, seed=key.fold("none")), branin, 35, keys)
        by_beta = {
            b: regrets(lambda key, b=b: SMBOSampler(beta=b, seed=key), branin, 35, keys)[:, -1]  # type: ignore[misc]
            for b in BETAS
        }
        steps = [float(np.mean([step(a, key) for key in keys[:8]])) for a in ALPHAS]
        svc = {
            name: regrets(kinds[name], machine, 20, keys[:5]) for name in ("random", "model-based")
        }
    end = {name: float(np.median(r[:, -1])) for name, r in runs.items()}
    base = float(np.median(random[:, -1]))
    medians = {str(b): float(np.median(v)) for b, v in by_beta.items()}
    same = float(ks_2samp(none[:, -1], random[:, -1]).pvalue)
    claims = [
        Claim.above(
            "Hartmann: regret, random over cross-entropy", end["random"] / end["cross-entropy"], 1.0
        ),
        Claim.above(
            "Hartmann: regret, cross-entropy over model-based",
            end["cross-entropy"] / end["model-based"],
            1.0,
        ),
        Claim.above("Branin, β = 0 against random: Kolmogorov-Smirnov p", same, 0.05),
        *[
            Claim.at_most(f"Branin, β = {b}: regret over random's", v / base, 0.1)
            for b, v in medians.items()
        ],
        *[
            Claim.below(f"mean step, α = {b:g} over α = {a:g}", t / s, 1.0)
            for a, b, s, t in zip(ALPHAS, ALPHAS[1:], steps, steps[1:])
        ],
        Claim.at_most(
            "support vector machine: median error, model-based less random",
            float(np.median(svc["model-based"][:, -1]) - np.median(svc["random"][:, -1])),
            0.0,
        ),
    ]
    numbers = {
        "Hartmann": end,
        "Branin": {"random": base, **medians},
        "steps": steps,
        "machine": {name: float(np.median(v[:, -1])) for name, v in svc.items()},
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for (name, r), colour in zip(runs.items(), COLOURS):
            left.semilogy(np.arange(1, 101), np.median(r, axis=0), color=colour, label=name)
        left.set(xlabel="trials", ylabel="median regret", title="Hartmann's function, six settings")
        left.legend()
        a, b = np.linspace(-5, 10, 90), np.linspace(0, 15, 90)
        heights = np.log1p(branin_at(*np.meshgrid(a, b)))
        right.contourf(a, b, heights, levels=16, cmap="viridis")
        study = search(kinds["model-based"](keys[0]), branin, 35)
        at = np.array([[t.params["x"], t.params["y"]] for t in study.trials])
        right.plot(*at[:10].T, "o", color="white", markersize=3, label="first ten")
        right.plot(*at[10:].T, "o", color=COLOURS[1], markersize=4, label="by expected improvement")
        right.set(title="Branin's function: where trials went")
        right.legend(loc="upper right")

    return Result(claims, numbers, draw, size=(9.5, 3.8))
