r"""The winner's score is optimistic; a fresh set of rows is not."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64, Rng
from groundstate.math.stats import proportion_interval
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

ERROR, N = 0.1, 1000
SIZES = (2, 10, 100)
REPORTED = (0.0946, 0.0856, 0.0770)
TRIALS = (1, 5, 20, 50, 100, 200)


def community(rng: Rng, n: int, rounds: int, ladder: bool) -> float:
    """Reported less true error of a crowd that votes over the entries that did well on a board.

    Entries are coin flips. On the full board everyone sees the error of every entry and keeps those
    below ½. The ladder shows a new error only when it is better by a standard error of the paired
    difference, else the old best. In the end the kept entries vote.
    """
    y = rng.integers(0, 2, n)
    shown, best = 0.5, rng.integers(0, 2, n)
    kept = [best]
    for _ in range(rounds):
        entry = rng.integers(0, 2, n)
        error = float((entry != y).mean())
        if ladder:
            gain = (best != y).astype(np.float64) - (entry != y)
            if gain.mean() > gain.std() / np.sqrt(n) and error < shown:
                shown, best = round(error * n) / n, entry
                kept.append(entry)
        elif error < 0.5:
            kept.append(entry)
    vote = np.mean(kept, axis=0) + 1e-9 * rng.standard_normal(n) > 0.5
    final = float((vote != y).mean())
    if ladder:
        gain = (best != y).astype(np.float64) - (vote != y)
        final = final if gain.mean() > gain.std() / np.sqrt(n) and final < shown else shown
    return 0.5 - final  # labels by coin flip: the true error is ½


def tuning(key: Key) -> tuple[F64, F64]:
    """Validation error of the best of the first T settings, and its error on many new rows."""
    rng = key.numpy()
    truth = np.zeros(12)
    truth[:3] = (1.0, -1.0, 0.5)

    def rows(n: int) -> tuple[F64, I64]:
        X = rng.standard_normal((n, 12))
        return X, (X @ truth + rng.standard_normal(n) > 0).astype(np.int64)

    (X, y), (V, v), (Z, t) = rows(60), rows(60), rows(4000)
    seen, real = [], []
    for _ in range(max(TRIALS)):
        keep = rng.random(12) < 0.6
        keep[rng.integers(12)] = True
        model = LogisticRegression(C=float(10 ** rng.uniform(-3, 3))).fit(X[:, keep], y)
        seen.append(1 - float(model.score(V[:, keep], v)))
        real.append(1 - float(model.score(Z[:, keep], t)))
    best = [int(np.argmin(seen[:T])) for T in TRIALS]
    return np.array([seen[b] for b in best]), np.array([real[b] for b in best])


@experiment(
    "EVA-X-winner",
    theme="evaluation",
    title="The winner's score is optimistic, a fresh set is not",
    slow=True,
)
def winner(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Of K models with the same true error the best on n rows reports
    :math:`E\min_k\hat R_k < R`, by about :math:`\sqrt{2\log K\,R(1-R)/n}`; on fresh rows it reports R.
    The simultaneous interval at level :math:`1 - \delta/K` holds the truth. A crowd that keeps what
    scored well on one board and votes fits the board; a board that shows a new score only when it is
    better by more than its standard error leaks little.

    K = 2, 10, 100 equal models with error .1 on 1,000 rows, 2,000 repeats; 1,000 coin-flip entries
    to boards of 1,000 rows; 200 settings of a logistic regression tuned on 60 rows, 5 tables.
    """
    key = Key.of(seed)
    repeats = 500 if quick else 2000
    reported, fresh, held = [], [], []
    for K in SIZES:
        rng = key.fold("equal", K).numpy()
        best = rng.binomial(N, ERROR, (repeats, K)).min(1)
        reported.append(float(best.mean() / N))
        fresh.append(float(rng.binomial(N, ERROR, repeats).mean() / N))
        wide = {k: proportion_interval(int(k), N, 1 - 0.05 / K) for k in np.unique(best)}
        held.append(float(np.mean([wide[k].low <= ERROR <= wide[k].high for k in best])))
    boards = 5 if quick else 20
    bias = {
        name: float(
            np.mean(
                [
                    community(own.numpy(), 1000, 1000, ladder)
                    for own in key.fold("boards").split(boards)
                ]
            )
        )
        for name, ladder in (("full", False), ("ladder", True))
    }
    tuned = [tuning(own) for own in key.fold("tuning").split(2 if quick else 5)]
    seen, real = (np.mean([run[j] for run in tuned], axis=0) for j in (0, 1))
    gap = real - seen
    claims = [
        *[
            Claim.close(f"K = {K}: reported error of the winner", v, e, tol=0.0008)
            for K, v, e in zip(SIZES, reported, REPORTED)
        ],
        *[
            Claim.close(f"K = {K}: its error on a fresh set", v, ERROR, tol=0.002)
            for K, v in zip(SIZES, fresh)
        ],
        *[
            Claim.at_least(f"K = {K}: coverage of the simultaneous interval", v, 0.95)
            for K, v in zip(SIZES, held)
        ],
        Claim.above("full board: true less reported error", bias["full"], 0.1),
        Claim.below(
            "bias of the ladder over that of the full board", bias["ladder"] / bias["full"], 0.3
        ),
        Claim.above("tuning: true less validation error, 200 trials", float(gap[-1]), 0.0),
        Claim.above("tuning: the same, 200 trials less one trial", float(gap[-1] - gap[0]), 0.0),
    ]
    numbers = {
        "K": list(SIZES),
        "reported": reported,
        "fresh": fresh,
        "coverage": held,
        "boards": bias,
        "trials": list(TRIALS),
        "validation": seen.tolist(),
        "true": real.tolist(),
    }

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.semilogx(SIZES, reported, "o-", color=COLOURS[1], label="reported")
        left.semilogx(SIZES, fresh, "s-", color=COLOURS[0], label="fresh set")
        K = np.logspace(np.log10(2), 2, 50)
        left.semilogx(
            K,
            ERROR - np.sqrt(2 * np.log(K) * ERROR * (1 - ERROR) / N),
            ":",
            color=COLOURS[5],
            label="guide",
        )
        left.set(xlabel="equal models K", ylabel="error of the winner", ylim=(0.065, 0.105))
        left.legend()
        middle.bar(list(bias), list(bias.values()), color=[COLOURS[4], COLOURS[2]])
        middle.set(ylabel="true less reported error", title="1,000 coin flips and a vote")
        right.semilogx(TRIALS, seen, "o-", color=COLOURS[1], label="validation")
        right.semilogx(TRIALS, real, "s-", color=COLOURS[0], label="true")
        right.set(xlabel="settings tried", ylabel="error of the best", title="real tuning")
        right.legend()

    return Result(claims, numbers, draw, size=(11.0, 3.4))
