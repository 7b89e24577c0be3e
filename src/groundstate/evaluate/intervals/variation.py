r"""Where the spread of a score comes from: test rows, seed, training set."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.evaluate.fitting import fit_weighted, random_names, with_seed
from groundstate.evaluate.losses import (
    Loss,
    error_of_mean,
    line_weights,
    loss_name,
    mean_loss,
    row_losses,
    total_weight,
)
from groundstate.evaluate.rows import columns, sides, take, weights_of
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.three_way import split as split_rows

Generator = Callable[[np.random.Generator], tuple[Any, Any]]
_ADVICE = {
    "test": "more test rows would say most: the score itself is uncertain",
    "seed": "average more seeds: retraining alone moves the score most",
    "train": "the training rows matter most: the model depends on which of them it saw",
    "interaction": "seeds matter differently for each training set: average more of both",
}


def advice_of(parts: dict[str, float]) -> str:
    """What to do about the largest of some standard deviations by source."""
    if not any(parts.values()):
        return "none of them moves it measurably"
    return _ADVICE[max(parts, key=lambda name: parts[name])]


@dataclass(frozen=True)
class VariationReport(Displayed):
    r"""Standard deviations of the mean test loss, by source.

    .. math:: s_{bk} = \mu + A_b + B_k + (AB)_{bk}, \qquad
              \sigma^2_\text{test} = \mathrm{Var}(\ell)/n_\text{test}

    for training set b and seed k, estimated as random effects of a crossed design.

    Attributes
    ----------
    scores : Scores
        Mean test loss of every fit, axes training set and seed.
    test, seed, train, interaction : float
        Standard deviations.
    total : float
        They add in quadrature.
    """

    scores: Scores
    test: float
    seed: float
    train: float
    interaction: float
    losses: NDArray[np.float64] = field(repr=False)

    @property
    def total(self) -> float:
        """Root of the sum of squares."""
        return math.sqrt(sum(v * v for v in self.table().values()))

    def table(self) -> dict[str, float]:
        """Standard deviation by source."""
        return {"test": self.test, "seed": self.seed, "train": self.train,
                "interaction": self.interaction}  # fmt: skip

    @property
    def advice(self) -> str:
        """What to do about the largest source."""
        return advice_of(self.table())

    def __str__(self) -> str:
        rows = ", ".join(f"{name} {value:.3g}" for name, value in self.table().items())
        return f"{self.scores}; sd by source: {rows}; {self.advice}"

    def draw(self, ax: Any) -> None:
        """Bars of the standard deviations on matplotlib axes."""
        parts = self.table()
        ax.bar(list(parts), list(parts.values()), color="#3b6fb6")
        ax.set(ylabel=f"sd of {self.scores.metric}", title="spread by source")


def variation_report(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    seeds: int = 10,
    bootstraps: int = 10,
    generator: Generator | None = None,
    *,
    split: Any = None,
    loss: Loss = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> VariationReport:
    """Fit every seed on every training set and split the spread of the score by its source.

    Parameters
    ----------
    estimator : unfitted
    X, y : a table; training sets are bootstrap resamples of its training rows
    seeds, bootstraps : fits are their product; an estimator without randomness needs one seed
    generator : ``generator(rng) -> (X, y)`` draws fresh training sets, and a test set, instead
    split : (train rows, test rows) or a split; three quarters against one quarter by default
    loss : per-row loss, 0-1 or squared by default
    sample_weight : ``(N,)`` of a table; whole numbers are rows that many times, others are chances

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = X[:, 0] + rng.normal(size=200)
    >>> found = variation_report(LinearRegression(), X, y)
    >>> found.seed, found.train < found.test
    (0.0, True)
    """
    from joblib import Parallel, delayed

    if bootstraps < 2 or seeds < 1:
        raise DataError(f"two training sets and one seed at least, got {bootstraps} and {seeds}")
    key, kind = Key.of(random_state), loss_name(estimator, loss)
    names = random_names(estimator)
    n_seeds = seeds if names else 1
    judges: NDArray[np.float64] | None = None
    if generator is not None:
        sets: list[Any] = [
            (*generator(key.fold("train", b).numpy()), None) for b in range(bootstraps)
        ]
        X_test, y_test = generator(key.fold("test").numpy())
    else:
        if X is None or y is None:
            raise DataError("pass a table X, y, or a generator of tables")

        train, test = sides(split or split_rows(X, y, (0.75, 0.25), random_state=key.fold("split")))
        target = np.asarray(y)
        X_test, y_test = take(X, test), target[test]
        part, labels = take(X, train), target[train]
        own = None
        if sample_weight is not None:
            weight = weights_of(sample_weight, len(target))
            own, judges = line_weights(weight[train]), weight[test]
        line = WeightLine.of(*columns(part), labels, weights=own)
        sets = []
        for b in range(bootstraps):
            hits = line.bootstrap(key.fold("train", b))
            if own is None:
                rows = np.repeat(np.arange(len(train)), hits)
                sets.append((take(part, rows), labels[rows], None))
            else:  # heavy rows come often: once, with how often as their weight
                rows = np.flatnonzero(hits)
                sets.append((take(part, rows), labels[rows], hits[rows].astype(np.float64)))
    pairs = [(b, k) for b in range(bootstraps) for k in range(n_seeds)]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fit)(estimator, names, *sets[b], X_test, y_test, kind, key.fold("seed", k))
        for b, k in pairs
    )
    losses = np.stack(found).reshape(bootstraps, n_seeds, -1)
    means = mean_loss(losses, judges)  # (bootstraps, seeds)
    train_sd, seed_sd, both_sd = _components(losses, judges)
    test_sd = math.sqrt(float(np.mean(error_of_mean(losses, judges) ** 2)))
    name = kind if isinstance(kind, str) else "loss"
    scores = Scores(means, ("train", "seed"), name, greater_is_better=False)
    return VariationReport(scores, test_sd, seed_sd, train_sd, both_sd, losses)


def random_effects(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variances of rows, columns and their interaction in crossed tables.  # (..., R, C) -> (..., 3)

    Unbiased, so that they may come out negative.

    >>> random_effects(np.array([[1.0, 1.0], [3.0, 3.0]])).tolist()
    [2.0, 0.0, 0.0]
    """
    rows, cols = table.shape[-2:]
    a = table.mean(-1, keepdims=True)
    if cols == 1:
        alone = a[..., 0].var(-1, ddof=1)
        return np.stack([alone, np.zeros_like(alone), np.zeros_like(alone)], -1)
    b = table.mean(-2, keepdims=True)
    middle = a.mean(-2, keepdims=True)
    ms_a = cols * np.square(a - middle).sum((-2, -1)) / (rows - 1)
    ms_b = rows * np.square(b - middle).sum((-2, -1)) / (cols - 1)
    ms_e = np.square(table - a - b + middle).sum((-2, -1)) / ((rows - 1) * (cols - 1))
    return np.stack([(ms_a - ms_e) / cols, (ms_b - ms_e) / rows, ms_e], -1)


def _components(
    losses: NDArray[np.float64], weight: NDArray[np.float64] | None = None
) -> tuple[float, float, float]:
    """Standard deviations over training sets, seeds and both, of the loss on endless test rows.

    A finite test set adds what single rows make of each fit; the mean over rows of their own
    components, divided by the rows, is just that part.
    """
    means = mean_loss(losses, weight)
    found = random_effects(means)
    of_rows = random_effects(np.moveaxis(losses - means[..., None], 2, 0))  # (n, 3)
    own = mean_loss(of_rows.T, weight)
    n = losses.shape[2] if weight is None else total_weight(weight)
    clean = np.maximum(found - own / max(n - 1, 1.0), 0.0)
    train, seed, both = np.sqrt(clean).tolist()
    return train, seed, both


def _fit(
    estimator: Any, names: Any, X: Any, y: Any, weight: Any, X_test: Any, y_test: Any, loss: Any,
    key: Key,
) -> NDArray[np.float64]:  # fmt: skip
    model = fit_weighted(with_seed(estimator, names, key), X, np.asarray(y), weight)
    return row_losses(model, X_test, y_test, loss)
