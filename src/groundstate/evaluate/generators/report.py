r"""A generator on trial: one table of likelihood, distances, coverage, look-alikes and copies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.generators.coverage import PrecisionRecall, precision_recall
from groundstate.evaluate.generators.features import RowFeatures
from groundstate.evaluate.generators.frechet import frechet_distance
from groundstate.evaluate.generators.likelihood import HeldOutLikelihood, held_out_likelihood
from groundstate.evaluate.generators.memory import Memorisation, memorisation_check
from groundstate.math.divergences.mmd import median_length_scale
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.stationary import RBF
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.proportions import proportion_interval
from groundstate.math.stats.result import TestResult
from groundstate.math.stats.twosample import two_sample

Floats = NDArray[np.float64]
RESAMPLES = 100  # for the intervals of distances
AXES = 20  # principal components of rows that have more columns
MOST = 2000  # rows of each set that tests look at
LEAST = 20


@dataclass(frozen=True)
class GeneratorAssessment(Displayed):
    """How faithful a generator is, and how private.

    Attributes
    ----------
    likelihood : HeldOutLikelihood or None, for a model with a density
    frechet : Interval
        Squared Fréchet distance of generated to held-out rows, columns standardised.
    frechet_floor : float or None
        The same of training to held-out rows: what a perfect generator would get.
    mmd : Interval
        Unbiased squared maximum mean discrepancy.
    mmd_test : TestResult
        Whether generated and held-out rows are of one distribution.
    precision_recall : PrecisionRecall
    c2st : Interval
        Accuracy of a classifier that tells generated from held-out rows; ½ is perfect.
    memorisation : Memorisation or None, with training rows
    verdict : str
        "good", "underfits", "overfits" or "memorises".
    why : str
    """

    likelihood: HeldOutLikelihood | None
    frechet: Interval
    frechet_floor: float | None
    mmd: Interval
    mmd_test: TestResult
    precision_recall: PrecisionRecall
    c2st: Interval
    memorisation: Memorisation | None
    verdict: str
    why: str
    rows: dict[str, int] = field(default_factory=dict)

    def table(self, write: Callable[[float], str] = "{:.4g}".format) -> list[tuple[str, str]]:
        """Every number with its interval, as text; ``write`` gives a number its digits."""

        def between(value: Interval) -> str:
            return f"{write(value.estimate)} ({write(value.low)} to {write(value.high)})"

        found: list[tuple[str, str]] = []
        if self.likelihood is not None:
            kind = self.likelihood.kind
            log_likelihood = between(self.likelihood.log_likelihood)
            found.append((f"held-out log-likelihood ({kind})", log_likelihood))
            found.append(("bits per dimension", between(self.likelihood.bits_per_dim)))
            if self.likelihood.overfit is not None:
                found.append(("training minus held-out", between(self.likelihood.overfit)))
            if self.likelihood.impossible:
                found.append(("rows held impossible", f"{self.likelihood.impossible:.2%}"))
        floor = "" if self.frechet_floor is None else f", real rows {write(self.frechet_floor)}"
        found.append(("Fréchet distance", f"{between(self.frechet)}{floor}"))
        found.append(("MMD²", f"{between(self.mmd)}, p {self.mmd_test.pvalue:.3g}"))
        for name, value in self.precision_recall.intervals.items():
            found.append((name, between(value)))
        found.append(("distinguished from real rows (accuracy, ½ is best)", between(self.c2st)))
        if self.memorisation is not None:
            m = self.memorisation
            found.append(("memorisation z (below −3 repeats)", write(m.z)))
            share = f"{m.copies:.2%}, of unseen real rows {m.expected:.2%}"
            found.append(("near copies of training rows", share))
            found.append(("equal to a training row", f"{m.exact:.2%}"))
        return found

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.why}"]
        wide = max(len(name) for name, _ in self.table())
        return "\n".join([*lines, *(f"  {name:<{wide}}  {value}" for name, value in self.table())])


def assess_generator(
    model_or_samples: Any,
    X_test: Any,
    X_train: Any = None,
    *,
    y_test: Any = None,
    features: Any = None,
    k: int = 5,
    level: float = 0.95,
    repeats: float = 0.0,
    random_state: Key | RandomState = 0,
) -> GeneratorAssessment:
    """Judge a generator, or rows it made, on real rows it has not seen.

    Without labels, overfitting is to repeat the training rows or to give them more likelihood than
    new ones; underfitting is to differ visibly from real rows.

    Parameters
    ----------
    model_or_samples : a fitted model with ``sample``, or generated rows
    X_test : real rows that were not learned from: a frame, or an array ``(n, ...)``
    X_train : the rows that were, for the checks of memory and of overfitting
    y_test : conditions of a conditional model, for its likelihood
    features : a module or function to ``(n, d)`` features in which rows are compared; None
        standardises columns and makes categories one-hot
    k : neighbours of precision and recall
    level : of the intervals
    repeats : see ``memorisation_check``

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> rows = np.random.default_rng(0).normal(size=(900, 2))
    >>> model = GaussianMixture(1, random_state=0).fit(rows[:400])
    >>> assess_generator(model, rows[400:], rows[:400]).verdict
    'good'
    """
    key = Key.of(random_state)
    model = (
        model_or_samples
        if hasattr(model_or_samples, "sample") and not _is_rows(model_or_samples)
        else None
    )
    n = len(X_test)
    drawn = model_or_samples
    if model is not None:
        drawn = _drawn(model, n, key)
    code = _coder(features, X_test if X_train is None else X_train)
    fake, real = code(drawn), code(X_test)
    train = None if X_train is None else code(X_train)
    if min(len(fake), len(real)) < LEAST:
        raise DataError(
            f"a generator is judged on at least {LEAST} rows of each kind, got {len(fake)} generated and "
            f"{len(real)} real ones"
        )
    likelihood = None
    if model is not None and hasattr(model, "score_samples"):
        kind = getattr(model, "log_prob_kind_", "exact")
        if kind not in ("none", "unnormalised"):
            likelihood = held_out_likelihood(model, X_test, X_train, y=y_test, level=level)
    frechet, floor = _frechet(fake, real, train, level, key)
    mmd = _mmd_interval(fake, real, level, key)
    test = two_sample(fake, real, "mmd", max_rows=MOST, random_state=key.fold("mmd"))
    a, b = (_some(rows, 10 * MOST, key.fold("rows", i)) for i, rows in enumerate((real, fake)))
    cover = precision_recall(a, b, min(k, len(a) - 1, len(b) - 1), level=level)
    separability = told_apart(fake, real, level, key)
    memory = None
    if train is not None:
        memory = memorisation_check(fake, train, real, repeats)
    verdict, why = _verdict(likelihood, memory, separability, test)
    counts = {
        "generated": len(fake),
        "held-out": len(real),
        "training": 0 if train is None else len(train),
    }
    return GeneratorAssessment(
        likelihood, frechet, floor, mmd, test, cover, separability, memory, verdict, why, counts
    )


def told_apart(fake: Floats, real: Floats, level: float, key: Key) -> Interval:
    """Accuracy of a boosted classifier on folds it was not taught on; ½ where nothing tells them apart."""
    from groundstate.models.ensembles.boosting.hist_gradient_boosting_classifier import (
        HistGradientBoostingClassifier,
    )

    n = min(len(fake), len(real), 5 * MOST)
    rows = np.concatenate([_some(fake, n, key.fold("f")), _some(real, n, key.fold("r"))])
    side = np.repeat([0, 1], n)
    fold = np.concatenate([key.fold("folds", i).numpy().permutation(n) % 5 for i in range(2)])
    hits = 0
    for f in range(5):
        teach = fold != f
        model = HistGradientBoostingClassifier(
            max_iter=50, max_leaf_nodes=8, min_samples_leaf=min(20, max(2, n // 10)), random_state=0
        )
        hits += int(
            (model.fit(rows[teach], side[teach]).predict(rows[~teach]) == side[~teach]).sum()
        )
    return proportion_interval(hits, 2 * n, level)


def _verdict(
    likelihood: HeldOutLikelihood | None,
    memory: Memorisation | None,
    separability: Interval,
    test: TestResult,
) -> tuple[str, str]:
    if memory is not None and memory.memorises:
        many = "generated rows are much closer to training rows than new ones are"
        some = "some generated rows are copies of training rows"
        return "memorises", (
            f"{some if memory.copies_some and memory.ratio >= 0.5 else many} (z {memory.z:.3g}, "
            f"{memory.copies:.1%} near copies, of unseen real rows {memory.expected:.1%})"
        )
    gap = None if likelihood is None else likelihood.overfit
    if gap is not None and gap.low > max(0.5, 0.1 * abs(likelihood.log_likelihood.estimate)):  # type: ignore[union-attr]
        return "overfits", f"training rows get {gap.estimate:.3g} nats more than new ones"
    if separability.low > 0.55 or (test.pvalue < 0.01 and separability.low > 0.5):
        return "underfits", (
            f"a classifier tells generated from real rows with accuracy {separability.estimate:.3g} "
            f"({separability.low:.3g} to {separability.high:.3g}), and MMD has p {test.pvalue:.2g}"
        )
    return "good", (
        f"generated rows are hardly distinguished from real ones (accuracy {separability.estimate:.3g}, "
        f"{separability.low:.3g} to {separability.high:.3g})"
    )


def _is_rows(given: Any) -> bool:
    return hasattr(given, "shape") or hasattr(given, "columns") or isinstance(given, list | tuple)


def _drawn(model: Any, n: int, key: Key) -> Any:
    seed = int(key.fold("sample").words(1)[0] % (2**31 - 1))
    takes_seed = "random_state" in signature(model.sample).parameters  # scikit-learn's have none
    drawn = model.sample(n, random_state=seed) if takes_seed else model.sample(n)
    return drawn[0] if isinstance(drawn, tuple) else drawn


def _coder(features: Any, real: Any) -> Any:
    if features is None:
        return RowFeatures.learned(real).of

    def code(rows: Any) -> Floats:
        with torch.no_grad():
            values = torch.as_tensor(features(torch.as_tensor(np.asarray(rows))))
        return np.asarray(values.reshape(len(values), -1).double().cpu().numpy())

    return code


def _some(rows: Floats, n: int, key: Key) -> Floats:
    if len(rows) <= n:
        return rows
    return rows[np.sort(key.numpy().choice(len(rows), n, replace=False))]


def _frechet(
    fake: Floats, real: Floats, train: Floats | None, level: float, key: Key
) -> tuple[Interval, float | None]:
    """The distance with a bootstrap interval, and that of real rows to real rows."""
    sets = [real, fake] if train is None else [real, fake, train]
    if real.shape[1] > AXES:  # in the space of the largest variances of real rows
        centre = real.mean(0)
        axes = np.linalg.svd(_some(real, MOST, key) - centre, full_matrices=False)[2][:AXES].T
        sets = [(rows - centre) @ axes for rows in sets]
    rng = key.fold("frechet").numpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="a Fréchet distance")
        value = frechet_distance(sets[0], sets[1])
        draws = []
        for _ in range(RESAMPLES):
            a, b = (rows[rng.integers(0, len(rows), len(rows))] for rows in sets[:2])
            draws.append(frechet_distance(a, b))
        floor = None if train is None else frechet_distance(sets[0], sets[2])
    return _reflected(value, np.array(draws), level), floor


def _reflected(value: float, draws: Floats, level: float) -> Interval:
    """The basic bootstrap interval, which takes off the bias of resampled distances."""
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    shift = float(np.mean(draws)) - value
    return Interval(
        value, max(0.0, float(low) - shift), max(value, float(high) - shift), level, "bootstrap"
    )


def _mmd_interval(fake: Floats, real: Floats, level: float, key: Key) -> Interval:
    """Unbiased MMD² with an interval from resampled rows, all in one matrix product."""
    a, b = (_some(rows, MOST // 2, key.fold("mmd rows", i)) for i, rows in enumerate((fake, real)))
    both = torch.from_numpy(np.concatenate([a, b]))
    K = RBF(median_length_scale(both, max_rows=None)).of(Geometry(both))
    n, m = len(a), len(b)
    rng = key.fold("mmd draws").numpy()
    wa = torch.from_numpy(_counts(n, rng))
    wb = torch.from_numpy(_counts(m, rng))

    def within(block: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        pairs = ((w @ block) * w).sum(1) - (w.square() @ block.diagonal())
        free = w.sum(1).square() - w.square().sum(1)
        return pairs / free

    found = (
        within(K[:n, :n], wa)
        + within(K[n:, n:], wb)
        - 2 * ((wa @ K[:n, n:]) * wb).sum(1) / (wa.sum(1) * wb.sum(1))
    ).numpy()
    tail = (1 - level) / 2
    value = float(found[0])
    low, high = np.quantile(found[1:] - found[1:].mean(), [tail, 1 - tail])
    return Interval(value, value + float(low), value + float(high), level, "bootstrap")


def _counts(n: int, rng: Any) -> Floats:
    """How often each row is drawn in each resample, the first of them once each, ``(R + 1, n)``."""
    counts = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float64)
    return np.concatenate([np.ones((1, n)), counts])
