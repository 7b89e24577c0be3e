"""LinearSVC against liblinear, at the same objective."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_classification

    n, d = size
    X, y = make_classification(
        n, d, n_informative=d // 2, n_redundant=0, class_sep=0.8, flip_y=0.05, random_state=seed
    )
    return {"X": X, "y": y}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import LinearSVC

    return LinearSVC().fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC().fit(data["X"], data["y"])


def objective(data: dict[str, Any], model: Any) -> float:
    """½‖w‖² + ½b² + C Σ max(0, 1 − t f)²."""
    import numpy as np

    w, b = model.coef_[0], float(model.intercept_[0])
    t = np.where(data["y"] == model.classes_[1], 1.0, -1.0)
    gap = np.maximum(0.0, 1.0 - t * (data["X"] @ w + b))
    return float(0.5 * (w @ w + b * b) + model.C * (gap @ gap))


def ours_hinge(data: dict[str, Any]) -> Any:
    from groundstate import LinearSVC

    return LinearSVC(loss="hinge", random_state=0).fit(data["X"], data["y"])


def sklearn_hinge(data: dict[str, Any]) -> Any:
    """Stops at its 1,000 passes before it is optimal, and says so."""
    import warnings

    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(loss="hinge", random_state=0).fit(data["X"], data["y"])


def hinge(data: dict[str, Any], model: Any) -> float:
    """½‖w‖² + ½b² + C Σ max(0, 1 − t f)."""
    import numpy as np

    w, b = model.coef_[0], float(model.intercept_[0])
    t = np.where(data["y"] == model.classes_[1], 1.0, -1.0)
    gap = np.maximum(0.0, 1.0 - t * (data["X"] @ w + b))
    return float(0.5 * (w @ w + b * b) + model.C * gap.sum())


LINEAR_SVM = Benchmark(
    name="linear-svm",
    title="LinearSVC().fit, squared hinge",
    sizes={"100x10": (100, 10), "20000x50": (20_000, 50), "500000x50": (500_000, 50)},
    data=data,
    ours=ours,
    peers={"scikit-learn (liblinear)": Peer(sklearn, "scikit-learn", "sklearn")},
    score=objective,
    score_name="objective",
    target=2.0,
)

LINEAR_SVM_HINGE = Benchmark(
    name="linear-svm-hinge",
    title="LinearSVC(loss='hinge').fit",
    sizes={"100x10": (100, 10), "1000x50": (1_000, 50), "20000x50": (20_000, 50)},
    data=data,
    ours=ours_hinge,
    peers={"scikit-learn (liblinear)": Peer(sklearn_hinge, "scikit-learn", "sklearn")},
    score=hinge,
    score_name="objective",
    target=2.0,
)
