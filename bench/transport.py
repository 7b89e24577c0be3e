"""Optimal transport between samples: exact, entropic and sliced, against POT and geomloss."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

EPS = 0.2


def samples(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(size, 3)), rng.normal(size=(size, 3)) + 1
    return {"X": X, "Y": Y, "n": size}


def uniform(size: int, seed: int) -> dict[str, Any]:
    import numpy as np
    from scipy.spatial.distance import cdist

    data = samples(size, seed)
    equal = np.full(size, 1 / size)
    return {"M": cdist(data["X"], data["Y"], "sqeuclidean"), "a": equal, "b": equal}


def weighted(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    a, b = np.random.default_rng(seed + 1).random((2, size))
    return {**uniform(size, seed), "a": a / a.sum(), "b": b / b.sum()}


def emd(data: dict[str, Any]) -> float:
    from groundstate import transport

    return float(transport.emd(data["a"], data["b"], data["M"]).cost)


def pot_emd(data: dict[str, Any]) -> float:
    import ot

    plan = ot.emd(data["a"], data["b"], data["M"], numItermax=10**8)
    return float((plan * data["M"]).sum())


SIZES = {"200": 200, "800": 800, "2000": 2000}

UNIFORM = Benchmark(
    name="exact-transport",
    title="Exact transport of n to n points of equal mass: plan and duals",
    sizes=SIZES,
    data=uniform,
    ours=emd,
    peers={"POT": Peer(pot_emd, "POT", "ot")},
    score=lambda data, cost: cost,
    score_name="cost",
    target=1.0,
)

WEIGHTED = Benchmark(
    name="exact-transport-weighted",
    title="Exact transport of n to n points of random mass: plan and duals",
    sizes=SIZES,
    data=weighted,
    ours=emd,
    peers={"POT": Peer(pot_emd, "POT", "ot")},
    score=lambda data, cost: cost,
    score_name="cost",
    target=1.0,
)


def sinkhorn(data: dict[str, Any]) -> Any:
    from groundstate import transport

    return transport.sinkhorn(data["a"], data["b"], data["M"], EPS).plan


def pot_sinkhorn(data: dict[str, Any]) -> Any:
    import ot

    return ot.sinkhorn(data["a"], data["b"], data["M"], EPS, numItermax=10_000)


def marginal_error(data: dict[str, Any], plan: Any) -> float:
    import numpy as np

    return float(np.abs(plan.sum(1) - data["a"]).sum() + np.abs(plan.sum(0) - data["b"]).sum())


SINKHORN = Benchmark(
    name="sinkhorn-plan",
    title="Entropic plan of n to n points, ε = 0.2, default tolerances",
    sizes={"500": 500, "2000": 2000, "5000": 5000},
    data=weighted,
    ours=sinkhorn,
    peers={"POT": Peer(pot_sinkhorn, "POT", "ot")},
    score=marginal_error,
    score_name="marginal error",
    target=1.0,
)


def divergence(data: dict[str, Any]) -> float:
    from groundstate import divergences

    return float(divergences.sinkhorn(data["X"], data["Y"], eps=EPS, tol=1e-4))


def geomloss(data: dict[str, Any]) -> float:
    import torch
    from geomloss import SamplesLoss

    # its cost is |x − y|²/2 and its ε the square of the blur: twice ours at half the ε
    loss = SamplesLoss("sinkhorn", p=2, blur=(EPS / 2) ** 0.5, scaling=0.9, backend="tensorized")
    return 2 * float(loss(torch.from_numpy(data["X"]), torch.from_numpy(data["Y"])))


DIVERGENCE = Benchmark(
    name="sinkhorn-divergence",
    title="Sinkhorn divergence of n and n points, ε = 0.2",
    sizes={"500": 500, "2000": 2000, "5000": 5000},
    data=samples,
    ours=divergence,
    peers={"geomloss": Peer(geomloss, "geomloss")},
    score=lambda data, value: value,
    score_name="divergence",
    target=1.0,
)


def rows(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(size, 10)), rng.normal(size=(size, 10)) + 0.5
    theta = rng.normal(size=(128, 10))
    return {"X": X, "Y": Y, "theta": theta / np.linalg.norm(theta, axis=1, keepdims=True)}


def sliced(data: dict[str, Any]) -> float:
    from groundstate import divergences

    return float(divergences.sliced_wasserstein(data["X"], data["Y"], projections=data["theta"]))


def pot_sliced(data: dict[str, Any]) -> float:
    import ot

    projections = data["theta"].T
    return float(ot.sliced_wasserstein_distance(data["X"], data["Y"], projections=projections))


SLICED = Benchmark(
    name="sliced-wasserstein",
    title="Sliced Wasserstein distance, 128 directions of 10 columns",
    sizes={"1000": 1000, "5000": 5000, "20000": 20_000},
    data=rows,
    ours=sliced,
    peers={"POT": Peer(pot_sliced, "POT", "ot")},
    score=lambda data, value: value,
    score_name="distance",
    target=1.0,
)
