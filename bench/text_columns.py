"""A column of text to a fitted classifier, beside TF-IDF and a linear support vector machine."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

OPINIONS = 30  # words of each class, which come with every class but more often with their own


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    """Texts of frequent words, rare words and words of their class; half of the rows judge."""
    import numpy as np

    n, length = size
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n)
    rank = np.minimum(rng.zipf(1.3, (n, length)), 20_000)
    own = rng.random((n, length)) < 0.08
    kind = np.where(rng.random((n, length)) < 0.5, y[:, None], rng.integers(0, 5, (n, length)))
    told = 100_000 + kind * OPINIONS + rng.integers(0, OPINIONS, (n, length))
    words = np.where(own, told, rank)
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    half = n // 2
    return {"train": texts[:half], "y": y[:half], "test": texts[half:], "truth": y[half:]}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import ComplementNB, TablePredictor
    from groundstate.data.preparation import terms

    terms._MEMORY.clear()  # repeats of the measurement are not to find the last one

    model = TablePredictor(ComplementNB()).fit({"text": data["train"]}, data["y"])
    return model.predict({"text": data["test"]})


def ours_logistic(data: dict[str, Any]) -> Any:
    from groundstate import LogisticRegression, TablePredictor
    from groundstate.data.preparation import terms

    terms._MEMORY.clear()  # repeats of the measurement are not to find the last one

    model = TablePredictor(LogisticRegression()).fit({"text": data["train"]}, data["y"])
    return model.predict({"text": data["test"]})


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(data["train"], data["y"])
    return model.predict(data["test"])


def errors(data: dict[str, Any], predicted: Any) -> float:
    """Share of the held-out rows that are wrong."""
    return float((predicted != data["truth"]).mean())


_SIZES = {"400x30": (400, 30), "2000x60": (2_000, 60), "10000x60": (10_000, 60)}
_PEERS = {"TfidfVectorizer + LinearSVC": Peer(sklearn, "scikit-learn", "sklearn")}

TEXT_COLUMNS = Benchmark(
    name="text-columns",
    title="TablePredictor(ComplementNB()) of a column of text, fit and predict",
    sizes=_SIZES,
    data=data,
    ours=ours,
    peers=_PEERS,
    score=errors,
    score_name="error",
    target=0.5,
)

TEXT_COLUMNS_LOGISTIC = Benchmark(
    name="text-columns-logistic",
    title="TablePredictor(LogisticRegression()) of a column of text, fit and predict",
    sizes=_SIZES,
    data=data,
    ours=ours_logistic,
    peers=_PEERS,
    score=errors,
    score_name="error",
    target=0.5,
)
