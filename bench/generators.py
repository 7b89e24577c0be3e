"""Judging generators: precision, recall, density and coverage beside prdc."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def rows(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    return {"real": rng.normal(size=size), "fake": rng.normal(size=size) + 0.2}


def ours(data: dict[str, Any]) -> dict[str, float]:
    from groundstate.evaluate import precision_recall

    found = precision_recall(data["real"], data["fake"], 5)
    return {"precision": found.precision, "coverage": found.coverage}


def prdc(data: dict[str, Any]) -> dict[str, float]:
    from prdc import compute_prdc

    found: dict[str, float] = compute_prdc(data["real"], data["fake"], nearest_k=5)
    return found


PRDC = Benchmark(
    name="prdc",
    title="precision, recall, density and coverage of n and n rows",
    sizes={"500x64": (500, 64), "5000x64": (5_000, 64), "20000x64": (20_000, 64)},
    data=rows,
    ours=ours,
    peers={"prdc": Peer(prdc, "prdc")},
    score=lambda data, found: float(found["precision"] + found["coverage"]),
    score_name="precision plus coverage",
    target=5.0,
)
