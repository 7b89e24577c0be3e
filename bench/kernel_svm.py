"""SVC with the RBF kernel against libsvm, to the same violation of optimality."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_classification

    n, d = size
    X, y = make_classification(
        n, d, n_informative=10, n_redundant=0, class_sep=0.8, flip_y=0.05, random_state=seed
    )
    return {"X": X, "y": y, "gamma": 1.0 / (d * X.var())}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import SVC

    return SVC(gamma=data["gamma"]).fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.svm import SVC

    return SVC(gamma=data["gamma"]).fit(data["X"], data["y"])


def dual(data: dict[str, Any], model: Any) -> float:
    """The dual objective of the coefficients, recomputed in float64 from the kernel."""
    import numpy as np

    from groundstate.math.kernels import RBF

    beta, rows = np.asarray(model.dual_coef_)[0], data["X"][model.support_]
    kernel = RBF(gamma=data["gamma"])
    norm = sum(
        beta[at : at + 1000] @ (kernel(rows[at : at + 1000], rows) @ beta)
        for at in range(0, len(rows), 1000)
    )
    return float(np.abs(beta).sum() - 0.5 * norm)


KERNEL_SVM = Benchmark(
    name="kernel-svm",
    title="SVC(kernel='rbf').fit to tol 1e-3",
    sizes={
        "100x10": (100, 10),
        "1000x20": (1_000, 20),
        "10000x20": (10_000, 20),
        "30000x20": (30_000, 20),
    },
    data=data,
    ours=ours,
    peers={"scikit-learn (libsvm)": Peer(sklearn, "scikit-learn", "sklearn")},
    score=dual,
    score_name="dual objective",
    better="high",
    target=2.0,
)
