"""Five folds and twenty strengths of logistic regression against one fit, and the peer's search."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_classification

    X, y = make_classification(*size, n_informative=10, random_state=seed)
    return {"X": X, "y": y}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import LogisticRegressionCV

    return LogisticRegressionCV(Cs=20, cv=5).fit(data["X"], data["y"])


def one_fit(data: dict[str, Any]) -> Any:
    from groundstate import LogisticRegression

    return LogisticRegression().fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.linear_model import LogisticRegressionCV

    model = LogisticRegressionCV(
        Cs=20,
        cv=5,
        l1_ratios=(0.0,),
        scoring="accuracy",
        use_legacy_attributes=False,
        max_iter=1000,
    )
    return model.fit(data["X"], data["y"])


LOGISTIC_CV = Benchmark(
    name="logistic-cv",
    title="LogisticRegressionCV(Cs=20, cv=5).fit, beside one LogisticRegression().fit",
    sizes={
        "1000x20": (1_000, 20),
        "10000x20": (10_000, 20),
        "10000x50": (10_000, 50),
        "100000x50": (100_000, 50),
    },
    data=data,
    ours=ours,
    peers={
        "one fit of ours": Peer(one_fit, "groundstate", "groundstate"),
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
    },
    score=lambda data, model: float(model.score(data["X"], data["y"])),
    score_name="accuracy",
)
