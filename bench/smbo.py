"""One more suggestion by SMBO after so many trials, against Optuna's Gaussian process and TPE."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

DIM = 6


def data(size: tuple[int], seed: int) -> dict[str, Any]:
    import numpy as np
    from optuna.distributions import FloatDistribution
    from optuna.trial import create_trial

    rng = np.random.default_rng(seed)
    space = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(DIM)}
    trials = []
    for u in rng.random((size[0], DIM)):
        params = {f"x{i}": float(v) for i, v in enumerate(u)}
        value = float(np.square(u - 0.3).sum() + 0.1 * np.sin(20 * u).sum())
        trials.append(create_trial(params=params, distributions=space, value=value))
    return {"trials": trials, "space": space, "seed": seed}


def suggest(data: dict[str, Any], sampler: Any) -> Any:
    import warnings

    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=sampler)
        study.add_trials(data["trials"])
        return study.ask(data["space"]).params


def ours(data: dict[str, Any]) -> Any:
    from groundstate.tune import SMBOSampler

    return suggest(data, SMBOSampler(seed=data["seed"]))


def gp(data: dict[str, Any]) -> Any:
    import optuna

    return suggest(data, optuna.samplers.GPSampler(seed=data["seed"]))


def tpe(data: dict[str, Any]) -> Any:
    import optuna

    return suggest(data, optuna.samplers.TPESampler(seed=data["seed"]))


def value(data: dict[str, Any], params: Any) -> float:
    """Of the suggested setting, without the ripples."""
    return float(sum((params[f"x{i}"] - 0.3) ** 2 for i in range(DIM)))


SMBO = Benchmark(
    name="smbo",
    title="one suggestion of SMBOSampler in 6 dimensions",
    sizes={"20": (20,), "80": (80,), "320": (320,)},
    data=data,
    ours=ours,
    peers={
        "optuna GPSampler": Peer(gp, "optuna", "optuna"),
        "optuna TPESampler": Peer(tpe, "optuna", "optuna"),
    },
    score=value,
    score_name="distance",
    target=1.0,
)
