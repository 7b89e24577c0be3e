"""Stable distributions and maximum likelihood against scipy's."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

SHAPE = {"alpha": 1.5, "beta": 0.5}


def nothing(size: int, seed: int) -> dict[str, Any]:
    return {"n": size, "seed": seed}


def ours_draw(data: dict[str, Any]) -> Any:
    import torch

    from groundstate import distributions

    return (
        distributions.Stable(**SHAPE)
        .draw(data["n"], torch.Generator().manual_seed(data["seed"]))
        .numpy()
    )


def scipy_draw(data: dict[str, Any]) -> Any:
    from scipy.stats import levy_stable

    return levy_stable.rvs(**SHAPE, size=data["n"], random_state=data["seed"])


def middle(data: dict[str, Any], x: Any) -> float:
    """Width of the middle half, 2.12 for this distribution."""
    import numpy as np

    return float(np.subtract(*np.quantile(x, [0.75, 0.25])))


DRAWS = Benchmark(
    name="stable-draws",
    title="draws of a stable distribution",
    sizes={"10000": 10_000, "100000": 100_000, "1000000": 1_000_000},
    data=nothing,
    ours=ours_draw,
    peers={"scipy": Peer(scipy_draw, "scipy", "scipy")},
    score=middle,
    score_name="quartile range",
    target=5.0,
)


def points(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    return {"x": np.random.default_rng(seed).standard_t(2, size=size)}


def ours_density(data: dict[str, Any]) -> Any:
    import torch

    from groundstate import distributions

    return distributions.Stable(**SHAPE).log_prob(torch.from_numpy(data["x"])).numpy()


def scipy_density(data: dict[str, Any]) -> Any:
    from scipy.stats import levy_stable

    return levy_stable.logpdf(data["x"], **SHAPE)


DENSITY = Benchmark(
    name="stable-density",
    title="log density of a stable distribution",
    sizes={"100": 100, "500": 500, "2500": 2_500},
    data=points,
    ours=ours_density,
    peers={"scipy": Peer(scipy_density, "scipy", "scipy")},
    score=lambda data, found: float(found.mean()),
    score_name="mean log density",
    target=5.0,
)


def rows(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    return {"x": 1 + 2 * np.random.default_rng(seed).standard_t(4, size=size)}


def ours_fit(data: dict[str, Any]) -> Any:
    from torch.distributions import StudentT

    from groundstate import stats

    found = stats.fit_mle(StudentT, data["x"]).params
    return found["df"], found["loc"], found["scale"]


def scipy_fit(data: dict[str, Any]) -> Any:
    from scipy.stats import t

    return t.fit(data["x"])


def likelihood(data: dict[str, Any], found: Any) -> float:
    from scipy.stats import t

    return float(t.logpdf(data["x"], *found).mean())


FIT = Benchmark(
    name="fit-mle",
    title="Student's t by maximum likelihood, with standard errors",
    sizes={"1000": 1_000, "10000": 10_000, "100000": 100_000},
    data=rows,
    ours=ours_fit,
    peers={"scipy": Peer(scipy_fit, "scipy", "scipy")},
    score=likelihood,
    score_name="mean log-likelihood",
    better="high",
    target=1.0,
)
