"""Comparisons against SciPy, known numbers and error rates."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import (
    METRICS,
    Prediction,
    corrected_t,
    holm,
    indistinguishable,
    mcnemar,
    paired_bootstrap,
    tied_with_best,
)

rng = np.random.default_rng(0)


def discordant(b: int, c: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.ones(n, bool), np.ones(n, bool)
    second[:b] = False
    first[b : b + c] = False
    return first, second


@pytest.mark.parametrize(("b", "c", "p"), [(10, 3, 0.092285), (25, 12, 0.047031), (0, 0, 1.0)])
def test_mcnemar(b: int, c: int, p: float) -> None:
    found = mcnemar(*discordant(b, c))
    assert found.p == pytest.approx(p, abs=1e-6)
    assert found.difference == pytest.approx((b - c) / 100)
    if b + c:
        assert found.p == pytest.approx(scipy.stats.binomtest(b, b + c).pvalue)
        assert found.low < found.difference < found.high
        assert (found.low > 0) == (found.p < 0.05)


def test_mcnemar_weights_are_repetitions() -> None:
    a, b = discordant(7, 2, 20)
    weight = rng.integers(1, 4, 20)
    rows = np.repeat(np.arange(20), weight)
    assert mcnemar(a, b, sample_weight=weight) == mcnemar(a[rows], b[rows])


def test_corrected_t() -> None:
    d = [0.02, 0.01, 0.03, 0.0, 0.02, 0.04, 0.01, 0.02, 0.03, 0.02]
    found = corrected_t(d, 90, 10)
    assert found.p == pytest.approx(0.00442, abs=5e-6)
    t = scipy.stats.t.isf(found.p / 2, 9)
    assert t == pytest.approx(3.7697, abs=1e-4)
    assert scipy.stats.ttest_1samp(d, 0).statistic == pytest.approx(5.4772, abs=1e-4)
    assert corrected_t([0.0, 0.0], 9, 1).p == 1.0


def test_paired_bootstrap_agrees_with_the_paired_t_test() -> None:
    y = rng.normal(size=300)
    a = Prediction(y + rng.normal(size=300))
    for shift in (0.0, 0.12, 0.6):
        b = Prediction(a.values + shift * rng.normal(size=300) + shift / 4)
        found = paired_bootstrap(METRICS["mae"], y, a, b, key=1)
        rows = [METRICS["mae"].per_row(y, p) for p in (a, b)]
        expected = scipy.stats.ttest_rel(*rows)
        if shift == 0:
            assert found.p == 1.0 and found.difference == 0.0
        else:
            ci = expected.confidence_interval()
            width = ci.high - ci.low
            assert abs(found.low - ci.low) < 0.1 * width and abs(found.high - ci.high) < 0.1 * width
            assert abs(found.p - expected.pvalue) < 0.03


def test_holm() -> None:
    p = np.array([0.01, 0.02, 0.03, 0.5])
    np.testing.assert_allclose(holm(p), [0.04, 0.06, 0.06, 0.5])
    assert holm([]).tolist() == []


def hits(share: float, n: int, generator: np.random.Generator) -> np.ndarray:
    return generator.random(n) < share


def test_clearly_worse_models_leave_the_group() -> None:
    generator = np.random.default_rng(1)
    scores = {
        "good": hits(0.9, 400, generator),
        "same": hits(0.9, 400, generator),
        "bad": hits(0.6, 400, generator),
    }
    assert set(indistinguishable(scores)) == {"good", "same"}
    real = {"good": generator.normal(0, 1, 400), "bad": generator.normal(-0.5, 1, 400)}
    assert indistinguishable(real) == ("good",)
    assert indistinguishable(real, greater_is_better=False) == ("bad",)


def test_equal_models_are_separated_at_most_at_the_stated_rate() -> None:
    generator = np.random.default_rng(2)
    split = 0
    for _ in range(200):
        y = np.ones(150, int)
        group = {str(i): Prediction(hits(0.8, 150, generator).astype(int)) for i in range(4)}
        split += len(tied_with_best(METRICS["accuracy"], y, group)) < 4
    # comparing with the best of four picks the luckiest one: a little above alpha is expected
    assert split / 200 <= 0.12


def test_errors() -> None:
    with pytest.raises(DataError, match="no models"):
        indistinguishable({})
    with pytest.raises(ShapeError, match="same rows"):
        indistinguishable({"a": [1, 0], "b": [1]})
    with pytest.raises(DataError, match="two or more folds"):
        corrected_t([0.1], 9, 1)
