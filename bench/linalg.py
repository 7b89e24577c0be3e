"""Low-rank factors and functions of positive definite matrices, against torch, scikit-learn and scipy."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

RANK = 20


def table(size: tuple[int, int], seed: int) -> dict[str, Any]:
    """Singular values that fall like 1/i, as those of real tables do."""
    import numpy as np

    m, n = size
    rng = np.random.default_rng(seed)
    r = min(m, n, 300)
    U = np.linalg.qr(rng.normal(size=(m, r)))[0]
    V = np.linalg.qr(rng.normal(size=(n, r)))[0]
    values = 1 / np.arange(1, r + 1)
    A = (U * values) @ V.T
    return {"A": A, "best": float(np.sqrt((values[RANK:] ** 2).sum()))}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import linalg

    return tuple(linalg.low_rank(data["A"], RANK, "randomised"))


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.utils.extmath import randomized_svd

    U, s, Vt = randomized_svd(data["A"], RANK, random_state=0)
    return U, s, Vt.T


def truncated(data: dict[str, Any]) -> Any:
    from sklearn.decomposition import TruncatedSVD

    model = TruncatedSVD(RANK, random_state=0).fit(data["A"])
    scores = model.transform(data["A"])
    s = model.singular_values_
    return scores / s, s, model.components_.T


def pytorch(data: dict[str, Any]) -> Any:
    import torch

    torch.manual_seed(0)
    U, s, V = torch.svd_lowrank(torch.from_numpy(data["A"]), q=RANK + 10, niter=4)
    return U[:, :RANK].numpy(), s[:RANK].numpy(), V[:, :RANK].numpy()


def excess(data: dict[str, Any], factors: Any) -> float:
    """Error over the best one of this rank."""
    import numpy as np

    U, s, V = factors
    return float(np.linalg.norm(data["A"] - (U * s) @ V.T) / data["best"])


LOW_RANK = Benchmark(
    name="low-rank",
    title="linalg.low_rank(A, 20) by random directions",
    sizes={"1000x500": (1_000, 500), "4000x1000": (4_000, 1_000), "20000x500": (20_000, 500)},
    data=table,
    ours=ours,
    peers={
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        "scikit-learn TruncatedSVD": Peer(truncated, "scikit-learn", "sklearn"),
        "torch svd_lowrank": Peer(pytorch, "torch"),
    },
    score=excess,
    score_name="error over the best",
    target=1.0,
)


def matrices(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    count, n = size
    B = np.random.default_rng(seed).normal(size=(count, n, n))
    return {"A": B @ B.swapaxes(1, 2) + 0.1 * np.eye(n)}


def roots(data: dict[str, Any]) -> Any:
    from groundstate import linalg

    return linalg.sqrtm(data["A"])


def scipy_roots(data: dict[str, Any]) -> Any:
    import numpy as np
    from scipy.linalg import sqrtm

    return np.stack([sqrtm(A) for A in data["A"]])


def residual(data: dict[str, Any], R: Any) -> float:
    import numpy as np

    return float(np.abs(R @ R - data["A"]).max() / np.abs(data["A"]).max())


ROOTS = Benchmark(
    name="sqrtm",
    title="linalg.sqrtm of many positive definite matrices",
    sizes={"2000x4x4": (2_000, 4), "500x20x20": (500, 20), "20x200x200": (20, 200)},
    data=matrices,
    ours=roots,
    peers={"scipy": Peer(scipy_roots, "scipy")},
    score=residual,
    score_name="largest residual",
    target=1.0,
)
