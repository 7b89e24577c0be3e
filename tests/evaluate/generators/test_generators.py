"""Judging generators: distances, coverage, likelihood, memory, verdicts; numbers of the specification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from groundstate import GaussianMixture
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import (
    FrechetStats,
    assess_generator,
    bits_per_dim,
    code_length,
    frechet_distance,
    held_out_likelihood,
    inception_score,
    kernel_distance,
    memorisation_check,
    mmd_test,
    mode_coverage,
    precision_recall,
)
from groundstate.math.divergences import frechet, mmd, sliced_wasserstein
from groundstate.math.kernels import RBF
from groundstate.math.stats import two_sample

rng = np.random.default_rng(0)


class TestFrechet:
    def test_numbers(self) -> None:
        assert frechet(0, 1, 3, 4) == pytest.approx(10.0)
        S1, S2 = [[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 4.0]]
        assert frechet([0.0, 0.0], S1, [1.0, -2.0], S2) == pytest.approx(5.771220, abs=1e-6)
        # rows with exactly these moments
        a, b = (_with_moments(m, np.array(S)) for m, S in (([0, 0], S1), ([1, -2], S2)))
        assert frechet_distance(a, b) == pytest.approx(5.771220, abs=1e-6)

    def test_parts_are_merged(self) -> None:
        a, b = rng.normal(1e6, 1, (300, 4)), rng.normal(1e6 + 1, 2, (200, 4))
        whole = frechet_distance(a, b)
        parts = sum((FrechetStats().update(p) for p in np.array_split(a, 5)), FrechetStats())
        other = FrechetStats()
        for part in np.array_split(b, 3):
            other.update(part)
        assert parts.distance(other) == pytest.approx(whole, rel=1e-6)
        assert parts.n == 300

    def test_features_and_refusals(self) -> None:
        images = rng.normal(size=(50, 1, 4, 4)).astype(np.float32)
        net = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
        assert frechet_distance(images, images, net) == pytest.approx(0, abs=1e-6)
        assert frechet_distance(images, images + 1, 2) >= 0
        with pytest.warns(UserWarning, match="biased upwards"):
            frechet_distance(rng.normal(size=(20, 5)), rng.normal(size=(20, 5)))
        with pytest.raises(DataError, match="NaN"):
            frechet_distance([[np.nan], [1.0]], [[1.0], [2.0]])
        with pytest.raises(ShapeError, match="features"):
            FrechetStats().update(np.ones((3, 2))).update(np.ones((3, 4)))
        with pytest.raises(DataError, match="at least two rows"):
            FrechetStats().update([[1.0]]).moments()


def _with_moments(mean: Any, cov: np.ndarray) -> np.ndarray:
    x = np.random.default_rng(1).normal(size=(500, 2))
    x = x - x.mean(0)
    x = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    return x @ np.linalg.cholesky(cov).T + mean


class TestKernels:
    def test_numbers(self) -> None:
        a, b = [[0.0], [1.0]], [[2.0], [4.0]]
        assert mmd(a, b, RBF(gamma=1.0)) == pytest.approx(0.193036, abs=1e-6)
        assert mmd(a, b, RBF(gamma=1.0), unbiased=False) == pytest.approx(0.999938, abs=1e-6)
        assert mmd_test(a, b, [1.0]).statistic == pytest.approx(0.193036, abs=1e-6)
        assert kernel_distance(a, b).estimate == pytest.approx(653.0)
        with pytest.raises(ValueError, match="at least one gamma"):
            mmd_test(a, b, [])

    @pytest.mark.parametrize(("delta", "exact"), [(0.0, 0.0), (1.0, 0.162132), (2.0, 0.492535)])
    def test_population(self, delta: float, exact: float) -> None:
        own = np.random.default_rng(2)
        wide = mmd(own.normal(size=(3000, 1)), own.normal(delta, 1, (3000, 1)), RBF(gamma=1.0))
        assert wide == pytest.approx(exact, abs=0.03)

    def test_p_values(self) -> None:
        own = np.random.default_rng(3)
        a, b = own.normal(size=(150, 2)), own.normal(size=(150, 2))
        assert mmd_test(a, b, [0.1, 1.0]).pvalue > 0.01
        assert mmd_test(a, b + 1, [0.1, 1.0]).pvalue == pytest.approx(0.001)
        found = kernel_distance(a, b + 1, subsets=20, subset_size=50)
        assert found.low <= found.estimate <= found.high and found.estimate > 0


class TestCoverage:
    def test_numbers(self) -> None:
        real, fake = np.arange(4.0)[:, None], np.array([[0.5], [2.2], [10.0], [10.5]])
        found = precision_recall(real, fake, k=1)
        assert (found.precision, found.recall, found.density, found.coverage) == (
            0.5,
            1.0,
            1.0,
            1.0,
        )
        assert inception_score([[0.9, 0.1], [0.2, 0.8]], 1)[0] == pytest.approx(1.317052, abs=1e-6)
        assert inception_score(np.eye(3)[np.arange(30) % 3], 2)[0] == pytest.approx(3.0)
        with pytest.raises(DataError, match="sum to 1"):
            inception_score([[0.9, 0.4]])

    def test_definition_on_random_rows(self) -> None:
        own = np.random.default_rng(4)
        a, b, k = own.normal(size=(60, 3)), own.normal(0.5, 1, (50, 3)), 4
        D = np.linalg.norm(a[:, None] - b[None], axis=2)
        ra, rb = (np.sort(np.linalg.norm(x[:, None] - x[None], axis=2), 1)[:, k] for x in (a, b))
        found = precision_recall(a, b, k)
        assert found.precision == pytest.approx((ra[:, None] >= D).any(0).mean())
        assert found.recall == pytest.approx((rb[None] >= D).any(1).mean())
        assert found.density == pytest.approx((ra[:, None] >= D).sum() / (k * 50))
        assert found.coverage == pytest.approx((ra[:, None] >= D).any(1).mean())
        assert found.precision in found.intervals["precision"]

    def test_equal_rows_and_refusals(self) -> None:
        rows = np.repeat(rng.normal(size=(20, 2)), 3, 0)
        same = precision_recall(rows, rows, 2)
        assert same.precision == same.recall == same.coverage == 1.0
        with pytest.raises(DataError, match="more than 5 rows"):
            precision_recall(np.zeros((5, 1)), np.zeros((9, 1)), 5)
        with pytest.raises(ShapeError, match="features"):
            precision_recall(np.zeros((9, 1)), np.zeros((9, 2)), 1)

    def test_modes(self) -> None:
        found = mode_coverage([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]], [[0.0, 0.0], [5.0, 5.0]], 0.5)
        assert (found.found, found.modes, found.counts.tolist()) == (1, 2, [2, 0])
        assert found.near == pytest.approx(2 / 3)


class TestLikelihood:
    def test_bits(self) -> None:
        entropy = 0.5 * math.log(2 * math.pi * math.e)
        assert bits_per_dim(-entropy, 1) == pytest.approx(2.047096, abs=1e-6)
        assert bits_per_dim(-entropy, 1, 256) == pytest.approx(10.047096, abs=1e-6)
        assert code_length(-math.log(8)) == pytest.approx(3.0)

    def test_gap_of_a_model_that_knows_its_rows(self) -> None:
        rows = np.random.default_rng(5).normal(size=(400, 2))
        narrow = GaussianMixture(60, reg_covar=1e-3, random_state=0).fit(rows[:200])
        found = held_out_likelihood(narrow, rows[200:], rows[:200])
        assert found.overfit is not None and found.overfit.low > 0.5 and found.kind == "exact"
        assert found.bits_per_dim.low <= found.bits_per_dim.estimate <= found.bits_per_dim.high


class TestTwoSamples:
    def test_equal_distributions(self) -> None:
        own = np.random.default_rng(6)
        a, b = own.normal(size=(400, 2)), own.normal(size=(400, 2))
        found = two_sample(a, b, "c2st")
        assert found.estimate == pytest.approx(0.5, abs=2 * 0.5 / math.sqrt(400))

    def test_sliced(self) -> None:
        own = np.random.default_rng(7)
        delta = np.array([3.0, 0.0, 0.0])
        a = own.normal(size=(4000, 3))
        found = sliced_wasserstein(a, a + delta, n_projections=2000, random_state=0)
        assert float(found) ** 2 == pytest.approx(9 / 3, rel=0.1)

    def test_memory(self) -> None:
        own = np.random.default_rng(8)
        train, test, new = (own.normal(size=(300, 3)) for _ in range(3))
        copies = memorisation_check(train[own.integers(0, 300, 300)], train, test)
        assert copies.z < -3 and copies.memorises and copies.exact == 1.0 and copies.copies == 1.0
        fresh = memorisation_check(new, train, test)
        assert "closer to the training rows than" in str(copies)
        assert "as far from the training rows as" in str(fresh)
        far = memorisation_check(new + 3, train, test)
        assert "farther from the training rows than" in str(far)
        assert abs(fresh.z) < 3 and not fresh.memorises and fresh.copies < 0.05
        assert "near copies" in str(copies)


class Memoriser:
    """A generator that repeats its training rows."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def sample(self, n: int, random_state: Any = None) -> Any:
        return self.rows[np.random.default_rng(random_state).integers(0, len(self.rows), n)]


