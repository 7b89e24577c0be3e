"""Labels as bits come back exactly."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.models.clusters.codes import bits, pack_labels, unpack_labels


def test_round_trip_for_all_numbers_of_clusters() -> None:
    rng = np.random.default_rng(0)
    for k in range(1, 1001):
        labels = rng.integers(0, k, 37)
        packed = pack_labels(labels, k)
        assert len(packed) == -(-37 * bits(k) // 8)
        np.testing.assert_array_equal(unpack_labels(packed, k, 37), labels)


def test_ten_clusters_need_four_bits() -> None:
    assert bits(10) == 4
    assert len(pack_labels(np.zeros(8, int), 10)) == 4


def test_bad_labels() -> None:
    with pytest.raises(ValueError, match="labels go from 0 to 10; k=10"):
        pack_labels([0, 10], 10)
    with pytest.raises(ValueError, match="whole numbers"):
        pack_labels([0.5], 10)
    with pytest.raises(ValueError, match="hold fewer than 9 labels"):
        unpack_labels(np.zeros(4, np.uint8), 10, 9)
