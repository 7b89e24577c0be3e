"""LogisticRegression against scikit-learn: iris, 100 x 10, and a table large enough to matter."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: str | tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import load_iris, make_classification

    if isinstance(size, str):
        X, y = load_iris(return_X_y=True)
    else:
        X, y = make_classification(*size, n_informative=5, random_state=seed)
    return {"X": X, "y": y}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import LogisticRegression

    return LogisticRegression(max_iter=1000).fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000).fit(data["X"], data["y"])


def objective(data: dict[str, Any], model: Any) -> float:
    from sklearn.metrics import log_loss

    nll = log_loss(data["y"], model.predict_proba(data["X"]), normalize=False)
    return float(nll + 0.5 * (model.coef_**2).sum() / model.C)


LOGISTIC = Benchmark(
    name="logistic-regression",
    title="LogisticRegression().fit",
    sizes={"iris": "iris", "100x10": (100, 10), "50000x50": (50_000, 50)},
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=objective,
    score_name="penalised NLL",
    target=1.0,
)


def five_classes(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_classification

    X, y = make_classification(*size, n_informative=20, n_classes=5, random_state=seed)
    return {"X": X, "y": y}


def ours_tight(data: dict[str, Any]) -> Any:
    from groundstate import LogisticRegression

    return LogisticRegression(tol=1e-6, max_iter=1000).fit(data["X"], data["y"])


def sklearn_tight(solver: str) -> Any:
    def run(data: dict[str, Any]) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(tol=1e-6, max_iter=1000, solver=solver)
        return model.fit(data["X"], data["y"])

    return run


SOFTMAX = Benchmark(
    name="softmax-regression",
    title="LogisticRegression(tol=1e-6).fit, five classes",
    sizes={"1000x50": (1_000, 50), "10000x50": (10_000, 50), "100000x50": (100_000, 50)},
    data=five_classes,
    ours=ours_tight,
    peers={
        "scikit-learn lbfgs": Peer(sklearn_tight("lbfgs"), "scikit-learn", "sklearn"),
        "scikit-learn newton-cholesky": Peer(
            sklearn_tight("newton-cholesky"), "scikit-learn", "sklearn"
        ),
    },
    score=objective,
    score_name="penalised NLL",
    target=2.0,
)
