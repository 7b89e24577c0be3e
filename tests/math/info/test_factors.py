"""Information of single entries of a code about single factors."""

import numpy as np
import pytest

from groundstate.errors import ShapeError
from groundstate.math.info import mutual_information_gap


def test_entries_that_are_the_factors_have_a_gap_of_one_less_the_bias() -> None:
    v = np.random.default_rng(0).normal(size=(5000, 3))
    found = mutual_information_gap(np.exp(v[:, ::-1]), v)  # any order, any growing function
    np.testing.assert_allclose(found.shares[::-1].diagonal(), 1.0, atol=1e-12)
    bias = 19**2 / (2 * 5000) / np.log(20)
    np.testing.assert_allclose(found.gaps, 1 - bias, atol=0.01)


def test_two_entries_that_know_the_same_have_none() -> None:
    v = np.random.default_rng(0).normal(size=(500, 1))
    found = mutual_information_gap(np.hstack([v, -v]), v, bins=5)
    np.testing.assert_allclose(found.shares, 1.0)
    assert found.gap == pytest.approx(0.0, abs=1e-12)


def test_what_cannot_be_compared_is_named() -> None:
    v = np.zeros((10, 2))
    with pytest.raises(ShapeError, match=r"\(9, 2\) and \(10, 2\)"):
        mutual_information_gap(v[:9], v)
    with pytest.raises(ValueError, match="got 11"):
        mutual_information_gap(v, v, bins=11)
