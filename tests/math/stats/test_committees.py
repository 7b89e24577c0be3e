"""The gain of averaging, and rows drawn with replacement."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.errors import DataError, ShapeError
from groundstate.math.stats.committees import (
    bootstrap_indices,
    bootstrap_split,
    ensemble_decomposition,
)

RNG = np.random.default_rng(0)


def test_worked_numbers() -> None:
    found = ensemble_decomposition([1, 2, 6], [0, 2])
    assert found.member == pytest.approx(9.666667, abs=1e-6)
    assert found.ensemble + found.variance == pytest.approx(found.member)
    assert (found.ensemble, found.noise, found.bias) == pytest.approx((5.0, 1.0, 4.0))
    assert found.variance == pytest.approx(4.666667, abs=1e-6)


def test_identities_on_rows() -> None:
    f, y = RNG.normal(size=(7, 50)), RNG.normal(size=50)
    found = ensemble_decomposition(f, y)
    assert found.member == pytest.approx(found.ensemble + found.variance)
    assert found.ensemble <= found.member and np.isnan(found.noise)
    # about the targets, the mean of B members has the loss of the curve at B
    assert found.curve(7) == pytest.approx(found.ensemble)
    assert found.curve(1) == pytest.approx(found.member)


def test_share_of_distinct_rows() -> None:
    shares = [len(set(bootstrap_indices(20, random_state=s)[0].tolist())) / 20 for s in range(2000)]
    assert np.mean(shares) == pytest.approx(1 - (1 - 1 / 20) ** 20, abs=0.005)
    drawn, outside = bootstrap_indices(5000, random_state=0)
    assert len(outside) / 5000 == pytest.approx(np.exp(-1), abs=0.02)
    assert not np.isin(outside, drawn).any()


def test_splitting_a_resample_leaks() -> None:
    """Rows of the second part that also stand in the first: 1 − e^{−ρ}, .551 at ρ = .8."""
    learned, judged = bootstrap_split(20_000, 0.8, random_state=1, leaky=True)
    assert np.isin(judged, learned).mean() == pytest.approx(0.551, abs=0.02)
    learned, judged = bootstrap_split(20_000, random_state=1)
    assert not np.isin(judged, learned).any() and len(learned) == 20_000


def test_errors_teach() -> None:
    with pytest.raises(ShapeError, match="disagree"):
        ensemble_decomposition(np.zeros((3, 4)), np.zeros(5))
    with pytest.raises(DataError, match="at least one to draw from"):
        bootstrap_indices(0)
