"""Histogram boosting, 100 trees of 31 leaves, against LightGBM, XGBoost and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundstate.bench import Benchmark, Peer

SIZES = {"500x50": (500, 50), "10000x50": (10_000, 50), "100000x50": (100_000, 50)}


def data(classes: int) -> Callable[[tuple[int, int], int], dict[str, Any]]:
    def make(size: tuple[int, int], seed: int) -> dict[str, Any]:
        from sklearn.datasets import make_classification, make_regression

        n, d = size
        held = max(2000, n // 5)
        if classes:
            X, y = make_classification(
                n + held, d, n_informative=20, n_classes=classes, random_state=seed
            )
        else:
            X, y = make_regression(n + held, d, n_informative=20, noise=10.0, random_state=seed)
            y = y / y.std()
        return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}

    return make


def ours(data: dict[str, Any]) -> Any:
    from groundstate import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    classes = data["y"].dtype.kind == "i"
    model = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return model(early_stopping=False).fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    classes = data["y"].dtype.kind == "i"
    model = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return model(early_stopping=False).fit(data["X"], data["y"])


def threads() -> int:
    """As many for the peers as for us."""
    import torch

    return torch.get_num_threads()


def lightgbm(data: dict[str, Any]) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = LGBMClassifier if data["y"].dtype.kind == "i" else LGBMRegressor
    return model(n_estimators=100, num_leaves=31, n_jobs=threads(), verbose=-1).fit(
        data["X"], data["y"]
    )


def xgboost(data: dict[str, Any]) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    model = XGBClassifier if data["y"].dtype.kind == "i" else XGBRegressor
    settings: dict[str, Any] = {
        "max_leaves": 31,
        "max_depth": 0,
        "grow_policy": "lossguide",
        "learning_rate": 0.1,
    }
    settings["n_jobs"] = threads()
    return model(n_estimators=100, tree_method="hist", **settings).fit(data["X"], data["y"])


def loss(data: dict[str, Any], model: Any) -> float:
    import warnings

    from sklearn.metrics import log_loss, mean_squared_error

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM asks for the column names that it made up
        if data["y"].dtype.kind == "i":
            return float(log_loss(data["y_test"], model.predict_proba(data["X_test"])))
        return float(mean_squared_error(data["y_test"], model.predict(data["X_test"])))


def _benchmark(name: str, title: str, classes: int) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        sizes=SIZES,
        data=data(classes),
        ours=ours,
        peers={
            "LightGBM": Peer(lightgbm, "lightgbm"),
            "XGBoost": Peer(xgboost, "xgboost"),
            "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        },
        score=loss,
        score_name="held-out log-loss" if classes else "held-out squared error",
        target=1.0,
    )


BINARY = _benchmark("boosting", "HistGradientBoostingClassifier.fit, two classes", 2)
FIVE = _benchmark("boosting-five-classes", "HistGradientBoostingClassifier.fit, five classes", 5)
VALUES = _benchmark("boosting-values", "HistGradientBoostingRegressor.fit", 0)
