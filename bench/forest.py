"""Random forest, 100 trees, fit and predict, against scikit-learn and LightGBM's forests."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_classification

    n, d = size
    held = max(2000, n // 5)
    X, y = make_classification(n + held, d, n_informative=20, random_state=seed)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def threads() -> int:
    """As many for the peers as for us."""
    import torch

    return torch.get_num_threads()


def ours(data: dict[str, Any]) -> Any:
    from groundstate import RandomForestClassifier

    model = RandomForestClassifier(100, random_state=0).fit(data["X"], data["y"])
    return model.predict_proba(data["X_test"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(100, random_state=0, n_jobs=threads()).fit(data["X"], data["y"])
    return model.predict_proba(data["X_test"])


def lightgbm(data: dict[str, Any]) -> Any:
    import warnings

    from lightgbm import LGBMClassifier

    # as deep as its peers' trees; with the default 31 leaves it is faster and far less accurate
    d = data["X"].shape[1]
    model = LGBMClassifier(
        boosting_type="rf", n_estimators=100, num_leaves=4095, min_child_samples=1, bagging_freq=1,
        bagging_fraction=0.632, feature_fraction_bynode=max(1, int(d**0.5)) / d, random_state=0,
        n_jobs=threads(), verbose=-1,
    ).fit(data["X"], data["y"])  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for the column names that it made up
        return model.predict_proba(data["X_test"])


def accuracy(data: dict[str, Any], p: Any) -> float:
    return float((p.argmax(1) == data["y_test"]).mean())


FOREST = Benchmark(
    name="forest",
    title="RandomForestClassifier(100).fit and predict",
    sizes={"500x50": (500, 50), "10000x50": (10_000, 50), "100000x50": (100_000, 50)},
    data=data,
    ours=ours,
    peers={
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        "LightGBM": Peer(lightgbm, "lightgbm"),
    },
    score=accuracy,
    score_name="held-out accuracy",
    better="high",
    target=1.0,
)