class TestReport:
    def test_verdicts(self) -> None:
        own = np.random.default_rng(9)
        angle = own.uniform(0, 2 * np.pi, 900)
        ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * own.normal(size=(900, 2))
        train, test = ring[:500], ring[500:]
        copied = assess_generator(Memoriser(train), test, train)
        assert copied.verdict == "memorises"
        wide = assess_generator(GaussianMixture(1, random_state=0).fit(train), test, train)
        assert wide.verdict == "underfits" and wide.likelihood is not None
        good = assess_generator(GaussianMixture(16, random_state=0).fit(train), test, train)
        assert good.verdict == "good"
        assert wide.frechet_floor is not None and wide.mmd.estimate > good.mmd.estimate
        text = str(good)
        for word in ("Fréchet", "MMD²", "precision", "coverage", "accuracy", "near copies", "bits"):
            assert word in text
        again = assess_generator(GaussianMixture(16, random_state=0).fit(train), test, train)
        assert str(again) == text

    def test_frames_with_categories(self) -> None:
        own = np.random.default_rng(10)
        kind = own.choice(["a", "b"], 300)
        table = pd.DataFrame({"kind": kind, "size": (kind == "a") * 2 + own.normal(size=300)})
        shuffled = table.assign(kind=own.permutation(kind))
        found = assess_generator(shuffled.head(150), table.tail(150).reset_index(drop=True))
        assert found.c2st.estimate > 0.55 and found.memorisation is None
        with pytest.raises(DataError, match="must have the columns"):
            assess_generator(table[["size"]], table)

    def test_features_and_few_rows(self) -> None:
        rows = torch.randn(60, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        found = assess_generator(rows[:30], rows[30:], features=nn.Flatten())
        assert found.frechet.low <= found.frechet.estimate
        with pytest.raises(DataError, match="at least 20 rows"):
            assess_generator(rows[:5], rows[30:])


def test_compiled_counts_are_those_of_torch() -> None:
    from groundstate.evaluate.generators.coverage import _count
    from groundstate.evaluate.generators.coverage_numba import count

    gap, rows, columns = torch.rand(7, 9).double(), torch.rand(7).double(), torch.rand(9).double()
    gap[0, 3], gap[2, 5] = rows[0], columns[5]  # borders count
    found, expected = (
        [torch.zeros(size, dtype=torch.int64) for size in (9, 7, 7)] for _ in range(2)
    )
    count(gap.numpy(), rows.numpy(), columns.numpy(), *(each.numpy() for each in found))
    _count(gap, rows, columns, *expected)
    torch.testing.assert_close(found, expected)
