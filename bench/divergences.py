"""Distances between samples: the MMD permutation test against hyppo, Fréchet against torchmetrics."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

PERMUTATIONS = 99


def rows(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    return {"X": rng.normal(size=(size, 5)), "Y": rng.normal(size=(size, 5)) + 0.1}


def mmd_test(data: dict[str, Any]) -> float:
    from groundstate import stats

    found = stats.two_sample(data["X"], data["Y"], "mmd", n_permutations=PERMUTATIONS)
    return float(found.pvalue)


def hyppo(data: dict[str, Any]) -> float:
    from hyppo.ksample import MMD

    found = MMD(compute_kernel="gaussian").test(
        data["X"], data["Y"], reps=PERMUTATIONS, workers=1, auto=False
    )
    return float(found[1])


MMD_TEST = Benchmark(
    name="mmd-test",
    title="MMD two-sample test of n and n rows, 99 permutations",
    sizes={"200": 200, "500": 500, "2000": 2000},
    data=rows,
    ours=mmd_test,
    peers={"hyppo": Peer(hyppo, "hyppo")},
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
