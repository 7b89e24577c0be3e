"""Distances between samples: the MMD permutation test against hyppo, Fréchet against torchmetrics."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def rows(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, permutations = size
    rng = np.random.default_rng(seed)
    return {
        "X": rng.normal(size=(n, 5)),
        "Y": rng.normal(size=(n, 5)) + 0.1,
        "permutations": permutations,
    }


def mmd_test(data: dict[str, Any]) -> float:
    from groundstate import stats

    found = stats.two_sample(data["X"], data["Y"], "mmd", n_permutations=data["permutations"])
    return float(found.pvalue)


def hyppo(data: dict[str, Any]) -> float:
    from hyppo.ksample import MMD

    found = MMD(compute_kernel="gaussian").test(
        data["X"], data["Y"], reps=data["permutations"], workers=1, auto=False
    )
    return float(found[1])


def scipy(data: dict[str, Any]) -> float:
    """Its permutation test of an MMD over kernel values that are computed once."""
    import numpy as np
    from scipy.spatial.distance import cdist
    from scipy.stats import permutation_test

    both = np.concatenate([data["X"], data["Y"]])
    away = cdist(both, both, "sqeuclidean")
    K = np.exp(-away / np.median(away[away > 0]))

    def mmd(first: Any, second: Any) -> float:
        z = np.zeros(len(K))
        z[first.astype(int)], z[second.astype(int)] = 1 / len(first), -1 / len(second)
        return float(z @ K @ z)

    ids = np.arange(len(both))
    halves = ids[: len(data["X"])], ids[len(data["X"]) :]
    found = permutation_test(
        halves, mmd, n_resamples=data["permutations"], alternative="greater", rng=0
    )
    return float(found.pvalue)


# hyppo computes the whole kernel again for every permutation: it gets fewer of them, and so do all
MMD_TEST = Benchmark(
    name="mmd-test",
    title="MMD two-sample test of n and n rows, 99 permutations (19 of 2,000 rows)",
    sizes={"200": (200, 99), "500": (500, 99), "2000": (2_000, 19)},
    data=rows,
    ours=mmd_test,
    peers={"hyppo": Peer(hyppo, "hyppo"), "scipy": Peer(scipy, "scipy")},
    score=lambda data, p: p,
    score_name="p-value",
    target=1.0,
)


def moments(size: int, seed: int) -> dict[str, Any]:
    import torch

    g = torch.Generator().manual_seed(seed)
    out = {}
    for k in (1, 2):
        A = torch.randn(size + 100, size, generator=g, dtype=torch.float64)
        out[f"mean{k}"], out[f"cov{k}"] = A.mean(0), torch.cov(A.mT)
    return out


def frechet(data: dict[str, Any]) -> float:
    from groundstate import divergences

    return float(divergences.frechet(data["mean1"], data["cov1"], data["mean2"], data["cov2"]))


def torchmetrics(data: dict[str, Any]) -> float:
    from torchmetrics.image.fid import _compute_fid

    return float(_compute_fid(data["mean1"], data["cov1"], data["mean2"], data["cov2"]))


FRECHET = Benchmark(
    name="frechet",
    title="Fréchet distance of two Gaussians of d features",
    sizes={"256": 256, "1024": 1024, "2048": 2048},
    data=moments,
    ours=frechet,
    peers={"torchmetrics": Peer(torchmetrics, "torchmetrics")},
    score=lambda data, value: value,
    score_name="distance",
    target=2.0,
)
