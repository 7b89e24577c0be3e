"""Lines and tubes with a loss of the residual, and stochastic descent, against scikit-learn: all defaults.

Scores are scikit-learn's own objectives, so that the least is the best.
"""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

SIZES = {"100x10": (100, 10), "500x10": (500, 10), "2000x20": (2000, 20)}


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, p = size
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + 1 + rng.standard_t(3, n)
    return {"X": X, "y": y, "labels": (y > 1).astype(int), "alpha": 1e-4}


def _residuals(data: dict[str, Any], model: Any) -> Any:
    return data["y"] - model.predict(data["X"])


def huber(data: dict[str, Any], model: Any) -> float:
    import numpy as np

    u = abs(_residuals(data, model)) / model.scale_
    each = np.where(u < 1.35, u**2, 2 * 1.35 * u - 1.35**2)
    whole = (model.scale_ * (1 + each)).sum() + 1e-4 * (np.asarray(model.coef_) ** 2).sum()
    return float(whole) / len(u)


def median(data: dict[str, Any], model: Any) -> float:
    return float(0.5 * abs(_residuals(data, model)).mean() + abs(model.coef_).sum())


def line_tube(data: dict[str, Any], model: Any) -> float:
    import numpy as np

    size = (np.asarray(model.coef_) ** 2).sum() + float(np.sum(np.square(model.intercept_)))
    return float(abs(_residuals(data, model)).sum() + 0.5 * size) / len(data["y"])


def kernel_tube(data: dict[str, Any], model: Any) -> float:
    import numpy as np
    from sklearn.metrics.pairwise import rbf_kernel

    X, beta = data["X"], np.asarray(model.dual_coef_)[0]
    K = rbf_kernel(model.support_vectors_, gamma=1 / (X.shape[1] * X.var()))
    loss = np.maximum(abs(_residuals(data, model)) - 0.1, 0).sum()
    return float(0.5 * beta @ K @ beta + loss) / len(X)


def squares(data: dict[str, Any], model: Any) -> float:
    size = 0.5e-4 * float((model.coef_**2).sum())
    return float(0.5 * (_residuals(data, model) ** 2).mean()) + size


def hinge(data: dict[str, Any], model: Any) -> float:
    import numpy as np

    margin = (2 * data["labels"] - 1) * model.decision_function(data["X"])
    return float(np.maximum(1 - margin, 0).mean() + 0.5e-4 * (np.asarray(model.coef_) ** 2).sum())


def _fitted(module: str, name: str, target: str, **settings: Any) -> Any:
    def run(data: dict[str, Any]) -> Any:
        import warnings
        from importlib import import_module

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # liblinear's limit of passes
            model = getattr(import_module(module), name)(**settings)
            return model.fit(data["X"], data[target])

    return run


def _bench(
    name: str, estimator: str, module: str, score: Any, target: str = "y", **settings: Any
) -> Benchmark:
    return Benchmark(
        name=name,
        title=f"{estimator}().fit, defaults",
        sizes=SIZES,
        data=data,
        ours=_fitted("groundstate", estimator, target, **settings),
        peers={
            "scikit-learn": Peer(
                _fitted(module, estimator, target, **settings), "scikit-learn", "sklearn"
            )
        },
        score=score,
        score_name="objective",
        target=1.0,
    )


LINEAR, SVM = "sklearn.linear_model", "sklearn.svm"
HUBER = _bench("huber", "HuberRegressor", LINEAR, huber)
QUANTILE = _bench("quantile", "QuantileRegressor", LINEAR, median)
LINEAR_SVR = _bench("linear-svr", "LinearSVR", SVM, line_tube)
SVR = _bench("svr", "SVR", SVM, kernel_tube)
SGD_REGRESSOR = _bench("sgd-regressor", "SGDRegressor", LINEAR, squares, random_state=0)
SGD_CLASSIFIER = _bench("sgd-classifier", "SGDClassifier", LINEAR, hinge, "labels", random_state=0)
