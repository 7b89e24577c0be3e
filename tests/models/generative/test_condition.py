"""What a conditional generator is given as y."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.errors import ShapeError
from groundstate.models.generative.condition import Condition


def test_a_column_of_labels_is_a_list_of_them() -> None:
    labels = np.array(["a", "b", "b"])
    flat, column = Condition.learned(labels), Condition.learned(labels[:, None])
    assert column.classes is not None
    assert column.classes.tolist() == ["a", "b"]
    np.testing.assert_array_equal(column.encode(["b"]), flat.encode(["b"]))


def test_two_columns_of_labels_are_refused() -> None:
    with pytest.raises(ShapeError, match="labels are one for each row"):
        Condition.learned(np.array([["a", "b"], ["b", "a"]]))
